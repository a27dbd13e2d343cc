//! Hot blocks as host code: what the interpreter does, faster.
//!
//! Guest and host are the same architecture, so most instructions are executed as they are, on other registers, with
//! memory operands replaced by host addresses that a look into the software TLB gives.
//!
//! - [`asm`]: the host instructions around those of the guest
//! - [`registers`]: which host register holds which guest register
//! - [`lazy`]: flags as operands, and [`late`]: flags within a block
//! - [`choice`]: which instructions are translated
//! - [`block`]: a block's translation, of [`instruction`]s, runs of pushes and pops on the [`stack`], [`vectors`], their
//!   [`operands`], and how it [`ends`]
//! - [`memory`]: executable memory, and [`frame`]: the CPU's state as code sees it
//! - [`links`]: jumps whose end is known when they are made, and [`near`]: what is remembered for the others
//! - [`routines`]: code that all translations share, and [`sites`]: the places that it is called from
//! - [`hot`]: when blocks are translated, and what comes after translated code
//! - [`enter`]: the way in and the ways back
//!
//! **Why nothing escapes.** A translation is made of instructions that this folder emits and of guest instructions that
//! are on a list (`choice::can_be_plain`, `vectors::LISTED`), none of which is control flow or privileged, re-encoded with registers and
//! memory operands of our choice. So:
//! - All memory that translated code reads or writes is [`crate::core::Core`], which R15 points into for as long as it
//!   runs, tables whose addresses the CPU's slots hold, at indices that are masked to their lengths, and guest RAM by an
//!   entry of the TLB whose tag has matched for the first and last byte: the same check, on the same entries, as
//!   `mem::tlb`'s.
//! - It goes to addresses that this folder placed: within a block, to [`routines`], to blocks by [`links`], by the table of jumps,
//!   which [`Translator`] alone writes, by what is [`near`], which gets its addresses from there and from links, and to the
//!   functions of [`enter`]. No address of the guest's is ever on the host's stack or in one of those as one to go to. All of them
//!   are forgotten when all code is.
//! - It changes the host's arithmetic flags and registers that the way in has saved, and no other state of the host.
//! - The decoder, the handlers' operands and the translation read the same bytes, and a translation is only ever found by
//!   the number of what its page holds, which a page loses when it is written. A jump within a page leads to what is there, for
//!   that page is not written while its code runs: such stores are the interpreter's. All other ways compare the number, or an
//!   address and the epoch in which the number was compared. What is on a second page is compared by the block itself.
//!
//! **Invariants.**
//! - Whatever is out of the ordinary is the interpreter's: a translation ends before it with the state of that moment. The one
//!   thing that is done before, a walk of the page tables, is what the instruction itself would begin with.
//! - Counts are exact: a block is entered only if it fits before the limit, and one that is left early is charged for what
//!   it did.
//! - Nothing that a guest can see depends on what is translated, when, or where it lies.

mod asm;
mod block;
mod choice;
mod ends;
mod enter;
mod frame;
mod hot;
mod instruction;
mod late;
mod lazy;
mod links;
mod memory;
mod near;
mod operands;
mod registers;
mod routines;
mod sites;
mod stack;
mod vectors;

use bytemuck::Zeroable;

use crate::decode::cache::Block;
use crate::op::Op;
use crate::zeroed::Zeroed;
use block::{Expected, Places, Source, Translation};
use links::Links;
use memory::CodeMemory;
use near::{Near, Returns};
use routines::Routines;
use sites::Sites;

pub(crate) use hot::Hot;

/// What there is room for, in bytes of code.
const CODE_BYTES: usize = 32 << 20;
/// A block's translation is smaller, whatever it does.
const BLOCK_BYTES_MAX: usize = 64 << 10;
/// Translations at most.
const BLOCKS_MAX: usize = 1 << 18;
/// The table of jumps has so many entries, minus one.
const JUMP_MASK: usize = (1 << 18) - 1;
/// The binary logarithm of an entry's bytes.
const JUMP_SHIFT: u8 = 4;

/// Why translated code was left, in the word's low byte. Go on at RIP.
const NEXT: u8 = 0;
/// Nothing is known of the block to which the way at the offset in bits 8-39 leads.
const UNLINKED: u8 = 1;
/// The block at the site with that offset was charged for, and does not fit before the limit.
const FULL: u8 = 2;
/// The interpreter executes the rest of the block with the number in bits 8-39, from the instruction in bits 40-47.
const INTERPRET: u8 = 3;
/// The same, from a site whose code goes on at the offset in bits 8-39.
const MISSED: u8 = 4;
/// The same, from the site with the number in bits 8-39; RIP holds for [`NO_SITE`].
const MISSED_FAR: u8 = 5;
/// The block at the site with that offset goes on on a page that is not the one it was translated with.
const SECOND: u8 = 6;
/// A handler has ended the block at such a site, for the reason in bits 48-55.
const STOPPED: u8 = 7;
/// Where the reason is.
const STOP_SHIFT: u8 = 48;
/// A block's end that is no instruction.
const NO_SITE: u32 = u32::MAX;

/// What translated code needs and leaves besides the CPU's slots.
#[derive(Debug, Default)]
pub(crate) struct Native {
    /// Where operations lie.
    ops: u64,
    /// Host registers at a site that was left, by their numbers.
    hosts: [u64; 16],
    /// The host's XMM registers there.
    vectors: [u128; 16],
    /// The last calls, for returns to find their way.
    returns: Returns,
    /// The offset of the last one.
    top: u64,
    /// What else is known of where code lies.
    near: Option<Near>,
    /// [`Translator::generation`] of the code that they are of.
    generation: u64,
}

/// Where the code at a place ([`crate::decode::cache::place`]) is translated to.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
struct Jump {
    place: u64,
    code: u64,
}

const _: () = assert!(size_of::<Jump>() == 1 << JUMP_SHIFT);

/// What is found by the place of no block: of code that is not known as such. A zero entry would be.
const NOWHERE: Jump = Jump { place: u64::MAX, code: 0 };

/// The slot of the table of jumps for a place; `routines::far` computes the same.
fn jump_slot(place: u64) -> usize {
    (place as usize ^ place as usize >> 12) & JUMP_MASK
}

/// A translated block.
#[derive(Debug, Clone, Copy)]
struct Translated {
    code: u64,
    ops_start: u32,
    count: u16,
    len: u16,
    /// Its offset in its page.
    offset: u16,
    /// The word of its place, if edges are asked for ([`crate::edges`]).
    named: u64,
    /// It counts the branch that it ends with.
    counts: bool,
    /// Offsets in the page where it goes on.
    leads_to: [u16; 2],
}

/// Translated blocks.
#[derive(Debug)]
struct Translator {
    memory: CodeMemory,
    /// How much of `memory` is routines.
    kept: usize,
    routines: Routines,
    /// By number from 1.
    blocks: Vec<Translated>,
    /// Those up to this number can be executed.
    published: u32,
    /// How often others could have been, if they were; so often at most, then they are published.
    wanted: u32,
    wanted_max: u32,
    sites: Sites,
    links: Links,
    /// By place, where the translation is.
    jumps: Zeroed<Jump>,
    translation: Translation,
    made: u64,
    /// Counts how often all was forgotten, from 1.
    generation: u64,
}

impl Translator {
    /// Translations for memory with a TLB of so many entries, minus one. They are published when they were wanted so often.
    /// None where the host allows no code to be made.
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
            blocks: Vec::new(),
            published: 0,
            wanted: 0,
            wanted_max,
            sites: Sites::default(),
            links: Links::default(),
            jumps,
            translation: Translation::default(),
            made: 0,
            generation: 1,
        })
    }
    /// How many blocks were translated since the beginning.
    fn made(&self) -> u64 {
        self.made
    }
    /// Whether there is room for one more.
    fn has_room(&self) -> bool {
        self.memory.room() >= BLOCK_BYTES_MAX && self.blocks.len() < BLOCKS_MAX
    }
    /// True if nothing is left of any translation, whole or begun: a panic can leave sites and code of one that has no number.
    fn is_clear(&self) -> bool {
        self.blocks.is_empty()
            && self.sites.is_empty()
            && self.links.is_empty()
            && self.memory.used() == self.kept
    }
    /// Forget all translations. Whoever has numbers of some forgets them, too.
    fn clear(&mut self) {
        if !self.is_clear() {
            self.memory.clear(self.kept);
            self.blocks.clear();
            self.generation += 1;
            (self.published, self.wanted) = (0, 0);
            self.sites.clear();
            self.links.clear();
            self.jumps.fill(Jump::zeroed());
            self.jumps[jump_slot(0)] = NOWHERE;
        }
    }
    /// Translate a block; there must be room. Its number, which is not 0.
    fn translate(&mut self, block: &Block, ops: &[Op], bytes: &[u8], expected: Expected) -> u32 {
        let id = self.blocks.len() as u32 + 1;
        let place = block.place();
        let named = expected.named;
        let source = Source { bytes, ops, ops_start: block.ops_start(), id, place, expected };
        let places = Places {
            base: self.memory.base(),
            next: self.memory.next(),
            routines: self.routines,
            links: &self.links,
        };
        let emitted = self.translation.translate(&source, &places, &mut self.sites);
        debug_assert!(emitted.code.len() <= BLOCK_BYTES_MAX);
        let ways = emitted.ways;
        let code = self.memory.put(emitted.code);
        for jump in self.links.is_at(place, code) {
            self.memory.link(jump, code);
        }
        for way in ways.into_iter().flatten() {
            if let Some((jump, _)) = way.open {
                self.links.wants(way.place, jump);
            }
        }
        self.blocks.push(Translated {
            code,
            ops_start: block.ops_start(),
            count: block.count,
            len: block.len,
            offset: (place & 0xfff) as u16,
            named,
            counts: expected.counts,
            leads_to: ways.map(|way| way.map_or(0, |way| (way.place & 0xfff) as u16)),
        });
        self.made += 1;
        id
    }
    /// Whether a translation can be executed by now.
    #[inline]
    fn is_ready(&mut self, id: u32) -> bool {
        id <= self.published || self.is_ready_now()
    }
    #[cold]
    #[inline(never)]
    fn is_ready_now(&mut self) -> bool {
        self.wanted += 1;
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
    /// Translated code led to the block at a place. If that is translated, it goes there at once the next time.
    fn follows(&mut self, place: u64, id: u32) {
        if id != 0 && id <= self.published {
            self.jumps[jump_slot(place)] = Jump { place, code: self.get(id).code };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use registers::Registers;

    fn translator() -> Translator {
        Translator::new(0xff, 1).expect("the host allows code to be made")
    }

    /// A panic in the first translation leaves no block, but whatever was there before it panicked.
    #[test]
    fn what_a_panic_leaves_of_the_first_translation_is_cleared() {
        let leaves: [fn(&mut Translator); 3] = [
            |t| t.sites.add(t.memory.used() as u32, 1, 0, &Registers::default()),
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
    fn nothing_is_cleared_twice() {
        let mut translator = translator();
        translator.clear();
        assert_eq!(translator.generation, 1);
    }
}
