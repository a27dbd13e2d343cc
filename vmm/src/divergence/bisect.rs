//! The first instruction at which two runs of the same construction part.
//!
//! Both are run side by side and compared at each point of a trail. At the first difference there are two cases. When the
//! journals since the last equal point part at an *input* (a value loaded from a device, an interrupt, a skip of idle time),
//! the leak is in the machine and the journal names the instruction, even of a leak that never comes twice. Otherwise the
//! CPU computed differently from the same inputs: both are run again from their beginning and compared more and more densely
//! between the last equal point and the first different one, until those are one instruction apart. In a world, what is
//! between the machines (the wire, clocks, the round) may part first: then that is named, and when.
//!
//! Digests are invisible to a sound engine, but a defect of its caches may come and go with them (dirty tracking touches the
//! TLB). So a repeated run takes its digests where the first one did, and between them only looks: registers, devices and
//! RAM of both are compared directly.

use std::fmt;

use vm_memory::{Bytes, GuestAddress};

use super::{Difference, differences};
use crate::digest::Digest;
use crate::engine::Engine;
use crate::machine::journal::{Entry, EntryKind};
use crate::machine::{Machine, Stop, Until};
use crate::ram::Ram;

/// Points in one refinement of an interval.
const POINTS: u64 = 64;
/// How often a pair is run again when a difference does not come back.
const ATTEMPTS: u32 = 3;

/// Which of the two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// Something that runs machines: a machine itself, or a session that also answers what guests say. It returns where `until`
/// says or at the machines' end, and does nothing else than it would do in a run that goes on.
pub trait Subject {
    /// What executes.
    type Engine: Engine;
    /// Run to a vtime, or until so many instructions of this node have retired.
    fn run(&mut self, node: usize, until: &Until<'_>) -> Stop;
    /// Instructions retired by this node, whatever machine it was.
    fn retired(&self, node: usize) -> u64;
    /// The world's vtime when this node's machine, as it is now, shows `vtime`.
    fn world_ns(&self, node: usize, vtime: u64) -> u64;
    /// How many nodes it has.
    fn nodes(&self) -> usize;
    /// A node's machine.
    fn machine(&mut self, node: usize) -> &mut Machine<Self::Engine>;
    /// The digest of everything that decides what happens next.
    fn digest(&mut self) -> Digest;
    /// The digests of what is between its machines, by name. No engine is involved.
    fn between(&self) -> Vec<(String, Digest)> {
        Vec::new()
    }
}

impl<E: Engine> Subject for Machine<E> {
    type Engine = E;
    fn run(&mut self, _: usize, until: &Until<'_>) -> Stop {
        loop {
            match Machine::run(self, until) {
                // Nobody listens.
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
    fn machine(&mut self, _: usize) -> &mut Machine<E> {
        self
    }
    fn digest(&mut self) -> Digest {
        Machine::digest(self)
    }
}

/// Where a difference came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The machines were different before the first instruction.
    Construction,
    /// The machine gave the CPUs different inputs: this in the first run, that in the second.
    Input {
        /// In the first run; `None` when it got nothing more in the interval.
        a: Option<Entry>,
        /// In the second run.
        b: Option<Entry>,
    },
    /// The CPUs computed differently from the same inputs.
    Execution,
    /// All machines were equal, and what is between them was not: the differences are its parts. The place is the world's
    /// vtime at which it was seen, and the node's where it was then.
    Between,
    /// The difference did not come back when the runs were repeated; the place is the interval's.
    NotRepeatable,
}

/// The first difference.
#[derive(Debug, Clone)]
pub struct Divergence {
    /// Which node.
    pub node: usize,
    /// Instructions of the node retired before the one with which the runs part.
    pub icount: u64,
    /// Nanoseconds of the node's vtime at that instruction: since it was last switched on.
    pub vtime: u64,
    /// Address of the instruction, in the first and in the second run.
    pub rip: (u64, u64),
    /// Where it came from.
    pub cause: Cause,
    /// The states after it; when the runs could not be repeated, at the next point of the trail.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |entry: &Option<Entry>| match entry {
            Some(entry) if entry.icount == self.icount => entry.to_string(),
            Some(entry) => format!("nothing there; next: {entry}"),
            None => "nothing there".to_owned(),
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
            Cause::Between => writeln!(f, "the machines were equal, and what is between them was not")?,
            Cause::NotRepeatable => writeln!(f, "the difference did not come back in repeated runs")?,
        }
        self.differences.iter().try_for_each(|difference| writeln!(f, "  {difference}"))
    }
}

/// Find the first instruction at which two runs part within `horizon_ns` of vtime, comparing each `interval_ns`.
/// `make` makes a fresh subject of the same construction each time. Returns `None` when they do not part.
///
/// # Errors
/// Those of `make`.
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
        // Inputs that differed without a lasting effect are a difference, too.
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
            // What a node got differently may have come of it.
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
    /// The next point, at which they were not.
    end_ns: u64,
}

impl Equal {
    /// To a count between this point and the next; a run that is idle there stops at the next point.
    fn until(&self, icount: u64) -> Until<'static> {
        Until { vtime: self.end_ns, ..Until::icount(icount) }
    }
}

/// The journal names the instruction; show the states after it if the leak comes back.
fn locate_input<S: Subject, X>(
    make: &mut dyn FnMut(Side) -> Result<S, X>,
    mut found: Pair<S>,
    equal: Equal,
    a: Option<Entry>,
    b: Option<Entry>,
) -> Result<Divergence, X> {
    // A restart clears the journal: what is in it was counted by the machine that is there now.
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

/// What parted first.
enum Part {
    /// A node's machine.
    Node(usize),
    /// Something between them, and that is all there is to say.
    Between(Divergence),
}

/// In a world: what parted first. The interval is narrowed by vtime. `None`: it did not come back.
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

/// Narrow the interval until it is one instruction.
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
                // Behind a restart in the interval the first pair's journals knew nothing of it.
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

/// Two runs side by side.
struct Pair<S> {
    a: S,
    b: S,
    /// The node that is looked at.
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
    /// A fresh pair at a point of the trail, with digests where the first pair had them.
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
    fn run(&mut self, until: &Until<'_>) {
        self.a.run(self.node, until);
        self.b.run(self.node, until);
    }
    fn machines(&mut self) -> (&mut Machine<S::Engine>, &mut Machine<S::Engine>) {
        (self.a.machine(self.node), self.b.machine(self.node))
    }
    fn equal(&mut self) -> bool {
        self.a.digest() == self.b.digest()
    }
    /// Whether the node is equal in both, without anything that an engine could notice.
    fn looks_equal(&mut self) -> bool {
        let (a, b) = self.machines();
        a.compared_registers() == b.compared_registers()
            && a.state() == b.state()
            && same_memory(a.ram(), b.ram())
            && a.disk_digests() == b.disk_digests()
    }
    /// The first node that does not look equal, or else what is between them, when the world is at `vtime`.
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
    /// The parts between machines that are not equal.
    fn differences_between(&self) -> Vec<Difference> {
        let (a, b) = (self.a.between(), self.b.between());
        let pairs = a.into_iter().zip(b).filter(|(a, b)| a != b);
        pairs.map(|((name, a), (_, b))| Difference { name, a: a.to_string(), b: b.to_string() }).collect()
    }
    /// The first node that does not look equal.
    fn unlike_node(&mut self) -> Option<usize> {
        let looked_at = self.node;
        let unlike = (0..self.a.nodes()).find(|&node| {
            self.node = node;
            !self.looks_equal()
        });
        self.node = looked_at;
        unlike
    }
    /// By the node, in the run that has come further.
    fn retired(&self) -> u64 {
        self.a.retired(self.node).max(self.b.retired(self.node))
    }
    fn vtime(&mut self) -> u64 {
        self.machines().0.vtime()
    }
    /// When an entry of a node's journal was, for the world.
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

    /// The first inputs that differ, and at which node, if they say that the leak is in a machine. What one node got
    /// differently may be what another one has sent: the earliest counts.
    fn first_input(&mut self) -> Option<(usize, Option<Entry>, Option<Entry>)> {
        let found = (0..self.a.nodes()).filter_map(|node| {
            let (a, b) = self.first_input_of(node)?;
            // Since the last equal point. A clock that was changed since then is taken as it is now.
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
            // The same access gave something else.
            (Some(EntryKind::Mmio { gpa: x, .. }), Some(EntryKind::Mmio { gpa: y, .. })) => {
                x == y && same_place(a, b)
            }
            (Some(EntryKind::Pio { port: x, .. }), Some(EntryKind::Pio { port: y, .. })) => {
                x == y && same_place(a, b)
            }
            // The same thing at the same count, and the CPUs were elsewhere: they had parted before.
            (x, y) if x == y && a.map(|e| e.icount) == b.map(|e| e.icount) => false,
            // Something came by itself in one and not, or not then, in the other. It is the leak only if it comes first.
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

/// Bytes compared at a time.
const CHUNK: usize = 1 << 20;

fn same_memory(a: &Ram, b: &Ram) -> bool {
    let (mut x, mut y) = (vec![0; CHUNK], vec![0; CHUNK]);
    a.len() == b.len()
        && (0..a.len()).step_by(CHUNK).all(|at| {
            let len = CHUNK.min((a.len() - at) as usize);
            // Both ranges are RAM.
            a.memory().read_slice(&mut x[..len], GuestAddress(at)).is_ok()
                && b.memory().read_slice(&mut y[..len], GuestAddress(at)).is_ok()
                && x[..len] == y[..len]
        })
}

fn same_place(a: Option<Entry>, b: Option<Entry>) -> bool {
    a.map(|e| (e.icount, e.rip)) == b.map(|e| (e.icount, e.rip))
}
