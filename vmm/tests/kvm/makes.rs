//! Simulated processors of other makes. After some instructions, the manual leaves status flags undefined, and each
//! make of processor puts its own values there. [`Other`] runs guests on Everett's soft CPU and replaces its values of
//! these flags by those of another [`Make`].
//!
//! [`Other`] lets the soft CPU execute instructions up to the next one that leaves flags undefined. It then replaces
//! the flags that [`undefined_flags`] returns for this instruction and its operands. It does not do so in two cases:
//!
//! * If one of the instructions faults, the soft CPU goes on in the exception handler. The first instructions of the
//!   handler may then leave the soft CPU's values in undefined flags.
//! * [`Other`] does not finish an instruction that accesses a device. `Scripted`, the virtual CPU of these tests,
//!   finishes it. The random guests of these tests access devices only with instructions that leave no flag undefined,
//!   such as MOV and OUT.

use std::collections::BTreeMap;

use everett_cpu::CpuState;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

use crate::flag::{AF, ARITH};
use crate::rng::Rng;
use crate::undefined::{Operands, undefined_flags};

/// Value that a processor leaves in an undefined flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Make {
    /// The opposite of the soft CPU's value.
    Inverted,
    /// A random value each time.
    Noisy,
    /// AF as on AMD's processors. Where AF is undefined, shifts and divisions set it, multiplications, bit scans and
    /// bit tests leave it unchanged, and other instructions clear it. The other flags have the soft CPU's values.
    Amd,
}

impl Make {
    /// Returns RFLAGS after an instruction. `flags` has the soft CPU's values, and `before` the flags before the
    /// instruction. This function replaces the flags in `undefined`.
    fn leaves(self, i: &Instruction, undefined: u64, before: u64, flags: u64, rng: &mut Rng) -> u64 {
        use Mnemonic::{Bsf, Bsr, Bt, Btc, Btr, Bts, Div, Idiv, Imul, Mul, Sal, Sar, Shl, Shld, Shr, Shrd};
        let theirs = match self {
            Make::Inverted => !flags,
            Make::Noisy => rng.next(),
            Make::Amd => {
                let af = match i.mnemonic() {
                    Shl | Sal | Shr | Sar | Shld | Shrd | Div | Idiv => AF,
                    Mul | Imul | Bsf | Bsr | Bt | Bts | Btr | Btc => before & AF,
                    _ => 0,
                };
                flags & !AF | af
            }
        };
        flags & !undefined | theirs & undefined
    }
}

/// Number of bytes of code that the decoder reads at once.
const STRETCH_BYTES: usize = 64;

/// Consecutive instructions that the soft CPU executes at once. Only the last one may leave flags undefined, jump, or
/// be a string instruction.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    bytes: [u8; STRETCH_BYTES],
    instructions: u64,
    last: Instruction,
}

/// True if the instruction's undefined flags depend on flags or RCX before it.
fn depends_on_before(i: &Instruction) -> bool {
    use Mnemonic::{Bsf, Bsr, Bt, Btc, Btr, Bts, Div, Idiv, Imul, Mul};
    let by_cl = i.op_count() > 1 && i.op_register(i.op_count() - 1) == Register::CL;
    by_cl || matches!(i.mnemonic(), Bsf | Bsr | Bt | Bts | Btr | Btc | Div | Idiv | Mul | Imul)
}

impl Stretch {
    fn decode(bytes: [u8; STRETCH_BYTES], known: usize, rip: u64) -> Stretch {
        let mut decoder = Decoder::with_ip(64, &bytes[..known], rip, DecoderOptions::NONE);
        let mut stretch = Stretch { bytes, instructions: 1, last: decoder.decode() };
        let goes_on = |i: &Instruction| {
            i.flow_control() == FlowControl::Next && !i.is_string_instruction() && i.rflags_undefined() == 0
        };
        while goes_on(&stretch.last) && decoder.can_decode() {
            let next = decoder.decode();
            if next.is_invalid() || depends_on_before(&next) || next.is_string_instruction() {
                break;
            }
            stretch.instructions += 1;
            stretch.last = next;
        }
        stretch
    }
}

/// A processor of another make, based on a soft CPU.
#[derive(Debug)]
pub(crate) struct Other {
    make: Make,
    rng: Rng,
    known: BTreeMap<u64, Stretch>,
    /// Number of branches that were counted before `replace` last set the soft CPU's state, which resets the soft CPU's
    /// own count.
    branches: u64,
    /// Number of times that at least one flag got another value than the soft CPU's.
    pub(crate) replaced: u64,
}

impl Other {
    pub(crate) fn new(make: Make, seed: u64) -> Other {
        let rng = Rng::for_case(seed, 40);
        Other { make, rng, known: BTreeMap::new(), branches: 0, replaced: 0 }
    }
    /// Returns the number of branches that retired so far.
    pub(crate) fn branches(&self, soft: &SoftEngine) -> u64 {
        self.branches + soft.branches()
    }
    /// Resets the branch count, as the soft CPU does when its state is set. Must be called whenever the soft CPU's
    /// state is set, e.g. because the engine loads registers.
    pub(crate) fn state_replaced(&mut self) {
        self.branches = 0;
    }
    /// Runs the soft CPU as [`Engine::run`] does, and replaces undefined flags.
    pub(crate) fn run(&mut self, soft: &mut SoftEngine, until: Until) -> Exit {
        loop {
            if soft.icount() >= until.icount {
                return soft.run(until);
            }
            let before = soft.state();
            let stretch = self.stretch(soft, before.rip);
            let icount = until.icount.min(soft.icount() + stretch.instructions);
            let exit = soft.run(Until { icount, ..until });
            if exit != Exit::Count {
                return exit;
            }
            let undefined = undefined_flags(&stretch.last, &Operands { rcx: before.gpr[1] });
            if undefined & ARITH != 0 {
                self.replace(soft, &stretch.last, undefined, &before);
            }
        }
    }
    fn replace(&mut self, soft: &mut SoftEngine, i: &Instruction, undefined: u64, before: &CpuState) {
        let state = soft.state();
        if state.rip != i.next_ip() {
            // The soft CPU stopped at `until.icount`, before the instruction, or a fault started a handler.
            return;
        }
        let rflags = self.make.leaves(i, undefined, before.rflags, state.rflags, &mut self.rng);
        if rflags != state.rflags {
            self.replaced += 1;
            self.branches += soft.branches();
            soft.set_state(&CpuState { rflags, ..state });
        }
    }
    fn stretch(&mut self, soft: &SoftEngine, rip: u64) -> Stretch {
        let mut bytes = [0; STRETCH_BYTES];
        let known = soft.read_virtual(rip, &mut bytes);
        let decode = || Stretch::decode(bytes, known, rip);
        let stretch = self.known.entry(rip).or_insert_with(decode);
        if stretch.bytes != bytes {
            *stretch = decode();
        }
        *stretch
    }
}
