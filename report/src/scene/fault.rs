//! Faults as bars of a diagram, and in words.

use everett_fault::FaultKind;
use everett_input::units::{parse_duration_ns, show_duration_ns};
use serde::Serialize;
use serde_json::Value;

use super::vtime;
use crate::clip::clip;

/// Maximum length of a name in the description of a fault, in characters.
const NAME_CHARS_MAX: usize = 60;

/// Applied fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Vtime at which the fault begins, in nanoseconds.
    pub begin_ns: u64,
    /// Vtime at which the fault ends, in nanoseconds. `None` if the plan gives no duration.
    pub end_ns: Option<u64>,
    /// Kind of the fault, as in fault plans.
    pub kind: String,
    /// Indices of the affected nodes. Empty if the fault affects all nodes.
    pub lanes: Vec<u16>,
    /// Effect of the fault, without its times, such as `db lost power`.
    pub words: String,
    /// Line of the fault plan.
    pub line: String,
}

impl Bar {
    /// Reads a line of evidence: vtime, number of the fault, and line of the plan. `None` if the line does not have
    /// this form.
    pub(super) fn of_line(nodes: &[String], line: &str) -> Option<Bar> {
        let (at_ns, rest) = vtime::at(line)?;
        let json = rest.split_once(' ')?.1;
        Bar::of(nodes, at_ns, &serde_json::from_str(json).ok()?)
    }

    /// Reads an entry of a plan. Times in plans are counted from `root_ns`. `None` if the entry has no valid time or no
    /// kind.
    #[must_use]
    pub fn of_entry(nodes: &[String], root_ns: u64, entry: &Value) -> Option<Bar> {
        let at = entry.get("at").and_then(Value::as_str)?;
        Bar::of(nodes, root_ns.checked_add(parse_duration_ns(at).ok()?)?, entry)
    }

    fn of(nodes: &[String], begin_ns: u64, entry: &Value) -> Option<Bar> {
        let word = |name: &str| entry.get(name).and_then(Value::as_str);
        let kind = word("fault")?;
        let lasts = word("for").and_then(|text| parse_duration_ns(text).ok());
        let group = |name: &str| Group::of(entry.pointer(&format!("/links/{name}")));
        let (from, to) = (group("from"), group("to"));
        let both_ways = entry.pointer("/links/both_ways").and_then(Value::as_bool).unwrap_or(true);
        let node = word("node").map(short);
        let named: Vec<&String> = match &node {
            Some(node) => vec![node],
            None => from.0.iter().chain(&to.0).collect(),
        };
        let place = |name: &&String| nodes.iter().position(|node| node == *name);
        let mut lanes: Vec<u16> =
            named.iter().filter_map(place).filter_map(|lane| u16::try_from(lane).ok()).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let target = match node {
            Some(node) => Target::Node(node),
            None => Target::Links { from, to, both_ways },
        };
        let words = match FaultKind::named(kind) {
            Some(known) => words(known, &target, entry),
            // A plan of another version of Everett may name a kind that this version does not know.
            None => format!("{} {}", short(kind), target.place()),
        };
        Some(Bar {
            begin_ns,
            end_ns: lasts.and_then(|ns| begin_ns.checked_add(ns)),
            kind: short(kind),
            lanes,
            words,
            line: entry.to_string(),
        })
    }

    /// Describes the fault with its times, such as `db lost power at 2.77 s for 633 ms`.
    #[must_use]
    pub fn told(&self) -> String {
        let lasts = match self.end_ns {
            Some(end) => format!(" for {}", brief(end - self.begin_ns)),
            None => String::new(),
        };
        format!("{} at {}{lasts}", self.words, brief(self.begin_ns))
    }
}

/// Formats a duration of at least 1 ms with three significant digits, and a shorter one with [`show_duration_ns`].
pub(super) fn brief(ns: u64) -> String {
    let unit = match ns {
        0..1_000_000 => return show_duration_ns(ns),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = ns as f64 / unit.0;
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", unit.1)
}

/// Names of the nodes at one end of links. Empty for all nodes.
struct Group(Vec<String>);

impl Group {
    fn of(value: Option<&Value>) -> Group {
        let names = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Group(names.iter().filter_map(Value::as_str).map(short).collect())
    }

    fn told(&self) -> String {
        match self.0.as_slice() {
            [] => "every node".to_owned(),
            [one] => one.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        }
    }
}

/// Target of a fault: the node or the links that its line names.
enum Target {
    Node(String),
    Links { from: Group, to: Group, both_ways: bool },
}

impl Target {
    fn node(&self) -> &str {
        match self {
            Target::Node(node) => node,
            Target::Links { .. } => "a node",
        }
    }

    fn place(&self) -> String {
        match self {
            Target::Node(node) => format!("on {node}"),
            Target::Links { from, to, both_ways } => match (from.0.is_empty(), to.0.is_empty(), both_ways) {
                (true, true, _) => "between all nodes".to_owned(),
                (_, _, true) => format!("between {} and {}", from.told(), to.told()),
                (_, _, false) => format!("from {} to {}", from.told(), to.told()),
            },
        }
    }

    fn cut(&self) -> String {
        match self {
            Target::Links { from, to, both_ways: true } if !from.0.is_empty() && !to.0.is_empty() => {
                let verb = if from.0.len() == 1 { "was" } else { "were" };
                format!("{} {verb} cut off from {}", from.told(), to.told())
            }
            Target::Links { .. } | Target::Node(_) => format!("nothing came through {}", self.place()),
        }
    }
}

/// Returns words for what a fault of this kind does.
fn words(kind: FaultKind, target: &Target, entry: &Value) -> String {
    let percent = entry.get("ppm").and_then(Value::as_u64).unwrap_or(0) as f64 / 10_000.0;
    let (node, place) = (target.node(), target.place());
    match kind {
        FaultKind::Latency => format!("messages {place} were slow"),
        FaultKind::Loss => format!("{percent} % of messages {place} were lost"),
        FaultKind::Duplicate => format!("{percent} % of messages {place} arrived twice"),
        FaultKind::Reorder => format!("{percent} % of messages {place} were overtaken"),
        FaultKind::Corrupt => format!("{percent} % of messages {place} were corrupted"),
        FaultKind::Bandwidth => format!("the bandwidth {place} was low"),
        FaultKind::Partition => target.cut(),
        FaultKind::Clog => format!("{node}'s network card was blocked"),
        FaultKind::PowerLoss => format!("{node} lost power"),
        FaultKind::Reset => format!("{node} was reset"),
        FaultKind::Pause => format!("{node} stood still"),
        FaultKind::SlowCpu => format!("{node} ran at {percent} % of its speed"),
        FaultKind::DiskError => format!("{node}'s disk failed {percent} % of its requests"),
        FaultKind::DiskLatency => format!("{node}'s disk was slow"),
        FaultKind::DiskFull => format!("{node}'s disk was full"),
        FaultKind::BitRot => format!("bits on {node}'s disk flipped"),
        FaultKind::ClockDrift => format!("{node}'s clock ran at another speed"),
        FaultKind::ClockStep => format!("{node}'s clock jumped"),
        FaultKind::Stalls => format!("{node} stalled now and then"),
        FaultKind::Priorities => format!("the priorities of processes on {node} changed"),
        FaultKind::Reseed => format!("{node} was reseeded"),
        FaultKind::Command => format!("a command ran on {node}"),
        FaultKind::RestartService => format!("a service of {node} was restarted"),
    }
}

fn short(text: &str) -> String {
    clip(text, NAME_CHARS_MAX)
}
