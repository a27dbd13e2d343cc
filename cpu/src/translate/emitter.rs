//! Emitter of a block's code: its input, the code so far, and the locations of guest registers and flags.
//!
//! Each file that emits code for guest instructions adds its methods to [`Emitter`].

use iced_x86::{Encoder, Instruction};

use super::asm::{Asm, Label};
use super::choice::Plain;
use super::lazy_flags::Operation;
use super::links::Links;
use super::registers::Registers;
use super::routines::Routines;
use super::sites::Sites;
use crate::op::Op;

/// A block to translate.
pub(super) struct Source<'s> {
    /// Bytes of the block.
    pub bytes: &'s [u8],
    /// Operations of the block.
    pub ops: &'s [Op],
    /// Index of the block's first operation in the cache's arena.
    pub ops_start: u32,
    /// Number of the translation.
    pub id: u32,
    /// Place of the block: content number of its page, and its offset in the page.
    pub place: u64,
    /// Facts known about the block's surroundings.
    pub expected: Expected,
}

/// Facts known about the surroundings of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Word of the block's place if edges are recorded, otherwise 0.
    pub named: u64,
    /// Content number of the next page, if the block's only instruction continues there.
    pub second: Option<u64>,
    /// Place of the block that last followed this one.
    pub next: Option<u64>,
    /// True if the block ends with a branch that must be counted.
    pub counts: bool,
}

/// Addresses that translated code refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'p> {
    /// Start of the memory for translated code.
    pub base: u64,
    /// Address at which this block's code will be placed.
    pub next: u64,
    /// Addresses of the shared routines.
    pub routines: Routines,
    /// Addresses of existing translations.
    pub links: &'p Links,
}

/// The arithmetic flags of the guest that the host's flags currently hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InHost {
    Nothing,
    AllButOverflow,
    All,
}

/// Known exits of a block: at most two.
pub(super) type Ways = [Option<Way>; 2];

/// A jump to another block on the page that is current at that point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// Place of the target block.
    pub place: u64,
    /// For a target without a translation: the address of the jump's displacement, and the label to which it leads
    /// for now.
    pub open: Option<(u64, Label)>,
}

/// Translation of one block in progress.
pub(super) struct Emitter<'e> {
    pub asm: &'e mut Asm,
    pub registers: &'e mut Registers,
    pub sites: &'e mut Sites,
    pub encoder: Encoder,
    pub source: &'e Source<'e>,
    pub places: &'e Places<'e>,
    pub instructions: &'e [Instruction],
    /// For each instruction, whether it is translated and whether its flags are observed.
    pub plain: &'e [Plain],
    /// Guest flags that the host's flags hold at this point.
    pub in_host: InHost,
    /// Operation and width of the operands stored for lazy flags, if known at this point.
    pub known: Option<(Operation, u8)>,
    /// Known exits so far.
    pub ways: Ways,
}

impl Emitter<'_> {
    /// Adds a site after a call of a routine that may leave instruction `n` to the interpreter.
    pub(super) fn site(&mut self, n: usize) {
        let at = (self.asm.here() - self.places.base) as u32;
        self.sites.add(at, self.source.id, n, self.registers);
    }
}
