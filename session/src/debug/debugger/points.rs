//! Breakpoints and watchpoints.

use std::collections::{BTreeMap, BTreeSet};

use everett_cpu::{Watchpoint, WatchpointHit};
use everett_inspect::Kernel;
use regex::Regex;
use regex::bytes::Regex as BytesRegex;

use super::Debugger;
use super::answer::{Answer, Breakpoint};
use super::command::Break;
use super::entry::{Entry, Happened};
use super::error::Refused;
use super::index::{Index, UNKNOWN, UNLISTED};
use super::limits::{ADDRESSES_MAX, BREAKPOINTS_MAX};
use super::looks::no_breakpoints;
use super::sight::running;
use crate::debug::cursor::Cursor;
use crate::probes::code::{Code, View};
use crate::probes::probe::{KERNEL, Probe};
use everett_input::causes::with_causes;

/// All breakpoints of a debugger.
#[derive(Default)]
pub(super) struct Points {
    all: Vec<Point>,
    /// Number of the last breakpoint. Numbers are not used again.
    last: u32,
    /// Number of places of code that were looked up. Addresses of a place are remembered under its number.
    looked_up: usize,
}

struct Point {
    number: u32,
    /// Text of the user.
    text: String,
    what: What,
}

enum What {
    Message(BytesRegex),
    Log(Regex, Option<String>),
    State(String),
    /// Addresses by node.
    Code(Box<Probe>, BTreeMap<usize, BTreeSet<u64>>),
    Store {
        node: usize,
        pid: Option<u32>,
        point: Watchpoint,
    },
}

impl Points {
    /// Returns the number of the first breakpoint at an entry.
    pub(super) fn at_entry(&self, entry: &Entry) -> Option<u32> {
        let stops = |point: &&Point| match &point.what {
            What::Message(regex) => {
                let data = entry.message().and_then(|message| message.data.as_deref());
                data.is_some_and(|data| regex.is_match(data))
            }
            What::Log(regex, node) => is_log(entry, regex, node.as_deref()),
            What::State(name) => {
                matches!(&entry.what, Happened::State(change) if change.variable == *name)
            }
            What::Code(..) | What::Store { .. } => false,
        };
        self.all.iter().find(stops).map(|point| point.number)
    }

    /// Returns the vtime from which hits of breakpoints at entries can be missing, in nanoseconds, and what is missing.
    pub(super) fn bound(&self, index: &Index) -> Option<(u64, &'static str)> {
        let has = |is: fn(&What) -> bool| self.all.iter().any(|point| is(&point.what));
        let entries = has(|what| matches!(what, What::Message(_) | What::Log(..) | What::State(_)));
        let data = has(|what| matches!(what, What::Message(_)));
        let cut = index.cut_ns().filter(|_| entries).map(|cut_ns| (cut_ns, UNLISTED));
        let unknown = index.unknown_ns().filter(|_| data).map(|cut_ns| (cut_ns, UNKNOWN));
        cut.into_iter().chain(unknown).min()
    }

    /// True if a breakpoint stops at code or stores.
    pub(super) fn stop_at_code(&self) -> bool {
        self.all.iter().any(|point| matches!(point.what, What::Code(..) | What::Store { .. }))
    }

    /// Returns the addresses of a node's breakpoints.
    pub(super) fn addresses(&self, node: usize) -> Vec<u64> {
        let of = |point: &Point| match &point.what {
            What::Code(_, addresses) => addresses.get(&node).cloned(),
            _ => None,
        };
        let all: BTreeSet<u64> = self.all.iter().filter_map(of).flatten().collect();
        all.into_iter().collect()
    }

    /// Returns a node's watchpoints.
    pub(super) fn watched(&self, node: usize) -> Vec<Watchpoint> {
        let of = |point: &Point| match point.what {
            What::Store { node: of, point, .. } if of == node => Some(point),
            _ => None,
        };
        self.all.iter().filter_map(of).collect()
    }

    /// Returns the number of the first breakpoint that a node's next instruction hits.
    pub(super) fn at_code(
        &self,
        code: &mut Code<'_>,
        kernel: &Kernel,
        cursor: &Cursor<'_>,
        node: usize,
    ) -> Option<u32> {
        let rip = cursor.timeline().machine(node).cpu().rip;
        for point in &self.all {
            let What::Code(probe, addresses) = &point.what else { continue };
            let is_at = addresses.get(&node).is_some_and(|addresses| addresses.contains(&rip));
            if !is_at || !code.is_hit(cursor.timeline(), node, probe) {
                continue;
            }
            let Some(condition) = &probe.condition else { return Some(point.number) };
            let running = running(kernel, cursor, node).filter(|(.., is_user)| *is_user);
            let thread = running.as_ref().map(|(process, thread, _)| (process, thread));
            let view = View { timeline: cursor.timeline(), node, thread };
            // A condition without a value stops, so that no hit is lost.
            if code.holds(view, condition).unwrap_or(true) {
                return Some(point.number);
            }
        }
        None
    }

    /// Returns the number of the first watchpoint that one of these accesses hits, and the access.
    pub(super) fn at_store(
        &self,
        kernel: &Kernel,
        cursor: &Cursor<'_>,
        node: usize,
        hits: &[WatchpointHit],
    ) -> Option<(u32, WatchpointHit)> {
        for point in &self.all {
            let What::Store { node: of, pid, point: Watchpoint { address, len, .. } } = point.what else {
                continue;
            };
            let meets = |hit: &&WatchpointHit| {
                let last = hit.address.saturating_add(u64::from(hit.size).saturating_sub(1));
                hit.store && hit.address < address.saturating_add(len) && last >= address
            };
            let Some(hit) = hits.iter().find(meets).filter(|_| of == node) else { continue };
            // A store stops also if the process cannot be read, so that no hit is lost.
            let runs = |pid| running(kernel, cursor, node).is_none_or(|(process, ..)| process.pid == pid);
            if pid.is_none_or(runs) {
                return Some((point.number, *hit));
            }
        }
        None
    }

    /// Lists the breakpoints. `nodes` are the names of the nodes.
    pub(super) fn list(&self, nodes: &[String]) -> Vec<Breakpoint> {
        let named = |(node, count): (usize, usize)| (nodes.get(node).cloned().unwrap_or_default(), count);
        let places = |point: &Point| match &point.what {
            What::Code(_, addresses) => {
                addresses.iter().map(|(node, all)| named((*node, all.len()))).collect()
            }
            What::Store { node, .. } => vec![named((*node, 1))],
            _ => Vec::new(),
        };
        let line = |point: &Point| Breakpoint {
            number: point.number,
            text: point.text.clone(),
            places: places(point),
        };
        self.all.iter().map(line).collect()
    }
}

/// True if an entry is a log line that matches, on a node or on any node.
pub(super) fn is_log(entry: &Entry, regex: &Regex, node: Option<&str>) -> bool {
    entry.log().is_some_and(|(text, of)| node.is_none_or(|node| node == of) && regex.is_match(text))
}

impl Debugger<'_> {
    /// Sets a breakpoint.
    pub(super) fn set_point(&mut self, what: &Break, text: &str) -> anyhow::Result<Answer> {
        if self.points.all.len() >= BREAKPOINTS_MAX {
            return Err(Refused::because(format!("there are already {BREAKPOINTS_MAX} breakpoints")));
        }
        let number = self.points.last + 1;
        let what = match what {
            Break::Message(regex) => What::Message(regex.clone()),
            Break::Log(regex, node) => {
                if let Some(node) = node {
                    self.node_named(node)?;
                }
                What::Log(regex.clone(), node.clone())
            }
            Break::State(name) => {
                self.unless_unknown(name)?;
                What::State(name.clone())
            }
            Break::Code(probe, node) => {
                let addresses = self.addresses_of(probe, node.as_deref())?;
                What::Code(probe.clone(), addresses)
            }
            Break::Store(expression) => {
                let object = self.look(|code, view| code.object(view, expression))?;
                let (address, len) = object.map_err(|error| Refused::because(with_causes(&error)))?;
                let point = Watchpoint { address, len, loads: false, stores: true };
                What::Store { node: self.node, pid: self.pid, point }
            }
        };
        self.points.last = number;
        self.points.all.push(Point { number, text: text.to_owned(), what });
        let set =
            self.points.list(&self.nodes).pop().ok_or_else(|| Refused::because("no breakpoint was set"))?;
        Ok(Answer::Breakpoint(set))
    }

    /// Returns an error if no state variable has this name on the timeline.
    fn unless_unknown(&self, name: &str) -> anyhow::Result<()> {
        let entries = self.index.entries().iter();
        let names: BTreeSet<&str> = entries
            .filter_map(|entry| match &entry.what {
                Happened::State(change) => Some(change.variable.as_str()),
                _ => None,
            })
            .collect();
        if names.contains(name) {
            return Ok(());
        }
        if self.probe_variables().iter().any(|probe| probe == name) {
            return Err(Refused::because(format!(
                "the probe {name} sets this state variable, and a session lists no variables of probes; break at the \
                 probe's place instead"
            )));
        }
        let known: Vec<&str> = names.into_iter().collect();
        let known = match known.is_empty() {
            true => "it sets no variables".to_owned(),
            false => format!("its variables are {}", known.join(", ")),
        };
        let part =
            if self.index.cut_ns().is_some() { "the listed part of this timeline" } else { "this timeline" };
        Err(Refused::because(format!("{part} sets no state variable {name}; {known}")))
    }

    /// Returns the addresses of a place of code, by node.
    fn addresses_of(
        &mut self,
        probe: &Probe,
        node: Option<&str>,
    ) -> anyhow::Result<BTreeMap<usize, BTreeSet<u64>>> {
        self.points.looked_up += 1;
        let Some(code) = &self.code else { return Err(no_breakpoints()) };
        let nodes = match node {
            Some(node) => vec![self.node_named(node)?],
            None => (0..self.nodes.len()).collect(),
        };
        let mut found = BTreeMap::new();
        for node in nodes {
            let addresses = code.addresses(node, (self.points.looked_up, probe)).map_err(Refused::because)?;
            if self.points.addresses(node).len() + addresses.len() > ADDRESSES_MAX {
                return Err(Refused::because(format!(
                    "a node has at most {ADDRESSES_MAX} addresses with breakpoints"
                )));
            }
            if !addresses.is_empty() {
                found.insert(node, addresses);
            }
        }
        match found.is_empty() {
            true if probe.program != KERNEL => {
                let missing =
                    if code.is_full() { "; some programs are not known, because too many ran" } else { "" };
                let program = &probe.program;
                Err(Refused::because(format!("no program named {program} ran on this timeline{missing}")))
            }
            _ => Ok(found),
        }
    }

    /// Deletes a breakpoint, or all.
    pub(super) fn delete(&mut self, number: Option<u32>) -> anyhow::Result<Answer> {
        let is_deleted = |point: &Point| number.is_none_or(|number| number == point.number);
        let (deleted, kept): (Vec<Point>, Vec<Point>) =
            std::mem::take(&mut self.points.all).into_iter().partition(is_deleted);
        self.points.all = kept;
        match number {
            Some(number) if deleted.is_empty() => {
                Err(Refused::because(format!("there is no breakpoint {number}")))
            }
            _ => Ok(Answer::Deleted { numbers: deleted.into_iter().map(|point| point.number).collect() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_breakpoints_at_what_is_missing_end_there() {
        let points = |what: Vec<What>| {
            let point = |what| Point { number: 1, text: String::new(), what };
            Points { all: what.into_iter().map(point).collect(), ..Points::default() }
        };
        let message = || What::Message(BytesRegex::new("a").unwrap());
        let state = || What::State("role".to_owned());
        let store = || {
            let point = Watchpoint { address: 0, len: 8, loads: false, stores: true };
            What::Store { node: 0, pid: None, point }
        };
        let bound = |what: Vec<What>, index: &Index| points(what).bound(index).map(|(cut_ns, _)| cut_ns);
        let index = Index::cut_at(Some(9), Some(5));
        assert_eq!(bound(vec![store()], &index), None);
        assert_eq!(bound(vec![store(), state()], &index), Some(9));
        assert_eq!(bound(vec![state(), message()], &index), Some(5));
        assert_eq!(bound(vec![message()], &Index::default()), None);
    }
}
