//! Translation of hot blocks, i.e. blocks that are often executed, to host code. Translated code has the same effect as
//! the interpreter, but is faster.
//!
//! Guest and host have the same architecture, so the host executes most instructions re-encoded on other registers.
//! Memory operands become host addresses, which a lookup in the software TLB yields, in line at each access.
//!
//! Besides the declarations of this file, each module uses only modules above it:
//! - [`asm`]: encoder for the host instructions that are emitted besides re-encoded guest instructions
//! - [`memory`]: the executable memory that holds translated code
//! - [`frame`]: displacements of the CPU's fields from the address in R15
//! - [`links`]: direct jumps between translations; all other jumps use the tables of recent targets in `core::native`
//! - [`lazy_flags`]: flags that are computed from an operation's operands when something reads them
//! - [`xmm`] and [`registers`]: assignment of guest registers to host registers, including the halves of YMM registers
//! - [`choice`]: decides which instructions are translated
//! - [`sites`]: positions in translated code at which the interpreter may have to take over
//! - [`enter`]: entry to translated code, the return from it, and the functions that it calls
//! - [`routines`]: code that all translations share
//! - [`checks`]: numbers of the checks by which code sees that an edge (an executed jump) is recorded
//! - [`pending`]: flags that a trace stores only where it is left
//! - [`emitter`]: the state of a block's translation in progress
//! - [`lookups`]: conversion of linear addresses to host addresses through the TLB
//! - [`operands`]: addresses of memory operands
//! - [`flag_tracking`]: where the guest's flags are, at each position in a block
//! - [`instruction`], [`arithmetic`], [`partial`], [`stack`], [`bmi`], [`vectors`], [`avx`], [`fma`]:
//!   translation of one instruction, of multiplications and other arithmetic, of bit tests and rotations, of a run of
//!   pushes or pops, of BMI1, BMI2 and LZCNT, of SSE, of VEX instructions on vectors, and of fused multiply-add
//! - [`edges`]: code that records edges
//! - [`ends`]: translation of the branch or jump that ends a block
//! - [`trace`] and [`recorder`]: the blocks that are translated together, and their choice by samples
//! - [`block`]: translation of all blocks of a trace
//! - [`hot`]: the decision to translate a block, and what the CPU does after translated code returns
//!
//! **Why translated code is confined.** A translation consists of instructions that this module emits, and of guest
//! instructions on a list (`choice::can_be_plain`, `choice::can_be_arithmetic`, `choice::can_be_partial`,
//! `choice::BMI_LISTED`, `vectors::LISTED`, `vectors::CIPHERS`, `vectors::FLOATING`, `avx::VEX_LISTED`,
//! `avx::VEX_FLOATING`, `fma::can_be_fma`). No listed instruction is privileged or control flow. This module re-encodes
//! all of them and chooses their registers and memory operands. A division is executed only if its quotient fits, so
//! that it raises no exception on the host. Therefore:
//! - Translated code accesses only four kinds of memory. The first is [`crate::core::Core`], into which R15 always
//!   points. The second is tables whose addresses are in `Core`. An index into a table is masked to the table's length,
//!   or is the number of a page of RAM. The third is guest RAM, through a TLB entry whose tag has matched for the first
//!   and the last byte; `mem::tlb` makes the same check on the same entries. The fourth is the host's stack, for saved
//!   registers and return addresses.
//! - Translated code jumps only to addresses that this module placed: positions in the same block, [`routines`], the
//!   functions of [`enter`], and other blocks. Addresses of blocks come from [`links`], from the jump table, which only
//!   [`Translator`] writes, and from the tables of `core::native`, which hold only addresses from the links and the
//!   jump table. No table and no stack slot of the host holds a guest address as a jump target. When all code is
//!   dropped, so are all stored targets.
//! - Translated code changes the host's arithmetic flags, the registers that the entry routine has saved, and the
//!   registers that any function may change. While it executes floating-point instructions, the host's MXCSR is the
//!   guest's, with all exceptions masked. The routines restore it before they leave or call a function. Upper halves of
//!   the host's YMM registers differ from zero only within a block ([`xmm`]). Translated code changes no other state of
//!   the host.
//! - A block's translation and the operands of its handlers (functions that execute one instruction) come from the same
//!   bytes. Each page of code has a content number, which stands for the page's bytes. A write to the page takes the
//!   number away. A translation is found only by the content number of its page. A jump within a page leads to current
//!   code, because no store by translated code changes a page of code: the interpreter executes stores to code. All
//!   other jumps compare the content number, or they compare an address and an epoch. The epoch is a number of the TLB
//!   that changes when a page of code may have other bytes or another address. One comparison of the content number
//!   therefore holds for the whole epoch. A block that continues on a second page compares the content number of the
//!   second page, too.
//!
//! **Invariants.**
//! - The interpreter handles every exceptional case: the translation stops before the instruction, with the state
//!   before the instruction. Only the page walk with which the instruction begins may already have happened.
//! - Counts are exact: translated code executes a block only if the run does not stop within the block. If a block is
//!   left early, only the executed instructions count.
//! - The guest cannot observe which blocks are translated, when, or at which address.

mod arithmetic;
mod asm;
mod avx;
mod block;
mod bmi;
mod checks;
mod choice;
mod edges;
mod emitter;
mod ends;
mod enter;
mod flag_tracking;
mod fma;
mod frame;
mod hot;
mod instruction;
mod lazy_flags;
mod links;
mod lookups;
mod memory;
mod operands;
mod partial;
mod pending;
mod recorder;
mod registers;
mod routines;
mod sites;
mod stack;
mod trace;
mod vectors;
mod xmm;

use std::collections::BTreeMap;

use bytemuck::Zeroable;

use crate::model::CpuModel;
use crate::zeroed::Zeroed;
use block::Translation;
use checks::Checks;
use emitter::{Part, Places, Source};
use links::{Links, There};
use memory::CodeMemory;
use routines::Routines;
use sites::Sites;

pub(crate) use hot::Hot;
pub use recorder::Traces;

/// Size of the memory for translated code, in bytes.
const CODE_BYTES: usize = 64 << 20;
/// Maximum size of one trace's translation, in bytes.
const TRACE_BYTES_MAX: usize = 128 << 10;
/// Maximum number of translations.
const BLOCKS_MAX: usize = 1 << 18;
/// Index mask of the jump table.
const JUMP_MASK: usize = (1 << 18) - 1;
/// Number of missed lookups that a sample counts as.
const SAMPLE_WEIGHT: u32 = 8;
/// Binary logarithm of the size of a [`Jump`] in bytes.
const JUMP_SHIFT: u8 = 4;

/// Reason why translated code returned: execution continues at RIP. Translated code returns a word that has the reason
/// in its low byte.
const NEXT: u8 = 0;
/// Reason: the jump at the end of the block is not linked to a translation of the next block yet. Bits 8-39 are the
/// offset of the jump's site ([`sites`]), i.e. of the code directly after the call of the routine that left the block.
const UNLINKED: u8 = 1;
/// Reason: the run must stop within the block, so translated code executed nothing of it. The check at the block's
/// start has already subtracted the block's instructions from the number of instructions left before the stop. Bits
/// 8-39 are the offset of the site.
const FULL: u8 = 2;
/// Reason: the interpreter must execute the rest of a block. Bits 8-39 are the number of the translation, bits 40-47
/// the first instruction to interpret.
const INTERPRET: u8 = 3;
/// Reason: the interpreter must execute a site's instruction and the rest of its block. Bits 8-39 are the offset of the
/// site.
const MISSED: u8 = 4;
/// Reason: the target of a jump is not canonical, so the interpreter must execute the jump, which faults. Bits 8-39 are
/// the number of the site, not its offset. If the number is [`NO_SITE`], execution continues at RIP instead.
const MISSED_FAR: u8 = 5;
/// Reason: the block's second page is not executable, or has other contents than at translation. Bits 8-39 are the
/// offset of the site.
const SECOND: u8 = 6;
/// Reason: a handler ended the block. Bits 8-39 are the offset of the site, bits 48-55 the number of the `Stop`.
const STOPPED: u8 = 7;
/// Position of the `Stop` number in the word.
const STOP_SHIFT: u8 = 48;
/// Stands in place of a site's number if the block ends without control flow. The jump to the next block is then no
/// guest instruction, and has no site.
const NO_SITE: u32 = u32::MAX;

/// Jump table entry: a block's place (content number of its page, and offset; [`crate::decode::cache::place`]) and the
/// address of its translation.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
struct Jump {
    place: u64,
    code: u64,
}

const _: () = assert!(size_of::<Jump>() == 1 << JUMP_SHIFT);

/// Empty jump table entry. `place` is `u64::MAX`, which no block has. A zeroed entry would match place 0, which stands
/// for a page that is not known as code.
const NOWHERE: Jump = Jump { place: u64::MAX, code: 0 };

/// Returns the index in the jump table for a place. `routines::jumps::far` computes the same index.
fn jump_slot(place: u64) -> usize {
    (place as usize ^ place as usize >> 12) & JUMP_MASK
}

/// A translated block. A block that is not the first of its trace has no translation that other code can enter.
#[derive(Debug, Clone, Copy)]
struct Translated {
    code: u64,
    ops_start: u32,
    count: u16,
    /// Number of instructions from the start of the block to the end of its trace. The start of the trace subtracts
    /// the instructions of all of its blocks from the number of instructions left.
    charged: u16,
    len: u16,
    /// Offset of the block within its page.
    offset: u16,
    /// Location of the block as one word (page digest and offset) if edges (executed jumps) are recorded, otherwise 0
    /// ([`crate::edges`]).
    named: u64,
    /// True if the block's final branch increments the branch counter.
    counts: bool,
    /// Offsets, within their pages, of the blocks to which the block's code refers ([`emitter::Way`]), or 0.
    leads_to: [u16; 2],
}

/// Translation of a single block that records edges (executed jumps).
#[derive(Debug, Clone, Copy)]
struct Alone {
    /// Number of the translation.
    id: u32,
    /// Location of the branch that led to the block when it was translated, or 0 ([`emitter::Expected::from`]).
    from: u64,
}

/// All translated blocks.
#[derive(Debug)]
struct Translator {
    memory: CodeMemory,
    /// Number of bytes at the start of `memory` that hold the routines. These bytes are never dropped.
    kept: usize,
    routines: Routines,
    /// Number of TLB entries per mode, minus one.
    tlb_mask: usize,
    /// Translations. The first has number 1.
    blocks: Vec<Translated>,
    /// Highest number of a published translation, i.e. one that is mapped executable.
    published: u32,
    /// Number of lookups that missed only because a translation was not yet published. At `wanted_max`, pending
    /// translations are published.
    wanted: u32,
    wanted_max: u32,
    sites: Sites,
    links: Links,
    checks: Checks,
    /// If edges (executed jumps) are recorded: translations of single blocks, by place.
    alone: BTreeMap<u64, Alone>,
    /// Jump table: addresses of translations, by place.
    jumps: Zeroed<Jump>,
    /// Slots of the jump table that have an entry. Clearing only these is quick when there are few.
    filled: Vec<u32>,
    translation: Translation,
    made: u64,
    /// Number of translations of several blocks.
    traces: u64,
    /// Number of times that all translations were dropped, plus one.
    generation: u64,
}

impl Translator {
    /// Creates a translator for a TLB with `tlb_mask + 1` entries per mode. Pending translations are published after
    /// `wanted_max` lookups that missed because of them. Returns `None` if the host does not permit executable memory.
    fn new(tlb_mask: usize, wanted_max: u32) -> Option<Translator> {
        let mut memory = CodeMemory::new(CODE_BYTES)?;
        let routines = Routines::new(&mut memory, tlb_mask);
        memory.publish();
        let kept = memory.used();
        let mut jumps = Zeroed::new(JUMP_MASK + 1);
        jumps[jump_slot(0)] = NOWHERE;
        Some(Translator {
            memory,
            kept,
            routines,
            tlb_mask,
            blocks: Vec::new(),
            published: 0,
            wanted: 0,
            wanted_max,
            sites: Sites::default(),
            links: Links::default(),
            checks: Checks::default(),
            alone: BTreeMap::new(),
            jumps,
            filled: Vec::new(),
            translation: Translation::default(),
            made: 0,
            traces: 0,
            generation: 1,
        })
    }
    /// Returns the number of translations so far, and how many of them have several blocks.
    fn made(&self) -> (u64, u64) {
        (self.made, self.traces)
    }
    /// True if there is room for one more trace.
    fn has_room(&self) -> bool {
        self.memory.room() >= TRACE_BYTES_MAX
            && self.blocks.len() + trace::INSTRUCTIONS_MAX < BLOCKS_MAX
            && self.checks.has_room(4 * trace::INSTRUCTIONS_MAX)
    }
    /// True if there is no translation and no part of one. A panic during a translation can leave sites and code
    /// behind.
    fn is_clear(&self) -> bool {
        self.blocks.is_empty()
            && self.sites.is_empty()
            && self.links.is_empty()
            && self.checks.is_empty()
            && self.memory.used() == self.kept
    }
    /// Drops all translations. The caller must also forget all translation numbers.
    fn clear(&mut self) {
        if !self.is_clear() {
            self.memory.clear(self.kept);
            self.blocks.clear();
            self.generation += 1;
            (self.published, self.wanted) = (0, 0);
            self.sites.clear();
            self.links.clear();
            self.checks.clear();
            self.alone.clear();
            for slot in self.filled.drain(..) {
                self.jumps[slot as usize] = Jump::zeroed();
            }
            self.jumps[jump_slot(0)] = NOWHERE;
        }
    }
    /// Translates a trace and returns the number of its first block's translation, which is not 0. The caller ensures
    /// that there is room.
    fn translate(&mut self, mut parts: Vec<Part<'_>>, hot: bool, model: CpuModel) -> u32 {
        let id = self.blocks.len() as u32 + 1;
        let place = parts[0].place;
        let named = parts[0].expected.named != 0;
        let alone = self.alone.get(&place).copied();
        let alone = alone.filter(|alone| usize::from(self.get(alone.id).count) == parts[0].ops.len());
        // A trace that records edges needs the code of its first block.
        if named && alone.is_none() {
            parts.truncate(1);
        }
        if let Some(alone) = alone {
            parts[0].expected.from = alone.from;
        }
        let from = parts[0].expected.from;
        let alone = alone.filter(|_| parts.len() > 1).map(|alone| self.get(alone.id).code);
        let source = Source { model, id, parts: &parts, hot, alone };
        let places = Places {
            base: self.memory.base(),
            next: self.memory.next(),
            routines: self.routines,
            links: &self.links,
            tlb_mask: self.tlb_mask,
        };
        let emitted = self.translation.translate(&source, &places, &mut self.sites, &mut self.checks);
        debug_assert!(emitted.code.len() <= TRACE_BYTES_MAX);
        let ways = emitted.ways;
        let code = self.memory.put(emitted.code);
        match self.links.is_at(place, code) {
            Some(There::Wanted(jumps)) => jumps.into_iter().for_each(|jump| self.memory.link(jump, code)),
            // Jumps to the block's own translation go on to the trace.
            Some(There::Code(old)) => self.memory.redirect(old, code),
            None => {}
        }
        let mut charged: usize = parts.iter().map(|part| part.ops.len()).sum();
        for part in &parts {
            self.blocks.push(Translated {
                code,
                ops_start: part.ops_start,
                count: part.ops.len() as u16,
                charged: charged as u16,
                len: part.ops.iter().map(|op| u16::from(op.len)).sum(),
                offset: (part.place & 0xfff) as u16,
                named: part.expected.named,
                counts: part.expected.counts,
                leads_to: [0; 2],
            });
            charged -= part.ops.len();
        }
        if named && parts.len() == 1 {
            self.alone.insert(place, Alone { id, from });
        }
        for way in ways {
            let block = &mut self.blocks[id as usize - 1 + way.part];
            block.leads_to[way.number] = (way.place & 0xfff) as u16;
            if let Some((jump, _)) = way.open {
                self.links.wants(way.place, jump);
            }
        }
        self.made += 1;
        self.traces += u64::from(parts.len() > 1);
        id
    }
    /// True if a translation is published, so that it can be executed.
    #[inline]
    fn is_ready(&mut self, id: u32) -> bool {
        id <= self.published || self.is_ready_now()
    }
    /// Counts a sample of translated code. Traces replace the code of blocks that are found without a lookup, so samples
    /// lead to their publication.
    fn sampled(&mut self) {
        if (self.published as usize) < self.blocks.len() {
            self.want(SAMPLE_WEIGHT);
        }
    }
    #[cold]
    #[inline(never)]
    fn is_ready_now(&mut self) -> bool {
        self.want(1)
    }
    /// Adds to the number of lookups that missed. Returns true if this leads to publication.
    fn want(&mut self, weight: u32) -> bool {
        self.wanted += weight;
        let ready = self.wanted >= self.wanted_max;
        if ready {
            self.memory.publish();
            (self.published, self.wanted) = (self.blocks.len() as u32, 0);
        }
        ready
    }
    fn get(&self, id: u32) -> &Translated {
        &self.blocks[id as usize - 1]
    }
    /// Records that translated code led to the block at `place`. If the block's translation is published, the next jump
    /// to that place finds the translation in the jump table.
    fn follows(&mut self, place: u64, id: u32) {
        if id != 0 && id <= self.published {
            let slot = jump_slot(place);
            if self.jumps[slot].place == Jump::zeroed().place {
                self.filled.push(slot as u32);
            }
            self.jumps[slot] = Jump { place, code: self.get(id).code };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use registers::Registers;
    use sites::Site;

    fn translator() -> Translator {
        Translator::new(0xff, 1).expect("the host permits executable memory")
    }

    /// A panic in the first translation leaves no block, but may leave sites, code or links. `clear` drops them.
    #[test]
    fn leftovers_of_a_panicked_first_translation_are_cleared() {
        let leaves: [fn(&mut Translator); 3] = [
            |t| t.sites.add(t.memory.used() as u32, Site::new(1, 0, &Registers::default())),
            |t| {
                t.memory.put(&[0xcc; 16]);
            },
            |t| t.links.wants(0x1000, 64),
        ];
        for (n, leave) in leaves.into_iter().enumerate() {
            let mut translator = translator();
            leave(&mut translator);
            assert!(!translator.is_clear(), "{n}");
            translator.clear();
            assert!(translator.is_clear(), "{n}");
            assert_eq!(translator.generation, 2, "{n}");
        }
    }

    #[test]
    fn an_empty_translator_is_not_cleared() {
        let mut translator = translator();
        translator.clear();
        assert_eq!(translator.generation, 1);
    }
}
