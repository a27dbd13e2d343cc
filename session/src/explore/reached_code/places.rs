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
    /// Places in programs of images and in the kernel, in ascending order. Other code is left out, because no file names
    /// it.
    pub(super) places: Vec<Place>,
    /// Files, each with the index of a node that executed it.
    pub(super) nodes: BTreeSet<(File, usize)>,
}

impl Reached {
    /// Adds places in any order.
    fn add(&mut self, places: &[Place]) {
        self.places.extend_from_slice(places);
        // A stable sort merges sequences that are sorted already.
        self.places.sort();
        self.places.dedup();
    }

    pub(super) fn extend(&mut self, other: &Reached) {
        self.add(&other.places);
        self.nodes.extend(&other.nodes);
    }
}

/// Number of pages whose files a collector remembers, a power of two. Most edges of a branch are on a few hundred pages.
const RECENT: usize = 1 << 11;

/// Observer that collects what a branch reaches.
pub(super) struct Collector<'c> {
    programs: &'c Programs,
    /// Vtime at which the branch's segment ends, in nanoseconds. Checks run after it.
    segment_end_ns: u64,
    /// Places that the current step reached. A runner reports edges before the vtime of their step.
    step: Vec<Place>,
    /// Places that the segment reached, in any order.
    segment: Vec<Place>,
    /// Places that the checks reached, in any order.
    checks: Vec<Place>,
    nodes: BTreeSet<(File, usize)>,
    /// Nodes, names of pages, and places of these pages, which were looked up last.
    recent: Vec<Option<(usize, u64, Option<Place>)>>,
    stop: &'c dyn Fn() -> bool,
}

impl<'c> Collector<'c> {
    pub(super) fn new(programs: &'c Programs, segment_end_ns: u64, stop: &'c dyn Fn() -> bool) -> Self {
        Collector {
            programs,
            segment_end_ns,
            step: Vec::new(),
            segment: Vec::new(),
            checks: Vec::new(),
            nodes: BTreeSet::new(),
            recent: vec![None; RECENT],
            stop,
        }
    }

    /// Returns the places that the segment and the checks reached. Branches that extend this one reach the segment, too.
    pub(super) fn finish(self) -> (Reached, Reached) {
        let reached = |places: &[Place]| {
            let mut reached = Reached { places: Vec::new(), nodes: self.nodes.clone() };
            reached.add(places);
            reached
        };
        (reached(&self.segment), reached(&self.checks))
    }

    fn add(&mut self, node: usize, edge: &Edge) {
        if !edge.user {
            self.step.push((KERNEL, edge.address));
            return;
        }
        let name = edge.to.page();
        let recent = &mut self.recent[(name as usize).wrapping_add(node) % RECENT];
        let page = match *recent {
            Some((of_node, of, page)) if (of_node, of) == (node, name) => page,
            _ => {
                let page = self.programs.page(edge.to);
                *recent = Some((node, name, page));
                self.nodes.extend(page.map(|(file, _)| (file, node)));
                page
            }
        };
        if let Some((file, address)) = page {
            self.step.push((file, address.wrapping_add(u64::from(edge.to.offset()))));
        }
    }
}

impl Watch for Collector<'_> {
    fn edges(&mut self, node: usize, edges: &[Edge]) {
        if edges.iter().any(|edge| !edge.user) {
            self.nodes.insert((KERNEL, node));
        }
        edges.iter().for_each(|edge| self.add(node, edge));
    }

    fn at(&mut self, vtime_ns: u64) -> bool {
        let part = if vtime_ns <= self.segment_end_ns { &mut self.segment } else { &mut self.checks };
        part.append(&mut self.step);
        !(self.stop)()
    }
}
