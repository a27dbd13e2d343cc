//! Emitter of a block's code: its input, the code so far, and where the guest's registers and flags are.
//!
//! Each file that emits code for guest instructions adds its methods to [`Emitter`].

use iced_x86::{Encoder, Instruction};

use super::asm::{Asm, Host, Label};
use super::checks::Checks;
use super::choice::Plain;
use super::lazy_flags::Operation;
use super::links::Links;
use super::pending::Pending;
use super::registers::Registers;
use super::routines::{Access, Routines};
use super::sites::{Site, Sites};
use super::xmm::Vectors;
use crate::model::CpuModel;
use crate::op::Op;

/// A trace to translate: a block, and the blocks on its page that usually follow, in their order.
pub(super) struct Source<'s> {
    /// CPU model whose instructions the bytes are.
    pub model: CpuModel,
    /// Number of the translation of the first block. The next blocks have the next numbers.
    pub id: u32,
    /// Blocks of the trace, at least one. Together they have at most
    /// [`INSTRUCTIONS_MAX`](super::trace::INSTRUCTIONS_MAX) instructions.
    pub parts: &'s [Part<'s>],
    /// True if the guest spends much time in the trace: its jumps to other pages are then in line.
    pub hot: bool,
    /// Address of the first block's own translation. Needed if the trace has several blocks and records edges.
    pub alone: Option<u64>,
}

/// One block of a trace.
pub(super) struct Part<'s> {
    /// Bytes of the block.
    pub bytes: &'s [u8],
    /// Operations of the block, i.e. its decoded instructions.
    pub ops: &'s [Op],
    /// Index of the block's first operation in the arena, the array with the operations of all cached blocks.
    pub ops_start: u32,
    /// Place of the block: content number of its page (which stands for the page's bytes), and its offset in the page.
    pub place: u64,
    /// Properties of the block that its own code does not show.
    pub expected: Expected,
}

/// Properties of a block that its own code does not show: what must be recorded, and which page or block follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Location of the block as one word (page digest and offset) if the CPU records branch edges, i.e. which
    /// instruction follows each branch. Otherwise 0.
    pub named: u64,
    /// Location of the branch that led to the block when it was translated, as in `named`, or 0. Other branches can lead to
    /// it, too.
    pub from: u64,
    /// Content number of the next page, if the block is one instruction that continues there.
    pub second: Option<u64>,
    /// Place of the block that probably comes next: the block in the cache slot of this block's last successor. Another
    /// block may have filled the slot since then. `None` if the slot is empty.
    pub next: Option<u64>,
    /// Location of that block, as in `named`.
    pub next_named: u64,
    /// True if the block ends with a conditional branch that must be counted.
    pub counts: bool,
}

/// Addresses that translated code refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'p> {
    /// Start of the memory for translated code.
    pub base: u64,
    /// Address at which this block's code will be placed.
    pub next: u64,
    /// Addresses of the routines that all translated blocks share.
    pub routines: Routines,
    /// Addresses of existing translations.
    pub links: &'p Links,
    /// Number of TLB entries per mode, minus one.
    pub tlb_mask: usize,
}

/// Set of the guest's arithmetic flags that the host's flags currently hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InHost {
    Nothing,
    Carry,
    CarryAndOverflow,
    CarryAndZero,
    AllButParity,
    AllButOverflow,
    All,
}

/// A reference to another block, as the target of a jump or as a return address. Each block of a trace has at most two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// Index, in its trace, of the block that has the reference.
    pub part: usize,
    /// Number of the reference in its block: 0 or 1.
    pub number: usize,
    /// Place of the target block.
    pub place: u64,
    /// If the target has no translation yet: the address of the displacement that will refer to it, and the label that
    /// the displacement refers to until then.
    pub open: Option<(u64, Label)>,
}

/// Code behind a trace that handles an access which misses the TLB.
#[derive(Debug)]
pub(super) struct SlowPath {
    /// Position of the slow path.
    pub here: Label,
    /// Position after the lookup, where the block continues.
    pub back: Label,
    pub access: Access,
    pub pending: Option<Pending>,
    /// Site of the lookup, without its offset.
    pub site: Site,
}

/// Code behind a trace that leaves it for another block.
#[derive(Debug)]
pub(super) struct SideExit {
    /// Position of the code.
    pub here: Label,
    /// Index of the block whose branch leaves the trace.
    pub part: usize,
    /// Index of the branch in the trace.
    pub n: usize,
    /// True if the trace is left when the branch is taken.
    pub taken: bool,
    /// Guest registers that must be stored first, each with its host register.
    pub unsaved: Vec<(u8, Host)>,
    pub vectors: Vectors,
    pub pending: Option<Pending>,
}

/// Code behind a trace that jumps to another page, if the trace's own code does not find the target.
#[derive(Debug)]
pub(super) struct FarPath {
    /// Position of the code.
    pub here: Label,
    /// Number of the jump's site.
    pub site: u32,
    /// Address of the routine that finds the target.
    pub routine: u64,
    /// Location of the branch, if edges (executed jumps) are recorded.
    pub from: Option<u64>,
}

/// Code behind a trace to which the start of the trace leads, if edges (executed jumps) are recorded.
#[derive(Debug)]
pub(super) struct Behind {
    /// Position of the code that runs if a branch has led to the trace, and the position where the trace goes on.
    pub branch: Label,
    pub nowhere: Label,
    /// For a trace of several blocks: the position of the code that runs if the edges in it may not be recorded yet, the
    /// position where the trace goes on, the number of the trace's check, and the address of the first block's own
    /// translation.
    pub check: Option<(Label, Label, u32, u64)>,
}

/// Code behind a trace that runs if an edge (an executed jump) may not be recorded yet.
#[derive(Debug)]
pub(super) struct Unrecorded {
    /// Position of the code.
    pub here: Label,
    /// Position in the trace at which it goes on.
    pub back: Label,
    /// Number of the edge's check.
    pub check: u32,
    /// Location of the branch, which [`slot::FROM`](crate::op::slot::FROM) must contain. `None` if it does already.
    pub from: Option<u64>,
}

/// Translation of one trace in progress.
pub(super) struct Emitter<'e> {
    pub asm: &'e mut Asm,
    pub registers: &'e mut Registers,
    pub sites: &'e mut Sites,
    pub checks: &'e mut Checks,
    pub encoder: Encoder,
    pub source: &'e Source<'e>,
    pub places: &'e Places<'e>,
    /// Operations of all blocks of the trace.
    pub ops: &'e [Op],
    /// Instructions of all blocks of the trace.
    pub instructions: &'e [Instruction],
    /// For each instruction, whether it is translated and whether its flags are observed.
    pub plain: &'e [Plain],
    /// Guest flags that the host's flags hold at this point.
    pub in_host: InHost,
    /// Arithmetic operation (and its width) from whose stored operands all flags can be computed. `None` if the
    /// operation is not known at this point, or if a CF may be stored beside its operands.
    pub known: Option<(Operation, u8)>,
    /// Flags whose operands are not stored. The stored operands are then outdated, and `known` is `None`.
    pub pending: Option<Pending>,
    /// Index of the current block in the trace.
    pub part: usize,
    /// Index of the current block's first instruction in `instructions`.
    pub first: usize,
    /// Number of instructions from the start of the current block to the end of the trace.
    pub charged: usize,
    /// References to other blocks so far.
    pub ways: Vec<Way>,
    /// Exits from the trace so far, in the order of their branches.
    pub side_exits: Vec<SideExit>,
    /// Slow paths of the lookups so far, in the order of the lookups.
    pub slow_paths: Vec<SlowPath>,
    /// Jumps to other pages whose targets must be found behind the trace.
    pub far_paths: Vec<FarPath>,
    /// Edges within the page, and to the likely target of a jump to another page, that the code checks.
    pub unrecorded: Vec<Unrecorded>,
}

impl<'e> Emitter<'e> {
    /// Returns the current block.
    pub(super) fn block(&self) -> &'e Part<'e> {
        &self.source.parts[self.part]
    }
    /// Returns the number of the current block's translation.
    pub(super) fn id(&self) -> u32 {
        self.source.id + self.part as u32
    }
    /// Adds a site, i.e. a position at which a shared routine can leave the block before instruction `n` of the trace.
    /// The site is at the end of the code so far, usually directly after the call of the routine.
    pub(super) fn site(&mut self, n: usize) {
        self.add_site(self.site_before(n));
    }
    /// Returns a site of instruction `n` of the trace, which is in the current block. Its offset is not set.
    pub(super) fn site_before(&self, n: usize) -> Site {
        Site::new(self.id(), n - self.first, self.registers)
    }
    /// Adds a site at the end of the code so far.
    pub(super) fn add_site(&mut self, site: Site) {
        let at = (self.asm.here() - self.places.base) as u32;
        self.sites.add(at, site);
    }
}
