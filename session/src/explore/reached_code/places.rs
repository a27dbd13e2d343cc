//! Places of code that a branch reaches: targets of executed jumps, as addresses in files.

use std::collections::BTreeSet;

use everett_cpu::Edge;

use super::super::path_runner::Watch;
use crate::run::edges::programs::Programs;

/// Number of a file in [`Programs`], or [`KERNEL`].
pub(super) type File = u32;
/// File number that stands for the kernel.
pub(super) const KERNEL: File = File::MAX;

/// A place of code: the number of its file, and its address as the file states it.
pub(super) type Place = (File, u64);

/// Places that a part of a timeline reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Reached {
    /// Places in programs of images and in the kernel. Other code is left out, because no file names it.
    pub(super) places: BTreeSet<Place>,
    /// Files, each with the index of a node that executed it.
    pub(super) nodes: BTreeSet<(File, usize)>,
}

impl Reached {
    fn add(&mut self, programs: &Programs, node: usize, edge: &Edge) {
        let place = match edge.user {
            true => programs.place(edge.to),
            false => Some((KERNEL, edge.address)),
        };
        if let Some((file, address)) = place {
            self.places.insert((file, address));
            self.nodes.insert((file, node));
        }
    }

    pub(super) fn extend(&mut self, other: &Reached) {
        self.places.extend(&other.places);
        self.nodes.extend(&other.nodes);
    }
}

/// Observer that collects what a branch reaches.
pub(super) struct Collector<'c> {
    programs: &'c Programs,
    /// Vtime at which the branch's segment ends, in nanoseconds. Checks run after it.
    segment_end_ns: u64,
    /// Edges that the current step reached. A runner reports edges before the vtime of their step.
    step: Reached,
    /// Edges that the segment reached. Branches that extend this one reach it, too.
    pub(super) segment: Reached,
    /// Edges that the checks reached.
    pub(super) checks: Reached,
    stop: &'c dyn Fn() -> bool,
}

impl<'c> Collector<'c> {
    pub(super) fn new(programs: &'c Programs, segment_end_ns: u64, stop: &'c dyn Fn() -> bool) -> Self {
        let (step, segment, checks) = (Reached::default(), Reached::default(), Reached::default());
        Collector { programs, segment_end_ns, step, segment, checks, stop }
    }
}

impl Watch for Collector<'_> {
    fn edges(&mut self, node: usize, edges: &[Edge]) {
        edges.iter().for_each(|edge| self.step.add(self.programs, node, edge));
    }

    fn at(&mut self, vtime_ns: u64) -> bool {
        let part = if vtime_ns <= self.segment_end_ns { &mut self.segment } else { &mut self.checks };
        part.extend(&std::mem::take(&mut self.step));
        !(self.stop)()
    }
}
