//! Search for traces: the blocks on which the guest spends most time, and those that usually follow them.
//!
//! Translated code returns after every [`Traces::period`] instructions. The block at which it returns is a *sample*. How
//! often a block is sampled is proportional to how often it is executed. After [`Traces::samples`] samples of a block, the CPU interprets the code from there and records which blocks it executes, up to a branch that the
//! translation of a trace cannot follow. The trace consists of the blocks with which all recordings begin.
//!
//! The idea of a trace as the next executed path from a hot block is that of Duesterwald and Bala, *Software profiling
//! for hot path prediction: less is more*, ASPLOS 2000.

use std::collections::{BTreeMap, BTreeSet};

use super::trace;
use crate::decode::cache::Cache;

/// Conditions under which blocks are translated again, together with those that usually follow. Blocks that the guest
/// executes often are found by samples of translated code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traces {
    /// Number of instructions between two samples. A number below 96 counts as 96.
    pub period: u64,
    /// Number of samples of a block before the CPU first records which blocks follow.
    pub samples: u8,
    /// Number of recordings, at least one. The trace consists of the blocks on which all of them agree.
    pub recordings: u8,
}

impl Traces {
    /// Conditions under which as many traces as possible are translated, for tests.
    pub const EAGER: Traces = Traces { period: 0, samples: 0, recordings: 1 };
}

impl Default for Traces {
    fn default() -> Self {
        // A sample costs about as much as the interpretation of fifty instructions.
        Traces { period: 100_000, samples: 4, recordings: 3 }
    }
}

/// Maximum number of blocks whose samples are counted. When there are more, all counts start again.
const CANDIDATES_MAX: usize = 1 << 14;

/// Maximum number of blocks whose search has ended. When there are more, the CPU may search for their traces again.
const DONE_MAX: usize = 1 << 17;

/// Samples and recordings of one block.
#[derive(Debug)]
enum Candidate {
    /// Number of samples.
    Sampled(u8),
    /// Number of recordings, and the places of the blocks with which all of them begin.
    Recorded(u8, Vec<u64>),
}

/// A recording in progress.
#[derive(Debug)]
struct Recording {
    /// Place of the first block.
    head: u64,
    /// Slots and places of the blocks executed so far.
    blocks: Vec<(usize, u64)>,
    /// Number of their instructions.
    count: usize,
}

/// State of the search.
#[derive(Debug)]
pub(super) struct Recorder {
    /// Conditions for a recording and for a trace.
    traces: Traces,
    /// Blocks whose search goes on, by place.
    candidates: BTreeMap<u64, Candidate>,
    /// Places of blocks whose search has ended, with or without a trace.
    done: BTreeSet<u64>,
    recording: Option<Recording>,
}

impl Recorder {
    pub(super) fn new(traces: Traces) -> Recorder {
        Recorder { traces, candidates: BTreeMap::new(), done: BTreeSet::new(), recording: None }
    }
    /// Forgets everything, because no translation exists any more.
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
        self.done.clear();
        self.recording = None;
    }
    /// True if a recording is in progress.
    #[inline(always)]
    pub(super) fn records(&self) -> bool {
        self.recording.is_some()
    }
    /// Counts a sample of the block at `place`. The next executed blocks may be recorded.
    pub(super) fn sample(&mut self, place: u64) {
        if self.done.contains(&place) {
            return;
        }
        if self.candidates.len() >= CANDIDATES_MAX {
            self.candidates.clear();
        }
        match self.candidates.entry(place).or_insert(Candidate::Sampled(0)) {
            Candidate::Sampled(times) if *times < self.traces.samples => *times += 1,
            _ => self.recording = Some(Recording { head: place, blocks: Vec::new(), count: 0 }),
        }
    }
    /// Records that the block in slot `index` is about to be executed, if a recording is in progress. Returns true if
    /// the block belongs to the recording, so that it must be interpreted.
    pub(super) fn follow(&mut self, cache: &Cache, index: usize) -> bool {
        let Some(recording) = &mut self.recording else { return false };
        let (place, count) = (cache.block(index).place(), usize::from(cache.block(index).count));
        let goes_on = match recording.blocks.last() {
            None => place == recording.head && trace::can_begin(cache, index),
            Some(&last) => {
                recording.count + count <= trace::INSTRUCTIONS_MAX
                    && recording.blocks.iter().all(|&(_, before)| before != place)
                    && trace::goes_on(cache, last, index)
            }
        };
        if goes_on {
            recording.count += count;
            recording.blocks.push((index, place));
        }
        goes_on
    }
    /// Ends the recording in progress, if there is one. Returns the slots of a trace's blocks once enough recordings
    /// agree. A trace of one block gains only if the block leads to another page.
    pub(super) fn finish(&mut self, cache: &Cache) -> Option<Vec<usize>> {
        let Recording { head, mut blocks, .. } = self.recording.take()?;
        let (mut times, mut common) = match self.candidates.remove(&head) {
            Some(Candidate::Recorded(times, common)) => (times, common),
            _ => (0, blocks.iter().map(|&(_, place)| place).collect()),
        };
        times += 1;
        // The cache may have other blocks in some slots by now.
        let is_there = |slot, place| cache.block(slot).place() == place && cache.block(slot).is_whole();
        let same = common.iter().zip(&blocks);
        let same =
            same.take_while(|&(&before, &(slot, place))| before == place && is_there(slot, place)).count();
        common.truncate(same);
        blocks.truncate(same);
        if times < self.traces.recordings {
            self.candidates.insert(head, Candidate::Recorded(times, common));
            return None;
        }
        if self.done.len() >= DONE_MAX {
            self.done.clear();
        }
        self.done.insert(head);
        let slots: Vec<usize> = blocks.into_iter().map(|(slot, _)| slot).collect();
        let &last = slots.last()?;
        (slots.len() > 1 || trace::ends_far(cache, last)).then_some(slots)
    }
}
