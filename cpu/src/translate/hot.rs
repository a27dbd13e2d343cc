//! The decision to translate a block, and what the CPU does after translated code returns.

use super::Translator;
use super::emitter::{Expected, Part};
use super::enter::Back;
use super::recorder::{Recorder, Traces};
use super::trace::INSTRUCTIONS_MAX;
use crate::core::Core;
use crate::decode::cache::{Cache, Extent};
use crate::exit::Exit;
use crate::fetch::{Ended, find, not_fetched, stopped};
use crate::op::{Op, slot};

/// Ratio of the translator's `wanted_max` to [`Hot`]'s `after`. New code is published, i.e. made executable, after
/// `wanted_max` lookups of unpublished blocks. Each publication makes all worker threads wait for a flush of the host's
/// TLBs, so it must be rare.
const WANTED_FACTOR: u32 = 32;

/// Translated blocks of one code cache. The translator is created with the first hot block, so that a CPU that executes
/// little needs little memory.
#[derive(Debug)]
pub(crate) struct Hot {
    translator: Option<Translator>,
    /// Number of interpreted executions after which the CPU translates a block.
    after: u32,
    /// Number of instructions between two samples.
    period: u64,
    recorder: Recorder,
    /// Number of flushes of the cache ([`Cache::flushes`]) when the translations were made.
    flushes: u64,
}

impl Hot {
    /// Blocks are translated after `after` executions. The period of samples is at least the maximum length of a trace, so
    /// that each trace can be executed between two samples.
    pub(crate) fn new(after: u32, traces: Traces) -> Hot {
        let period = traces.period.max(INSTRUCTIONS_MAX as u64);
        Hot { translator: None, after, period, recorder: Recorder::new(traces), flushes: 0 }
    }
    /// Returns the number of translations so far, and how many of them have several blocks.
    pub(crate) fn made(&self) -> (u64, u64) {
        self.translator.as_ref().map_or((0, 0), Translator::made)
    }
    /// Executes the translation of a block, and the translations that it jumps to. Translates a hot block first.
    /// Returns the slot of the next block in `cache`, or the reason why the run loop must take over. `None` means that
    /// the block must be interpreted. The caller has checked that the run does not stop within the block.
    #[inline]
    pub(crate) fn execute(
        &mut self,
        cache: &mut Cache,
        core: &mut Core,
        index: usize,
    ) -> Option<Result<usize, Ended>> {
        if self.recorder.records() {
            if self.recorder.follow(cache, index) {
                return None;
            }
            if let Some(slots) = self.recorder.finish(cache) {
                self.translate(cache, core, &slots, true);
            }
        }
        let block = cache.block(index);
        let id = match block.translated {
            0 if block.heat < self.after => {
                cache.block_mut(index).heat += 1;
                return None;
            }
            0 => self.translate(cache, core, &[index], false)?,
            id => id,
        };
        let translator = self.translator.as_mut()?;
        if !translator.is_ready(id) {
            return None;
        }
        core.native.period = self.period;
        let back = translator.run(core, id, cache.ops_pointer());
        Some(self.goes_on(cache, core, back))
    }
    /// Translates the blocks in these slots as one trace, and returns the number of the first block's translation. The
    /// trace is `hot` if samples led to it.
    /// Returns `None` if the host does not permit executable memory. Also returns `None` for a
    /// block on two pages if the TLB has no entry that permits execution of the second page, or if that page is not
    /// marked as a source of decoded code.
    #[cold]
    #[inline(never)]
    fn translate(&mut self, cache: &mut Cache, core: &Core, slots: &[usize], hot: bool) -> Option<u32> {
        if self.translator.is_none() {
            let wanted_max = self.after.saturating_mul(WANTED_FACTOR);
            self.translator = Translator::new(core.mem.tlb.mask(), wanted_max);
        }
        let Some(translator) = &mut self.translator else {
            // The host will not permit executable memory later either.
            self.after = u32::MAX;
            return None;
        };
        if self.flushes != cache.flushes() {
            self.flushes = cache.flushes();
            translator.clear();
            self.recorder.clear();
        }
        if !translator.has_room() {
            // Full: drop all translations.
            translator.clear();
            self.recorder.clear();
            cache.forget_translations();
        }
        let index = *slots.first()?;
        let block = cache.block(index);
        let second = if block.straddles() {
            let page = (core.rip | 0xfff).wrapping_add(1);
            Some(core.mem.exec_gpa(page).map(|gpa| core.mem.content(gpa)).filter(|&content| content != 0)?)
        } else {
            None
        };
        let part = |&index: &usize| {
            let block = cache.block(index);
            let ops = cache.ops(block);
            let next = cache.successor(block);
            let expected = Expected {
                named: cache.named(index),
                // A trace takes it from its first block's own translation.
                from: core.regs[slot::FROM as usize],
                second,
                next: next.map(|slot| cache.block(slot).place()),
                next_named: next.map_or(0, |slot| cache.named(slot)),
                counts: core.branches && ops.last().is_some_and(Op::is_conditional),
            };
            let (bytes, ops_start, place) = (cache.bytes(block), block.ops_start(), block.place());
            Part { bytes, ops, ops_start, place, expected }
        };
        let id = translator.translate(slots.iter().map(part).collect(), hot, cache.model());
        cache.block_mut(index).translated = id;
        Some(id)
    }
    fn goes_on(&mut self, cache: &mut Cache, core: &mut Core, back: Back) -> Result<usize, Ended> {
        match back {
            Back::Next | Back::Sample => {
                if core.icount == core.limit {
                    return Err(Ended::Check);
                }
                let next = find(cache, core, Extent::Block).map_err(|stop| not_fetched(core, stop))?;
                let block = cache.block(next);
                if self.flushes == cache.flushes()
                    && let Some(translator) = &mut self.translator
                {
                    translator.follows(block.place(), block.translated);
                }
                if back == Back::Sample {
                    self.recorder.sample(cache.block(next).place());
                    if let Some(translator) = &mut self.translator {
                        translator.sampled();
                    }
                }
                Ok(next)
            }
            Back::Interpret { ops_start, count, n, named } => {
                let ops = cache.ops_at(ops_start, usize::from(count));
                for op in &ops[n..] {
                    if let Err(stop) = (op.run)(core, op) {
                        return Err(stopped(core, op, stop));
                    }
                }
                core.retire(&ops[ops.len() - 1], named);
                core.icount += u64::from(count);
                if core.icount == core.limit {
                    return Err(Ended::Check);
                }
                find(cache, core, Extent::Block).map_err(|stop| not_fetched(core, stop))
            }
            Back::Alone => Err(Ended::Single),
            Back::Failed => Err(Ended::Exit(Exit::Failed)),
            Back::Stopped { ops_start, n, stop } => {
                Err(stopped(core, &cache.ops_at(ops_start, n + 1)[n], stop))
            }
        }
    }
}
