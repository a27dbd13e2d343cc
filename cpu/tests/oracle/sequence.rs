//! Sequences of register instructions that end with a branch. They test state that one instruction leaves to the next
//! inside the CPU under test, above all flags that the CPU computes only when they are read.

use crate::encode::{Encoded, decode, encode};
use crate::exempt::{Verdict, verdict};
use crate::forms::{Family, family};
use crate::makes;
use crate::place::{Case, registers};
use crate::rng::Rng;
use crate::state::flag;
use crate::undefined::{Operands, undefined_flags};
use crate::values::Shape;
use everett_cpu::CpuModel;
use iced_x86::{Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, RflagsBits};

/// Maximum number of instructions before the branch. Each test executes as many instructions as the sequence has. If
/// an instruction faults, the guest executes NOPs of the exception handler for the rest of this number. So a sequence with
/// its branch must have fewer instructions than a handler has NOPs (`HANDLER_LEN` in [`crate::guest`]).
const LEN_MAX: u64 = 8;
/// Maximum number of attempts to draw one fitting instruction.
const DRAWS: usize = 100;

/// Instructions that follow each other in memory.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// Case that runs the whole sequence. `case.encoded` has the bytes of all instructions, but decodes only the first.
    pub(crate) case: Case,
    pub(crate) instructions: Vec<Encoded>,
    /// Flags that are undefined before each instruction. The last entry is for the end of the sequence.
    pub(crate) undefined: Vec<u64>,
}

/// Draws a sequence. Returns `None` if all attempts to draw one of its instructions failed.
pub(crate) fn draw(
    forms: &[Code],
    rip: u64,
    model: CpuModel,
    rng: &mut Rng,
    factory: &mut InstructionInfoFactory,
) -> Option<Sequence> {
    let mut instructions = Vec::new();
    let mut undefined = vec![0];
    let mut at = rip;
    let mut tainted = 0;
    for _ in 0..2 + rng.below(LEN_MAX - 1) {
        let drawn = (0..DRAWS).find_map(|_| {
            let e = encode(rng.pick(forms), at, model, rng)?;
            fits(&e, tainted, model, factory).then_some(e)
        })?;
        at += drawn.bytes.len() as u64;
        tainted = after(&drawn.instruction, tainted);
        undefined.push(tainted);
        instructions.push(drawn);
    }
    let condition = decode(&[0x70 + rng.below(16) as u8, rng.next() as u8], at, model);
    let usable = flags(condition.instruction.rflags_read()) & tainted == 0;
    instructions.push(if usable { condition } else { decode(&[0xeb, rng.next() as u8], at, model) });
    undefined.push(tainted);
    let mut encoded = instructions[0].clone();
    let shape = rng.pick(&[Shape::Integers, Shape::Integers, Shape::Singles, Shape::Doubles]);
    let state = registers(&encoded.instruction, shape, rng);
    encoded.bytes = instructions.iter().flat_map(|e| e.bytes.iter().copied()).collect();
    Some(Sequence { case: Case { encoded, state, writes: vec![] }, instructions, undefined })
}

/// True if an instruction can be part of a sequence. It accesses registers only, does not branch, reads no flag in
/// `tainted` (the flags that are undefined before it), and behaves equally on the processors of all vendors.
fn fits(e: &Encoded, tainted: u64, model: CpuModel, factory: &mut InstructionInfoFactory) -> bool {
    let i = &e.instruction;
    matches!(family(i.code()), Family::Integer | Family::Sse | Family::Mmx | Family::Vex)
        && verdict(i, model) == Verdict::Compare
        && i.flow_control() == FlowControl::Next
        && factory.info(i).used_memory().is_empty()
        && flags(i.rflags_read()) & tainted == 0
        && !makes::TABLE.iter().any(|difference| (difference.concerns)(e))
        // A double shift may leave its result undefined.
        && !matches!(i.mnemonic(), Mnemonic::Shld | Mnemonic::Shrd)
}

/// Returns the flags that are undefined after an instruction. `tainted` has the flags that are undefined before it.
fn after(i: &Instruction, tainted: u64) -> u64 {
    use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shr};
    // If the count is zero, these instructions change no flags.
    let writes = !matches!(i.mnemonic(), Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shr);
    let kept = if writes { tainted & !flags(i.rflags_modified()) } else { tainted };
    (0..=64).fold(kept, |flags, rcx| flags | undefined_flags(i, &Operands { rcx }))
}

/// Converts the decoder's flags to bits of RFLAGS.
fn flags(bits: u32) -> u64 {
    let pairs = [
        (RflagsBits::CF, flag::CF),
        (RflagsBits::PF, flag::PF),
        (RflagsBits::AF, flag::AF),
        (RflagsBits::ZF, flag::ZF),
        (RflagsBits::SF, flag::SF),
        (RflagsBits::OF, flag::OF),
    ];
    pairs.iter().filter(|(bit, _)| bits & bit != 0).fold(0, |flags, (_, flag)| flags | flag)
}
