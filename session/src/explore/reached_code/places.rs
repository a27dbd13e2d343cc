//! Places of code that a branch reaches: targets of executed jumps, as addresses in files.

use std::collections::{BTreeMap, BTreeSet};

use everett_cpu::Edge;

use super::super::path_runner::Watch;
use crate::run::edges::programs::Programs;

/// Number of a file in [`Programs`], or [`KERNEL`].
pub(super) type File = u32;
/// File number that stands for the kernel.
pub(super) const KERNEL: File = File::MAX;

/// A place of code: the number of its file, and its address as the file states it.
pub(super) type Place = (File, u64);

/// Length of a page of code in bytes.
const PAGE: u64 = 4096;
/// A bit for each address of a page of code.
type Bits = [u64; PAGE as usize / 64];

/// Places that a part of a timeline reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Reached {
    /// For the first place of each page in a program of an image or in the kernel: the reached addresses. Other code is left
    /// out, because no file names it.
    pages: BTreeMap<Place, Bits>,
    /// Files, each with the index of a node that executed it.
    pub(super) nodes: BTreeSet<(File, usize)>,
}

impl Reached {
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns all places, in ascending order.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (&(file, address), bits) in &self.pages {
            for (word, &bits) in (0..).zip(bits) {
                let mut left = bits;
                while left != 0 {
                    let offset = word * 64 + u64::from(left.trailing_zeros());
                    places.push((file, address.wrapping_add(offset)));
                    left &= left - 1;
                }
            }
        }
        // Pages of invalid files can overlap.
        places.sort();
        places.dedup();
        places
    }

    pub(super) fn extend(&mut self, other: &Reached) {
        for (page, bits) in &other.pages {
            let mine = self.pages.entry(*page).or_insert([0; PAGE as usize / 64]);
            mine.iter_mut().zip(bits).for_each(|(mine, other)| *mine |= other);
        }
        self.nodes.extend(&other.nodes);
    }
}

/// Number of pages that a collection remembers, a power of two. Most edges of a branch are on a few hundred pages.
const RECENT: usize = 1 << 11;

/// A node and a page: its number in the kernel's address space, or the name of its content and `true` for a program.
type Key = (usize, bool, u64);

/// Places that are collected edge by edge.
#[derive(Default)]
struct Collection {
    pages: Vec<(Place, Bits)>,
    /// Indexes into `pages`.
    numbers: BTreeMap<Place, usize>,
    nodes: BTreeSet<(File, usize)>,
    /// Pages that were looked up last, each with its index in `pages`. Empty until the first edge.
    recent: Vec<Option<(Key, Option<usize>)>>,
}

impl Collection {
    fn add(&mut self, programs: &Programs, node: usize, edge: &Edge) {
        let key = (node, edge.user, if edge.user { edge.to.page() } else { edge.address / PAGE });
        if self.recent.is_empty() {
            self.recent = vec![None; RECENT];
        }
        let slot = (key.2 as usize).wrapping_add(node) % RECENT;
        let page = match self.recent[slot] {
            Some((of, page)) if of == key => page,
            _ => {
                let page = self.look_up(programs, node, edge);
                self.recent[slot] = Some((key, page));
                page
            }
        };
        if let Some(page) = page {
            let offset = usize::from(edge.to.offset());
            self.pages[page].1[offset / 64] |= 1 << (offset % 64);
        }
    }

    /// Returns the index of an edge's target page. `None` stands for code that no file names.
    fn look_up(&mut self, programs: &Programs, node: usize, edge: &Edge) -> Option<usize> {
        let page = if edge.user { programs.page(edge.to)? } else { (KERNEL, edge.address & !(PAGE - 1)) };
        self.nodes.insert((page.0, node));
        let number = *self.numbers.entry(page).or_insert(self.pages.len());
        if number == self.pages.len() {
            self.pages.push((page, [0; PAGE as usize / 64]));
        }
        Some(number)
    }

    fn finish(self) -> Reached {
        Reached { pages: self.pages.into_iter().collect(), nodes: self.nodes }
    }
}

/// Observer that collects what a branch reaches.
pub(super) struct Collector<'c> {
    programs: &'c Programs,
    /// Vtime at which the branch's segment ends, in nanoseconds. Checks run after it.
    segment_end_ns: u64,
    /// Edges that the current step reached, each with its node. A runner reports edges before the vtime of their step.
    step: Vec<(usize, Edge)>,
    /// Places that the segment reached. Branches that extend this one reach them, too.
    segment: Collection,
    /// Places that the checks reached.
    checks: Collection,
    stop: &'c dyn Fn() -> bool,
}

impl<'c> Collector<'c> {
    pub(super) fn new(programs: &'c Programs, segment_end_ns: u64, stop: &'c dyn Fn() -> bool) -> Self {
        let (segment, checks) = (Collection::default(), Collection::default());
        Collector { programs, segment_end_ns, step: Vec::new(), segment, checks, stop }
    }

    /// Returns what the segment and the checks reached.
    pub(super) fn finish(self) -> (Reached, Reached) {
        (self.segment.finish(), self.checks.finish())
    }
}

impl Watch for Collector<'_> {
    fn edges(&mut self, node: usize, edges: &[Edge]) {
        self.step.extend(edges.iter().map(|edge| (node, *edge)));
    }

    fn at(&mut self, vtime_ns: u64) -> bool {
        let part = if vtime_ns <= self.segment_end_ns { &mut self.segment } else { &mut self.checks };
        for (node, edge) in self.step.drain(..) {
            part.add(self.programs, node, &edge);
        }
        !(self.stop)()
    }
}
