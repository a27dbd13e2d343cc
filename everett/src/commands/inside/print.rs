//! `everett print`: runs recorded branches again and prints values at places of their programs.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units::Vtime;
use everett_report::exploration::figures::counted;
use everett_session::debug::probes::{Options, hits};
use everett_session::machines::EngineKind;
use everett_session::output::show;
use everett_session::probes::expression::Expression;
use everett_session::probes::hit::{BranchHits, Count, Entry, Hit, HitStack, HitValue};
use everett_session::probes::limits::PROBES_MAX;
use everett_session::probes::probe::{self, Probe};
use serde::Serialize;

use super::super::engine_choice::EngineArgs;
use super::super::exploration::Run;
use super::super::id::Id;
use super::super::{Outcome, common, resources};
use super::debug_files::DebugFilesArgs;
use super::stack::frame_lines;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};

/// `everett print`
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "everett print [OPTIONS] <RUN> [ID]... <PROBE>...",
    after_help = "A probe is PROGRAM:FILE:LINE, PROGRAM:FUNCTION[+OFFSET] or PROGRAM:0xADDRESS, then a format as in C, then values: \
                  'redis-server:processCommand \"%#x\" $rdi'. PROGRAM is the name of a process, the path of its program, or kernel. \
                  Options can also follow a probe's values."
)]
pub struct Args {
    /// The run directory
    pub run: PathBuf,
    /// Findings such as 1 or branches such as b17, with the branches that they extend [default: all branches]; then probes
    #[arg(required = true, value_name = "ID|PROBE")]
    pub what: Vec<String>,
    /// Only this node [default: all nodes]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Only hits at which this expression is not 0
    #[arg(long = "if", value_name = "EXPRESSION", value_parser = probe::condition)]
    pub condition: Option<Expression>,
    /// Only count the hits on each branch
    #[arg(long)]
    pub count: bool,
    /// Print the stack at each hit
    #[arg(long)]
    pub stack: bool,
    /// Print the hits among the log lines of a single finding or branch
    #[arg(long)]
    pub with_logs: bool,
    /// Number of branches that run in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Debug files
    #[command(flatten)]
    pub debug: DebugFilesArgs,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Maximum number of reasons why code was not probed that are printed.
const PROBLEMS_SHOWN_MAX: usize = 20;

/// Line of `--json` for a hit.
#[derive(Serialize)]
struct HitLine<'a> {
    kind: &'static str,
    branch: u64,
    probe: &'a str,
    vtime_ns: u64,
    node: &'a str,
    pid: u32,
    tid: u32,
    thread: &'a str,
    text: &'a str,
    values: &'a [HitValue],
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<&'a HitStack>,
}

/// Number of a probe's hits in `--json`.
#[derive(Serialize)]
struct ProbeCount<'a> {
    probe: &'a str,
    #[serde(flatten)]
    count: Count,
}

/// Line of `--json` for a branch.
#[derive(Serialize)]
struct BranchLine<'a> {
    kind: &'static str,
    branch: u64,
    probes: Vec<ProbeCount<'a>>,
    left_out: u64,
}

/// Last line of `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    kind: &'static str,
    branches: u64,
    branches_all: u64,
    probes: Vec<ProbeCount<'a>>,
    left_out: u64,
    problems: Vec<&'a str>,
    /// Result of the comparison of the trails with the recorded ones.
    trails: &'static str,
    trails_compared: u64,
    host_seconds: f64,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let clock = Stopwatch::start();
    let (ids, probes) = split(&args.what)?;
    let debug = args.debug.folders()?;
    let interrupt = Interrupt::install()?;
    let run = Run::open(&args.run)?;
    let nodes = &run.reading.header().nodes;
    let number = |name: &String| {
        let number = nodes.iter().position(|node| node == name);
        number.ok_or_else(|| {
            anyhow!("--node: no node of this world is named {name}; its nodes are {}", nodes.join(", "))
        })
    };
    let node = args.node.as_ref().map(number).transpose()?;
    if args.with_logs && ids.len() != 1 {
        bail!("--with-logs: name a single finding or branch");
    }
    let branches = ids.iter().map(|id| {
        Ok(match id {
            Id::Finding(id) => run.finding(*id)?.first,
            Id::Branch(number) => run.record(Id::Branch(*number)).map(|_| *number)?,
        })
    });
    let branches = branches.collect::<anyhow::Result<_>>()?;
    let (setting, engine) = run.setting(ui, args.engine.asked(), &interrupt)?;
    if engine.kind == EngineKind::Kvm {
        bail!("/dev/kvm has no breakpoints; use --engine soft, which runs the same branches");
    }
    let options = Options {
        condition: args.condition.clone(),
        only_counts: args.count,
        has_stack: args.stack,
        with_logs: args.with_logs,
        node,
        branches,
        workers: args.jobs.map_or_else(resources::cores, usize::from),
        debug,
        interrupt: &interrupt,
        probes: probes.clone(),
    };
    let bar = RunBar::endless(ui, "replaying");
    let mut printer = Printer { ui, args, nodes, probes: &probes, total: BranchHits::default(), branches: 0 };
    printer.total.counts.resize(probes.len(), Count::default());
    printer.total.placed.resize(probes.len(), false);
    let replayed = hits(&setting, &run.reading, options, &mut |hits, all| {
        bar.clear();
        printer.take(hits)?;
        bar.say(&format!("{} of {}", printer.branches, counted(all, "branch", "branches")));
        Ok(())
    });
    bar.clear();
    let all = replayed?;
    printer.end(all, clock.seconds())?;
    common::warn_of_engine(ui, &engine)?;
    printer.unless_lost(all)?;
    Ok(Outcome::Fine)
}

/// Separates findings and branches from the probes behind them.
fn split(what: &[String]) -> anyhow::Result<(Vec<Id>, Vec<Probe>)> {
    let first = what.iter().position(|word| word.contains(':')).unwrap_or(what.len());
    let (ids, probes) = what.split_at(first);
    let ids = ids.iter().map(|id| id.parse().map_err(|why| anyhow!("{why}; a probe begins with PROGRAM:")));
    let ids = ids.collect::<anyhow::Result<_>>()?;
    if probes.is_empty() {
        bail!("no probe is given, such as 'redis-server:main'");
    }
    if probes.len() > PROBES_MAX {
        bail!("at most {PROBES_MAX} probes can be given");
    }
    let probes =
        probes.iter().map(|text| Probe::parse(text).map_err(|why| anyhow!("probe \"{text}\": {why}")));
    Ok((ids, probes.collect::<anyhow::Result<_>>()?))
}

/// Printer of branches.
struct Printer<'p> {
    ui: &'p Ui,
    args: &'p Args,
    nodes: &'p [String],
    probes: &'p [Probe],
    /// Sums over all branches.
    total: BranchHits,
    branches: u64,
}

impl Printer<'_> {
    /// Prints the hits of a branch.
    fn take(&mut self, hits: BranchHits) -> anyhow::Result<()> {
        let ui = self.ui;
        let sum: u64 = hits.counts.iter().map(|count| count.hits + count.undecided).sum();
        if sum > 0 || !hits.entries.is_empty() {
            ui.say(style::paint(style::HEAD, format!("b{}", hits.branch)))?;
        }
        for entry in &hits.entries {
            match entry {
                Entry::Hit(hit) => self.hit(hits.branch, hit)?,
                Entry::Event(event) => {
                    ui.record(event)?;
                    ui.say(show::line(event, self.nodes.len() > 1))?;
                }
            }
        }
        for (probe, count) in self.probes.iter().zip(&hits.counts) {
            if (probe.only_counts || self.args.count) && count.hits + count.undecided > 0 {
                ui.say(format!("    {}: {}", printable(&probe.name), words(*count)))?;
            }
        }
        if hits.left_out > 0 {
            let line = format!("    {} more hits or lines are not printed", hits.left_out);
            ui.say(style::paint(style::FAINT, line))?;
        }
        ui.record(&BranchLine {
            kind: "branch",
            branch: hits.branch,
            probes: self.counts(&hits.counts),
            left_out: hits.left_out,
        })?;
        self.branches += 1;
        self.total.left_out += hits.left_out;
        for (total, count) in self.total.counts.iter_mut().zip(&hits.counts) {
            total.hits += count.hits;
            total.undecided += count.undecided;
        }
        for (total, placed) in self.total.placed.iter_mut().zip(&hits.placed) {
            *total |= placed;
        }
        let room = PROBLEMS_SHOWN_MAX.saturating_sub(self.total.problems.len());
        self.total.problems.extend(hits.problems.into_iter().take(room));
        Ok(())
    }

    fn hit(&self, branch: u64, hit: &Hit) -> anyhow::Result<()> {
        let ui = self.ui;
        let probe = self.probes.get(hit.probe).map_or("?", |probe| &probe.name);
        let node = self.nodes.get(hit.node).map_or("?", String::as_str);
        ui.record(&HitLine {
            kind: "hit",
            branch,
            probe,
            vtime_ns: hit.vtime_ns,
            node,
            pid: hit.pid,
            tid: hit.tid,
            thread: &hit.thread,
            text: &hit.text,
            values: &hit.values,
            stack: hit.stack.as_ref(),
        })?;
        let separator = if hit.text.is_empty() { "" } else { ": " };
        let line = format!(
            "{} {node} {}/{} {}  {probe}{separator}{}",
            Vtime(hit.vtime_ns),
            hit.pid,
            hit.tid,
            hit.thread,
            hit.text
        );
        ui.say(printable(&line))?;
        let Some(stack) = &hit.stack else { return Ok(()) };
        for frame in &stack.kernel {
            ui.say(format!("         {}", printable(frame)))?;
        }
        for line in stack.user.iter().flat_map(frame_lines) {
            ui.say(printable(&line))?;
        }
        if !stack.is_complete {
            ui.say(style::paint(style::FAINT, "         further frames are unknown"))?;
        }
        Ok(())
    }

    fn counts(&self, counts: &[Count]) -> Vec<ProbeCount<'_>> {
        let both = self.probes.iter().zip(counts);
        both.map(|(probe, count)| ProbeCount { probe: &probe.name, count: *count }).collect()
    }

    /// Prints the sums. `all` is the number of branches to replay.
    fn end(&self, all: u64, seconds: f64) -> anyhow::Result<()> {
        let (ui, total) = (self.ui, &self.total);
        ui.record(&Summary {
            kind: "print",
            branches: self.branches,
            branches_all: all,
            probes: self.counts(&total.counts),
            left_out: total.left_out,
            problems: total.problems.iter().map(String::as_str).collect(),
            trails: if self.branches == 0 { "not compared" } else { "equal" },
            trails_compared: self.branches,
            host_seconds: seconds,
        })?;
        for (probe, count) in self.probes.iter().zip(&total.counts) {
            ui.say(format!("{}: {}", printable(&probe.name), words(*count)))?;
        }
        for problem in &total.problems {
            ui.say(style::paint(style::BAD, printable(problem)))?;
        }
        let line = format!(
            "{} of {} ran again; {}, after {seconds:.1} s",
            self.branches,
            counted(all, "branch", "branches"),
            match self.branches {
                0 => "no trail was compared".to_owned(),
                compared if compared == all => "all trails equal the recorded ones".to_owned(),
                compared => format!("the trails of these {compared} equal the recorded ones"),
            }
        );
        Ok(ui.say(style::paint(style::FAINT, line))?)
    }

    /// Returns an error if all branches ran again and a probe has no place in them.
    fn unless_lost(&self, all: u64) -> anyhow::Result<()> {
        let lost = self.probes.iter().zip(&self.total.placed).find(|(_, placed)| !**placed);
        let Some((probe, _)) = lost.filter(|_| self.branches == all) else { return Ok(()) };
        let begins = format!("{}: ", probe.name);
        match self.total.problems.iter().find(|problem| problem.starts_with(&begins)) {
            Some(problem) => bail!("{problem}"),
            None => bail!("{}: no process of these branches runs a program {}", probe.name, probe.program),
        }
    }
}

/// Returns the numbers of hits in words.
fn words(count: Count) -> String {
    let hits = counted(count.hits, "hit", "hits");
    match count.undecided {
        0 => hits,
        undecided => format!("{hits}, and {undecided} whose condition has no known value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_and_branches_stand_before_the_probes() {
        let of = |words: &[&str]| split(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let (ids, probes) = of(&["1", "b17", "a:f", "a:g $rdi"]).unwrap();
        assert_eq!((ids, probes.len()), (vec![Id::Finding(1), Id::Branch(17)], 2));
        let error = |words: &[&str]| of(words).unwrap_err().to_string();
        assert_eq!(error(&["1"]), "no probe is given, such as 'redis-server:main'");
        assert!(error(&["main", "a:f"]).starts_with("\"main\" is neither a finding's number"));
        assert_eq!(
            error(&["a:f \"%d\""]),
            "probe \"a:f \"%d\"\": the format prints 1 values, but 0 are given"
        );
    }
}
