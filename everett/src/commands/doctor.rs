//! `everett doctor`: shows what this host can do, and which engine Everett uses on it.

use std::time::Duration;

use everett_cpu::CpuModel;
use everett_host::doctor::{self, Examination, Finding, Verdict};
use everett_session::machines::engines::{Asked, Engine, EngineChoice};
use everett_world_file::Clock;
use serde::Serialize;

use super::Outcome;
use crate::features::{CONTAINERS, HISTORY, INSIDE, ONLINE, VIEW};
use crate::ui::{Ui, style};

/// `everett doctor`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Examine only /dev/kvm, with a hundred runs for each property
    ///
    /// This takes minutes. The exit status is 0 if /dev/kvm has every property that an exact kvm engine needs, else
    /// 1.
    #[arg(long)]
    pub prove: bool,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Record<'a> {
    /// Optional features of the program. Each is true if this build has it.
    Build {
        containers: bool,
        history: bool,
        inside: bool,
        online: bool,
        view: bool,
    },
    Check(&'a Finding),
    /// Verdict on the kvm engine: true if repeated probes proved it exact. Also lists the requirements that stay
    /// unproved.
    Kvm {
        exact: bool,
        unproven: &'a [&'a str],
    },
    Engine(&'a Engine),
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let Examination { findings, unproven } = if args.prove { doctor::prove() } else { doctor::examine() };
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    if !args.prove {
        tell_build(ui, width)?;
    }
    for finding in &findings {
        let (style, word) = match finding.verdict {
            Verdict::Ok => (style::GOOD, "ok  "),
            Verdict::Note => (style::NOTE, "note"),
            Verdict::Bad => (style::BAD, "bad "),
        };
        let means = if finding.means.is_empty() { String::new() } else { format!(" ({})", finding.means) };
        ui.say(format!("{}  {:width$}  {}{means}", style::paint(style, word), finding.name, finding.detail))?;
        ui.record(&Record::Check(finding))?;
    }
    let verdict = match (unproven.as_slice(), args.prove) {
        ([], true) => "exact: repeated probes showed everything that an exact engine needs".to_owned(),
        ([], false) => {
            "one run showed everything that an exact engine needs; --prove repeats the probes".to_owned()
        }
        (missing, _) => format!("not exact on this host, which lacks: {}", missing.join(", ")),
    };
    ui.say(format!("{}  {:width$}  {verdict}", style::paint(style::HEAD, "=>  "), "kvm"))?;
    ui.record(&Record::Kvm { exact: unproven.is_empty() && args.prove, unproven: &unproven })?;
    if args.prove {
        return Ok(if unproven.is_empty() { Outcome::Fine } else { Outcome::Found });
    }
    let asked = Asked { engine: EngineChoice::Auto, allow_inexact: false, patience: Duration::ZERO };
    for clock in [Clock::Insn, Clock::Branch, Clock::Exit] {
        let engine = Engine::choose(asked, clock, CpuModel::V2)?;
        let line = format!("clock mode {}: {}: {}", clock.mode(), engine.kind.name(), engine.why);
        ui.say(format!("{}  {:width$}  {line}", style::paint(style::HEAD, "=>  "), "engine"))?;
        ui.record(&Record::Engine(&engine))?;
    }
    Ok(if findings.iter().any(|f| f.verdict == Verdict::Bad) { Outcome::Found } else { Outcome::Fine })
}

/// Prints which optional features this build has.
fn tell_build(ui: &Ui, width: usize) -> anyhow::Result<()> {
    let all = [
        (CONTAINERS, "containers (images, compose files, the SDK)"),
        (ONLINE, "online (registries, mirrors)"),
        (HISTORY, "history (everett runs)"),
        (INSIDE, "inside (everett ps, everett stack)"),
        (VIEW, "view (live view of explore)"),
    ];
    let lacking: Vec<&str> = all.iter().filter(|(has, _)| !has).map(|(_, name)| *name).collect();
    let (style, word, detail) = match lacking.as_slice() {
        [] => (style::GOOD, "ok  ", "it has all features".to_owned()),
        lacking => (
            style::NOTE,
            "note",
            format!("it lacks {}; cargo build --release builds all", lacking.join(", ")),
        ),
    };
    ui.say(format!("{}  {:width$}  {detail}", style::paint(style, word), "build"))?;
    Ok(ui.record(&Record::Build {
        containers: CONTAINERS,
        history: HISTORY,
        inside: INSIDE,
        online: ONLINE,
        view: VIEW,
    })?)
}
