//! `everett doctor`.

use serde::Serialize;

use super::Outcome;
use crate::doctor::{self, Finding, Verdict};
use crate::ui::{Ui, style};

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Record<'a> {
    Check(&'a Finding),
    Engine { engine: &'a str, why: &'a str },
}

pub(super) fn run(ui: &Ui) -> anyhow::Result<Outcome> {
    let findings = doctor::examine();
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    for finding in &findings {
        let (style, word) = match finding.verdict {
            Verdict::Ok => (style::GOOD, "ok  "),
            Verdict::Note => (style::NOTE, "note"),
            Verdict::Bad => (style::BAD, "bad "),
        };
        ui.say(format!("{}  {:width$}  {}", style::paint(style, word), finding.name, finding.detail))?;
        ui.record(&Record::Check(finding))?;
    }
    let (engine, why) = doctor::engine_choice();
    ui.say(format!("{}  {:width$}  {engine}: {why}", style::paint(style::HEAD, "=>  "), "engine"))?;
    ui.record(&Record::Engine { engine, why })?;
    Ok(if findings.iter().any(|f| f.verdict == Verdict::Bad) { Outcome::Found } else { Outcome::Fine })
}
