//! Search for the first instruction at which two runs of the same machine or world differ.
//!
//! Both runs execute side by side and are compared at the points of a trail, i.e. at fixed vtimes. At the first point
//! that differs, the search looks at the journals since the last equal point. A journal lists what a CPU and its
//! machine exchanged. There are two cases:
//!
//! - The journals first differ at an *input*: a value loaded from a device, an interrupt, a skip of idle time, or RAM
//!   that a device wrote. The leak (a source of nondeterminism) is then in the machine, and the journal names the
//!   instruction, even if the leak never occurs again.
//! - Otherwise the CPU computed different results from the same inputs. The search repeats both runs from their start
//!   and compares them at more points in the interval. It repeats this until the last equal point and the first
//!   different point are one instruction apart.
//!
//! In a world, the state between the machines (frames on the wire, the nodes' clocks, the progress of the world's loop)
//! may differ first. The search then reports that state and its vtime.
//!
//! A correct engine is not affected by digests. But to compute a digest, Everett asks the engine for the list of
//! written pages, and the engine then drops TLB entries. Digests may therefore hide or reveal a defect of the engine's
//! caches. So a repeated run takes its digests at the same points as the first run. Between those points, the search
//! compares registers, devices and RAM directly.

use std::fmt;

use super::{Difference, differences};
use crate::digest::Digest;
use crate::machine::journal::{Entry, EntryKind};
use crate::machine::{Machine, Stop, Until};
use crate::ram::Ram;

/// Number of comparisons in one pass over an interval.
const POINTS: u64 = 64;
/// Maximum number of extra passes if a difference does not occur again in the repeated runs.
const ATTEMPTS: u32 = 3;

/// Identifies one of the two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first run.
    A,
    /// The second run.
    B,
}

/// Subject of a comparison: a machine, or a timeline, i.e. the machines of a world and the code that talks to their
/// guests. A run stops as `until` says or when its machines end. A stop has no effect on the execution.
pub trait Subject {
    /// Runs to a vtime, or to a count of the node ([`Subject::retired`]).
    fn run(&mut self, node: usize, until: &Until) -> Stop;
    /// Returns the node's count, in the unit of the clock mode (by default, retired instructions). A node that restarts
    /// gets a new machine; the count covers all machines that the node has had.
    fn retired(&self, node: usize) -> u64;
    /// Converts `vtime`, which the node's current machine counts from its power-on, to the world's vtime.
    fn world_ns(&self, node: usize, vtime: u64) -> u64;
    /// Returns the number of nodes.
    fn nodes(&self) -> usize;
    /// Returns a node's machine.
    fn machine(&mut self, node: usize) -> &mut Machine;
    /// Returns the digest of everything that determines the further execution.
    fn digest(&mut self) -> Digest;
    /// Returns the digests of the state between the machines (the wire, for example), with names. Does not query the
    /// engine.
    fn between(&self) -> Vec<(String, Digest)> {
        Vec::new()
    }
}

impl Subject for Machine {
    fn run(&mut self, _: usize, until: &Until) -> Stop {
        loop {
            match Machine::run(self, until) {
                // Nobody reads the output.
                Stop::OutputFull(port) => drop(self.output().take_port(port)),
                stop => return stop,
            }
        }
    }
    fn retired(&self, _: usize) -> u64 {
        self.icount()
    }
    fn world_ns(&self, _: usize, vtime: u64) -> u64 {
        vtime
    }
    fn nodes(&self) -> usize {
        1
    }
    fn machine(&mut self, _: usize) -> &mut Machine {
        self
    }
    fn digest(&mut self) -> Digest {
        Machine::digest(self)
    }
}

/// Cause of a difference between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The machines differed before the first instruction.
    Construction,
    /// The machines gave the CPUs different inputs.
    Input {
        /// Input of the first run; `None` if the first run got no further input in the interval.
        a: Option<Entry>,
        /// Input of the second run; `None` if the second run got no further input in the interval.
        b: Option<Entry>,
    },
    /// The CPUs computed different results from the same inputs.
    Execution,
    /// All machines were equal, but the state between them was not. `differences` then lists the differing parts of
    /// that state. `vtime` is the world's vtime at which the search found them. `icount` and `rip` describe machine
    /// `node` at that vtime, although this machine does not differ.
    Between,
    /// The difference did not occur again when the runs were repeated. `icount` is then the start of the interval to
    /// which the search had narrowed the difference.
    NotRepeatable,
}

/// The first difference between two runs.
#[derive(Debug, Clone)]
pub struct Divergence {
    /// Number of the node that differs.
    pub node: usize,
    /// The node's count before the instruction at which the runs differ, in the unit of the clock mode (by default,
    /// retired instructions).
    pub icount: u64,
    /// The node's vtime at that instruction, in nanoseconds since its last power-on.
    pub vtime: u64,
    /// Address of the instruction in the first and in the second run.
    pub rip: (u64, u64),
    /// Cause of the difference.
    pub cause: Cause,
    /// Differences between the states after the instruction. If the difference did not occur again, these are the
    /// differences at the next point of the trail.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |entry: &Option<Entry>| match entry {
            Some(entry) if entry.icount == self.icount => entry.to_string(),
            Some(entry) => format!("no input there; next: {entry}"),
            None => "no input there".to_owned(),
        };
        if self.cause == Cause::Between {
            writeln!(f, "vtime {} ns", self.vtime)?;
        } else {
            writeln!(f, "instruction {} at {:#x}, vtime {} ns", self.icount, self.rip.0, self.vtime)?;
        }
        match &self.cause {
            Cause::Construction => writeln!(f, "the machines differ before the first instruction")?,
            Cause::Input { a, b } => {
                writeln!(f, "the machines gave different inputs")?;
                writeln!(f, "  first:  {}", show(a))?;
                writeln!(f, "  second: {}", show(b))?;
            }
            Cause::Execution => writeln!(f, "the CPUs computed differently from equal inputs")?,
            Cause::Between => writeln!(f, "the machines were equal, but the state between them was not")?,
            Cause::NotRepeatable => writeln!(f, "the difference did not occur again in repeated runs")?,
        }
        self.differences.iter().try_for_each(|difference| writeln!(f, "  {difference}"))
    }
}

/// Finds the first instruction at which two runs differ within `horizon_ns` of vtime. Compares them every
/// `interval_ns`. Each call of `make` returns a new subject, made in the same way. Returns `None` if the runs do not
/// differ.
///
/// # Errors
/// Returns the errors of `make`.
pub fn first_difference<S: Subject, X>(
    make: &mut dyn FnMut(Side) -> Result<S, X>,
    horizon_ns: u64,
    interval_ns: u64,
) -> Result<Option<Divergence>, X> {
    let mut pair = Pair::new(make)?;
    if !pair.equal() {
        let mut divergence = pair.divergence(0, 0, Cause::Construction);
        divergence.differences.extend(pair.differences_between());
        return Ok(Some(divergence));
    }
    let mut equal = Equal { interval_ns: interval_ns.max(1), vtime: 0, end_ns: 0 };
    loop {
        let at = horizon_ns.min(equal.vtime.saturating_add(equal.interval_ns));
        equal.end_ns = at;
        pair.run(&Until::vtime(at));
        // Different inputs count as a difference even if the states are equal again.
        if !pair.equal() || pair.first_input().is_some() {
            break;
        }
        if at >= horizon_ns {
            return Ok(None);
        }
        equal.vtime = at;
        pair.clear_journals();
    }
    let input = pair.first_input();
    if pair.a.nodes() > 1 || !pair.differences_between().is_empty() {
        let seen = input.and_then(|(node, a, b)| {
            Some(pair.world_ns(node, a.into_iter().chain(b).min_by_key(|e| e.vtime)?))
        });
        match first_part(make, equal)? {
            // The different state between the machines may have caused the node's different input.
            Some(Part::Between(divergence)) if seen.is_none_or(|seen| divergence.vtime <= seen) => {
                return Ok(Some(divergence));
            }
            Some(Part::Node(node)) => pair.node = node,
            Some(Part::Between(_)) | None => {}
        }
    }
    match input {
        Some((node, a, b)) => {
            pair.node = node;
            Ok(Some(locate_input(make, pair, equal, a, b)?))
        }
        None => Ok(Some(locate_execution(make, pair, equal)?)),
    }
}

/// The last point of the trail at which both runs were equal.
#[derive(Debug, Clone, Copy)]
struct Equal {
    interval_ns: u64,
    vtime: u64,
    /// vtime of the next point, at which the runs differed.
    end_ns: u64,
}

impl Equal {
    /// Returns the conditions that stop a run at the count `icount`, which lies between this point and the next. If the
    /// CPU is idle and does not reach the count, the run stops at the next point.
    fn until(&self, icount: u64) -> Until {
        Until { vtime: self.end_ns, ..Until::icount(icount) }
    }
}

/// Builds the result for an input that the journal names. If the leak occurs again in a repeated run, the result has
/// the states after the instruction.
fn locate_input<S: Subject, X>(
    make: &mut dyn FnMut(Side) -> Result<S, X>,
    mut found: Pair<S>,
    equal: Equal,
    a: Option<Entry>,
    b: Option<Entry>,
) -> Result<Divergence, X> {
    // A restart clears the journal, so all entries count from the start of the current machine.
    let ahead = found.a.retired(found.node).wrapping_sub(found.a.machine(found.node).icount());
    let of_node = |entry: Entry| Entry { icount: entry.icount.wrapping_add(ahead), ..entry };
    let (a, b) = (a.map(of_node), b.map(of_node));
    let first = a.into_iter().chain(b).min_by_key(|entry| entry.icount);
    let (icount, vtime, rip) = first.map_or((0, 0, 0), |entry| (entry.icount, entry.vtime, entry.rip));
    let cause = Cause::Input { a, b };
    let mut again = Pair::at(make, equal, found.node)?;
    again.run(&equal.until(icount + 1));
    let mut divergence = again.divergence(icount, vtime, cause);
    if divergence.differences.is_empty() {
        divergence.differences = found.differences();
    }
    divergence.rip = (rip, rip);
    Ok(divergence)
}

/// Part of a world that differs first.
enum Part {
    /// A node's machine.
    Node(usize),
    /// The state between the machines. The result needs no further search.
    Between(Divergence),
}

/// Finds the part of a world that differs first, by narrowing the interval in vtime. Returns `None` if the difference
/// did not occur again.
fn first_part<S: Subject, X>(
    make: &mut dyn FnMut(Side) -> Result<S, X>,
    equal: Equal,
) -> Result<Option<Part>, X> {
    let (mut low, mut high) = (equal.vtime, equal.end_ns);
    let mut first = None;
    loop {
        let mut pair = Pair::at(make, equal, 0)?;
        let step = (high - low).div_ceil(POINTS).max(1);
        let mut last = low;
        pair.run(&Until::vtime(low));
        let parted = loop {
            let next = high.min(last + step);
            pair.run(&Until::vtime(next));
            if let Some(part) = pair.unlike_part(next) {
                break Some((part, next));
            }
            if next >= high {
                break None;
            }
            last = next;
        };
        let Some((part, next)) = parted else { return Ok(first) };
        first = Some(part);
        if next - last <= 1 {
            return Ok(first);
        }
        (low, high) = (last, next);
    }
}

/// Narrows the interval to one instruction.
fn locate_execution<S: Subject, X>(
    make: &mut dyn FnMut(Side) -> Result<S, X>,
    mut found: Pair<S>,
    equal: Equal,
) -> Result<Divergence, X> {
    let node = found.node;
    let equal_count = Pair::at(make, equal, node)?.retired();
    let (mut low, mut high) = (equal_count, found.retired().max(equal_count + 1));
    let mut attempts = 0;
    loop {
        let mut pair = Pair::at(make, equal, node)?;
        pair.run(&equal.until(low));
        let step = (high - low).div_ceil(POINTS);
        let mut last = low;
        let parted = loop {
            let next = high.min(last + step);
            let (rip, vtime) = (pair.rip(), pair.vtime());
            pair.run(&equal.until(next));
            if !pair.looks_equal() {
                break Some((next, rip, vtime));
            }
            if next >= high {
                break None;
            }
            last = next;
        };
        match parted {
            Some((next, rip, vtime)) if next - last <= 1 => {
                // The repeated runs can show an input that the journals of the first two runs lack. This happens if the
                // node restarted in the interval, because a restart clears the journal.
                let cause = match pair.first_input_of(node) {
                    Some((a, b)) => Cause::Input { a, b },
                    None => Cause::Execution,
                };
                let mut divergence = pair.divergence(last, vtime, cause);
                divergence.rip = rip;
                return Ok(divergence);
            }
            Some((next, ..)) => (low, high) = (last, next),
            None if attempts < ATTEMPTS => attempts += 1,
            None => {
                let vtime = found.vtime();
                return Ok(found.divergence(low, vtime, Cause::NotRepeatable));
            }
        }
    }
}

/// Two runs that execute side by side.
struct Pair<S> {
    a: S,
    b: S,
    /// Number of the node to examine.
    node: usize,
}

impl<S: Subject> Pair<S> {
    fn new<X>(make: &mut dyn FnMut(Side) -> Result<S, X>) -> Result<Pair<S>, X> {
        let (mut a, mut b) = (make(Side::A)?, make(Side::B)?);
        for subject in [&mut a, &mut b] {
            (0..subject.nodes()).for_each(|node| subject.machine(node).keep_journal(true));
        }
        Ok(Pair { a, b, node: 0 })
    }
    /// Repeats both runs up to a point of the trail, with digests at the same points as in the first pair.
    fn at<X>(make: &mut dyn FnMut(Side) -> Result<S, X>, point: Equal, node: usize) -> Result<Pair<S>, X> {
        let mut pair = Pair::new(make)?;
        pair.node = node;
        let mut at = 0;
        loop {
            pair.equal();
            if at >= point.vtime {
                return Ok(pair);
            }
            pair.clear_journals();
            at = point.vtime.min(at.saturating_add(point.interval_ns));
            pair.run(&Until::vtime(at));
        }
    }
    fn run(&mut self, until: &Until) {
        self.a.run(self.node, until);
        self.b.run(self.node, until);
    }
    fn machines(&mut self) -> (&mut Machine, &mut Machine) {
        (self.a.machine(self.node), self.b.machine(self.node))
    }
    fn equal(&mut self) -> bool {
        self.a.digest() == self.b.digest()
    }
    /// True if the node is equal in both runs. The comparison does not affect the engines.
    fn looks_equal(&mut self) -> bool {
        let (a, b) = self.machines();
        a.compared_registers() == b.compared_registers()
            && a.state() == b.state()
            && same_memory(a.ram(), b.ram())
            && a.disk_digests() == b.disk_digests()
    }
    /// Returns the first node that differs. If all nodes are equal, compares the state between the machines instead.
    /// Returns `None` if that is equal, too. `vtime` is the world's current vtime.
    fn unlike_part(&mut self, vtime: u64) -> Option<Part> {
        if let Some(node) = self.unlike_node() {
            return Some(Part::Node(node));
        }
        let differences = self.differences_between();
        (!differences.is_empty()).then(|| {
            let divergence = self.divergence(self.a.retired(self.node), vtime, Cause::Between);
            Part::Between(Divergence { differences, ..divergence })
        })
    }
    /// Returns the differences of the state between the machines.
    fn differences_between(&self) -> Vec<Difference> {
        let (a, b) = (self.a.between(), self.b.between());
        let pairs = a.into_iter().zip(b).filter(|(a, b)| a != b);
        pairs.map(|((name, a), (_, b))| Difference { name, a: a.to_string(), b: b.to_string() }).collect()
    }
    /// Returns the number of the first node that differs.
    fn unlike_node(&mut self) -> Option<usize> {
        let looked_at = self.node;
        let unlike = (0..self.a.nodes()).find(|&node| {
            self.node = node;
            !self.looks_equal()
        });
        self.node = looked_at;
        unlike
    }
    /// Returns the node's count in the run that is further ahead.
    fn retired(&self) -> u64 {
        self.a.retired(self.node).max(self.b.retired(self.node))
    }
    fn vtime(&mut self) -> u64 {
        self.machines().0.vtime()
    }
    /// Returns the world's vtime of an entry in a node's journal.
    fn world_ns(&self, node: usize, entry: Entry) -> u64 {
        self.a.world_ns(node, entry.vtime)
    }
    fn rip(&mut self) -> (u64, u64) {
        let (a, b) = self.machines();
        (a.cpu().rip, b.cpu().rip)
    }
    fn differences(&mut self) -> Vec<Difference> {
        let (a, b) = self.machines();
        differences(a, b)
    }
    fn divergence(&mut self, icount: u64, vtime: u64, cause: Cause) -> Divergence {
        Divergence { node: self.node, icount, vtime, rip: self.rip(), cause, differences: self.differences() }
    }
    fn clear_journals(&mut self) {
        for subject in [&mut self.a, &mut self.b] {
            for node in 0..subject.nodes() {
                if let Some(journal) = subject.machine(node).journal() {
                    journal.clear();
                }
            }
        }
    }

    /// Returns the first inputs that differ, and their node, if they show that the leak is in a machine and not in a
    /// CPU. Another node may have caused a node's different input by sending something different, so the input with the
    /// earliest vtime is returned.
    fn first_input(&mut self) -> Option<(usize, Option<Entry>, Option<Entry>)> {
        let found = (0..self.a.nodes()).filter_map(|node| {
            let (a, b) = self.first_input_of(node)?;
            // The journals hold the inputs since the last equal point. The conversion uses the node's current clock,
            // even if the clock was changed since that point.
            let vtime = a.iter().chain(&b).map(|entry| entry.vtime).min()?;
            Some((self.a.world_ns(node, vtime), node, a, b))
        });
        found.min_by_key(|&(vtime, node, ..)| (vtime, node)).map(|(_, node, a, b)| (node, a, b))
    }

    fn first_input_of(&mut self, node: usize) -> Option<(Option<Entry>, Option<Entry>)> {
        let (a, b) = (self.a.machine(node).journal()?, self.b.machine(node).journal()?);
        let (a, b) = (a.entries(), b.entries());
        let at = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i))?;
        let (a, b) = (a.get(at).copied(), b.get(at).copied());
        let from_machine = match (a.map(|e| e.kind), b.map(|e| e.kind)) {
            // The same access returned different values.
            (Some(EntryKind::Mmio { gpa: x, .. }), Some(EntryKind::Mmio { gpa: y, .. })) => {
                x == y && same_place(a, b)
            }
            (Some(EntryKind::Pio { port: x, .. }), Some(EntryKind::Pio { port: y, .. })) => {
                x == y && same_place(a, b)
            }
            // The entries have equal kinds and counts, but belong to different instructions: the CPUs differed before.
            (x, y) if x == y && a.map(|e| e.icount) == b.map(|e| e.icount) => false,
            // The entries differ in kind or in count. The earlier entry shows a leak in the machine only if the machine
            // caused that entry, and not the CPU.
            (x, y) => {
                let first = match (a, b) {
                    (Some(a), Some(b)) if a.icount <= b.icount => x,
                    (Some(_), None) => x,
                    _ => y,
                };
                matches!(
                    first,
                    Some(
                        EntryKind::Interrupt { .. } | EntryKind::Skip { .. } | EntryKind::DeviceWrite { .. }
                    )
                )
            }
        };
        from_machine.then_some((a, b))
    }
}

/// Number of bytes per comparison step.
const CHUNK: usize = 1 << 20;

fn same_memory(a: &Ram, b: &Ram) -> bool {
    let (mut x, mut y) = (vec![0; CHUNK], vec![0; CHUNK]);
    a.len() == b.len()
        && (0..a.len()).step_by(CHUNK).all(|at| {
            let len = CHUNK.min((a.len() - at) as usize);
            // Both ranges are RAM, so the reads succeed.
            a.read(at, &mut x[..len]) && b.read(at, &mut y[..len]) && x[..len] == y[..len]
        })
}

fn same_place(a: Option<Entry>, b: Option<Entry>) -> bool {
    a.map(|e| (e.icount, e.rip)) == b.map(|e| (e.icount, e.rip))
}
