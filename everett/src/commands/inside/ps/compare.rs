//! Compares what is read from outside with what the guests say of themselves.

use anyhow::Context as _;
use everett_host::interrupt::Interrupt;
use everett_report::exploration::figures::counted;
use everett_session::explore::path_runner::Interrupted;
use everett_session::inside::comparison::{CompareError, Comparison, Difference, compare};
use everett_session::inside::fork::Fork;
use everett_session::inside::limits::ANSWER_NS_MAX;
use serde::Serialize;

use super::super::super::Outcome;
use super::super::fork::seconds;
use super::super::guests;
use super::super::instant::{Instant, InstantArgs};
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};

/// Maximum number of values of a difference that are printed.
const VALUES_SHOWN_MAX: usize = 3;

/// Line of `--json` for a machine.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    vtime_ns: u64,
    processes: u64,
    stacks: u64,
    entries: u64,
    mappings: u64,
    differences: usize,
}

/// Line of `--json` for a difference.
#[derive(Serialize)]
struct DifferenceLine<'a> {
    kind: &'static str,
    node: &'a str,
    vtime_ns: u64,
    pid: u32,
    part: &'a str,
    told: &'a str,
    seen: &'a [String],
}

/// Line of `--json` for a machine that was left out.
#[derive(Serialize)]
struct LeftOut<'a> {
    kind: &'static str,
    node: &'a str,
    vtime_ns: u64,
    error: &'a str,
}

/// Last line of `--json`.
#[derive(Serialize)]
struct Sum {
    kind: &'static str,
    instants: usize,
    machines: u64,
    left_out: u64,
    processes: u64,
    stacks: u64,
    entries: u64,
    mappings: u64,
    differences: u64,
}

/// Compares at the instant that the arguments name, or at a number of random instants of the branch.
pub(super) fn run(ui: &Ui, args: &InstantArgs, instants: Option<u16>) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let mut instant = Instant::open(ui, args, &interrupt)?;
    let kernel = guests::kernel(&instant.setting)?;
    let vtimes = instants.map_or_else(|| vec![instant.at_ns], |count| instant.random_vtimes(count));
    let mut sum = Sum {
        kind: "comparison",
        instants: vtimes.len(),
        machines: 0,
        left_out: 0,
        processes: 0,
        stacks: 0,
        entries: 0,
        mappings: 0,
        differences: 0,
    };
    let bar = RunBar::endless(ui, "comparing");
    for (n, vtime_ns) in vtimes.into_iter().enumerate() {
        bar.say(&format!("instant {} of {}", n + 1, sum.instants));
        instant.at_ns = vtime_ns;
        let mut fork = Fork::new(instant.reach(&interrupt)?.into_timeline());
        bar.clear();
        let nodes = instant.nodes();
        let is_wanted = |name: &String| args.node.as_ref().is_none_or(|wanted| wanted == name);
        // A machine without power has nothing to compare. Ending the faults would switch it on.
        let without_power: Vec<bool> =
            fork.timeline().world().nodes().iter().map(|node| !node.is_on()).collect();
        fork.calm();
        for (node, name) in nodes.iter().enumerate().filter(|(_, name)| is_wanted(name)) {
            if without_power[node] {
                left_out(ui, name, vtime_ns, "it has no power")?;
                sum.left_out += 1;
                continue;
            }
            let mut compared = || {
                fork.wait_for_agent(node, ANSWER_NS_MAX)?;
                compare(&mut fork, node, &kernel, &|| !interrupt.wanted())
            };
            match compared() {
                Ok(comparison) => {
                    tell(ui, name, vtime_ns, &comparison)?;
                    sum.add(&comparison);
                }
                Err(CompareError::Interrupted) => return Err(Interrupted.into()),
                Err(error) => {
                    return Err(error).with_context(|| format!("{name} at {} s", seconds(vtime_ns)));
                }
            }
        }
    }
    bar.clear();
    instant.warn_of_engine(ui)?;
    ui.record(&sum)?;
    let left_out = match sum.left_out {
        0 => String::new(),
        count => format!(" ({} left out)", counted(count, "machine", "machines")),
    };
    ui.say(format!(
        "{} at {}{left_out}: {}, {}, {}, {}; {}",
        counted(sum.machines, "machine", "machines"),
        counted(sum.instants as u64, "instant", "instants"),
        counted(sum.processes, "process", "processes"),
        counted(sum.stacks, "kernel stack", "kernel stacks"),
        counted(sum.entries, "entry into the kernel", "entries into the kernel"),
        counted(sum.mappings, "mapping", "mappings"),
        match sum.differences {
            0 => "all equal".to_owned(),
            differences => counted(differences, "difference", "differences"),
        }
    ))?;
    Ok(if sum.differences == 0 && sum.machines > 0 { Outcome::Fine } else { Outcome::Found })
}

impl Sum {
    fn add(&mut self, one: &Comparison) {
        self.machines += 1;
        self.processes += one.processes;
        self.stacks += one.stacks;
        self.entries += one.entries;
        self.mappings += one.mappings;
        self.differences += one.differences.len() as u64;
    }
}

fn left_out(ui: &Ui, node: &str, vtime_ns: u64, error: &str) -> anyhow::Result<()> {
    ui.record(&LeftOut { kind: "left-out", node, vtime_ns, error })?;
    let line = format!("{:>14}  {}: left out: {error}", seconds(vtime_ns), printable(node));
    Ok(ui.say(style::paint(style::FAINT, line))?)
}

fn tell(ui: &Ui, node: &str, vtime_ns: u64, comparison: &Comparison) -> anyhow::Result<()> {
    let Comparison { processes, stacks, entries, mappings, differences, .. } = comparison;
    let (processes, stacks, entries, mappings) = (*processes, *stacks, *entries, *mappings);
    ui.record(&Line {
        kind: "compared",
        node,
        vtime_ns,
        processes,
        stacks,
        entries,
        mappings,
        differences: differences.len(),
    })?;
    ui.say(format!(
        "{:>14}  {}: {}, {}, {}",
        seconds(vtime_ns),
        printable(node),
        counted(processes, "process", "processes"),
        counted(stacks, "stack", "stacks"),
        counted(mappings, "mapping", "mappings"),
    ))?;
    for difference in differences {
        differs(ui, node, vtime_ns, difference)?;
    }
    Ok(())
}

fn differs(ui: &Ui, node: &str, vtime_ns: u64, difference: &Difference) -> anyhow::Result<()> {
    let Difference { pid, part, told, seen } = difference;
    let part = part.map_or_else(|| "process".to_owned(), |part| part.to_string());
    ui.record(&DifferenceLine { kind: "difference", node, vtime_ns, pid: *pid, part: &part, told, seen })?;
    ui.say(style::paint(style::BAD, format!("                {pid}: {part}")))?;
    let block = |who: &str, text: &str| -> anyhow::Result<()> {
        for line in text.lines() {
            ui.say(format!("                  {who} {}", printable(line)))?;
        }
        Ok(())
    };
    block("guest:  ", told)?;
    for value in seen.iter().take(VALUES_SHOWN_MAX) {
        block("outside:", value)?;
    }
    Ok(())
}
