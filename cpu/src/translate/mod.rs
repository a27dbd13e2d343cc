//! Hot blocks as host code: what the interpreter does, faster.
//!
//! Guest and host are the same architecture, so most instructions are executed as they are, on other registers, with
//! memory operands replaced by host addresses that an inline look into the software TLB gives.
//!
//! - [`asm`]: the host instructions around those of the guest
//! - [`registers`]: which host register holds which guest register
//! - [`lazy`]: flags as operands, and [`late`]: flags within a block
//! - [`choice`]: which instructions are translated
//! - [`block`]: a block's translation, of [`instruction`]s, their [`operands`], and how it [`ends`]
//! - [`memory`]: executable memory
//! - [`hot`]: when blocks are translated, and what comes after translated code
//! - [`enter`]: the way in and the ways back
//!
//! **Why nothing escapes.** A translation is made of instructions that this folder emits and of guest instructions that
//! are on a list (`choice::can_be_plain`), none of which is control flow or privileged, re-encoded with registers and
//! memory operands of our choice. So:
//! - All memory that translated code reads or writes is [`Core`], which R15 points to for as long as it runs, tables
//!   whose addresses [`Native`] holds, at indices that are masked to their lengths, and guest RAM by an entry of the TLB
//!   whose tag has matched for the first and last byte: the same check, on the same entries, as `mem::tlb`'s.
//! - It goes to addresses that this folder placed: within a block, to the common way out, to blocks by cells and by the
//!   table of jumps, both of which [`Translator`] alone writes, and to two functions of [`enter`].
//! - It changes the host's arithmetic flags and registers that the way in has saved, and no other state of the host.
//! - The decoder, the handlers' operands and the translation read the same bytes, which are the block's key: a block whose
//!   page was written is not entered before its bytes were compared (`begin` looks at the page's generation each time).
//!
//! **Invariants.**
//! - Whatever is out of the ordinary is the interpreter's: a translation ends before it with the state of that moment.
//! - Counts are exact: a block is entered only if it fits before the limit, and one that is left early is charged for what
//!   it did.
//! - Nothing that a guest can see depends on what is translated, when, or where it lies.

mod asm;
mod block;
mod choice;
mod ends;
mod enter;
mod hot;
mod instruction;
mod late;
mod lazy;
mod memory;
mod operands;
mod registers;

use bytemuck::Zeroable;

use crate::core::Core;
use crate::decode::cache::Block;
use crate::mem::Mem;
use crate::op::Op;
use crate::zeroed::Zeroed;
use asm::{Asm, R15};
use block::{Places, Source, Translation};
use memory::CodeMemory;

pub(crate) use hot::Hot;

/// What there is room for, in bytes of code.
const CODE_BYTES: usize = 32 << 20;
/// A block's translation is smaller, whatever it does.
const BLOCK_BYTES_MAX: usize = 64 << 10;
/// Translations at most.
const BLOCKS_MAX: usize = 1 << 18;
/// The table of jumps has so many entries, minus one.
const JUMP_MASK: usize = (1 << 16) - 1;
/// The binary logarithm of an entry's bytes.
const JUMP_SHIFT: u8 = 4;

/// Why translated code was left, in the word's low byte. Go on at RIP; bits 8-39 are the cell that may lead there.
const NEXT: u8 = 0;
/// The interpreter executes the rest of the block, from the instruction in bits 40-47.
const INTERPRET: u8 = 1;
/// A handler has ended the block at that instruction, for the reason in bits 48-55.
const STOPPED: u8 = 2;
/// Where the reason is.
const STOP_SHIFT: u8 = 48;

/// The word that tells why translated code was left.
fn leave_word(why: u8, id: u32, n: u32) -> u64 {
    u64::from(why) | u64::from(id) << 8 | u64::from(n) << 40
}

/// What translated code works with besides the CPU's state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Native {
    /// Instructions before the limit.
    pub left: u64,
    /// What `x` and `y` are the operands of ([`lazy`]).
    pub kind: u32,
    pub x: u64,
    pub y: u64,
    /// Where operations lie.
    pub ops: u64,
    /// The generations of pages.
    pub generations: u64,
    /// The table of jumps.
    pub jumps: u64,
}

/// Where code of a host address is translated to.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
struct Jump {
    host: u64,
    code: u64,
}

const _: () = assert!(size_of::<Jump>() == 1 << JUMP_SHIFT);

/// A translated block.
#[derive(Debug, Clone, Copy)]
struct Translated {
    code: u64,
    ops_start: u32,
    count: u16,
    len: u16,
    /// Its offset in its page.
    offset: u16,
}

/// Translated blocks.
#[derive(Debug)]
struct Translator {
    memory: CodeMemory,
    /// How much of `memory` is the way in and out.
    kept: usize,
    enter: u64,
    leave: u64,
    /// By number from 1.
    blocks: Vec<Translated>,
    /// By the same number, the generation at which each was valid last.
    generations: Zeroed<u32>,
    /// Two for each number: where its block goes on, the code that leaves where nothing is known of that.
    cells: Zeroed<u64>,
    /// By host address of guest code, where its translation is.
    jumps: Zeroed<Jump>,
    translation: Translation,
    made: u64,
}

impl Translator {
    /// None where the host allows no code to be made.
    fn new() -> Option<Translator> {
        let mut memory = CodeMemory::new(CODE_BYTES)?;
        let mut asm = Asm::default();
        let saved = [asm::Host(3), asm::Host(5), asm::R12, asm::R13, asm::R14, R15];
        saved.iter().for_each(|&reg| asm.push(reg));
        asm.add_to(asm::Host(4), asm::Host(4), -8);
        asm.copy(R15, asm::RDI);
        asm.load(asm::R12, R15, std::mem::offset_of!(Core, native.left) as i32);
        asm.jump_register(asm::RSI);
        let enter = memory.put(asm.finish());
        asm.clear();
        asm.store(R15, std::mem::offset_of!(Core, native.left) as i32, asm::R12);
        asm.add_to(asm::Host(4), asm::Host(4), 8);
        saved.iter().rev().for_each(|&reg| asm.pop(reg));
        asm.ret();
        let leave = memory.put(asm.finish());
        let kept = memory.used();
        Some(Translator {
            memory,
            kept,
            enter,
            leave,
            blocks: Vec::new(),
            generations: Zeroed::new(BLOCKS_MAX + 1),
            cells: Zeroed::new(2 * (BLOCKS_MAX + 1)),
            jumps: Zeroed::new(JUMP_MASK + 1),
            translation: Translation::default(),
            made: 0,
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
    /// Forget all translations. Whoever has numbers of some forgets them, too.
    fn clear(&mut self) {
        if !self.blocks.is_empty() {
            self.memory.clear(self.kept);
            self.blocks.clear();
            self.jumps.fill(Jump::zeroed());
        }
    }
    /// Translate a block; there must be room. Its number, which is not 0.
    fn translate(&mut self, mem: &Mem, block: &Block, ops: &[Op], bytes: &[u8]) -> u32 {
        let id = self.blocks.len() as u32 + 1;
        let first_cell = 2 * id;
        let cell = |n: usize| &raw const self.cells[first_cell as usize + n] as u64;
        let source = Source {
            bytes,
            ops,
            ops_start: block.ops_start(),
            id,
            page: block.gpa() >> 12,
            tlb_mask: mem.tlb.mask(),
        };
        let places = Places {
            leave: self.leave,
            call_op: enter::call_op as *const () as u64,
            read_flags: enter::read_flags as *const () as u64,
            generation: &raw const self.generations[id as usize] as u64,
            cells: [cell(0), cell(1)],
            first_cell,
        };
        let emitted = self.translation.translate(&source, &places);
        debug_assert!(emitted.code.len() <= BLOCK_BYTES_MAX);
        let code = self.memory.put(emitted.code);
        for (n, at) in emitted.unlinked.into_iter().enumerate() {
            self.cells[first_cell as usize + n] = code + at as u64;
        }
        self.blocks.push(Translated {
            code,
            ops_start: block.ops_start(),
            count: block.count,
            len: block.len,
            offset: (block.gpa() & 0xfff) as u16,
        });
        self.made += 1;
        id
    }
    fn get(&self, id: u32) -> &Translated {
        &self.blocks[id as usize - 1]
    }
    /// A block follows, which was found as `host`, the host address of its bytes, and may be reached by a cell.
    fn follows(&mut self, cell: u32, host: u64, id: u32) {
        let code = self.get(id).code;
        if cell == 0 {
            self.jumps[host as usize & JUMP_MASK] = Jump { host, code };
        } else {
            self.cells[cell as usize] = code;
        }
    }
}
