//! String instructions: MOVS, STOS, LODS, SCAS, CMPS, single and repeated. INS and OUTS are in `system`.
//!
//! A repeated instruction can be interrupted between iterations, and each iteration counts as one retired instruction.
//! After an interruption, RCX, RSI and RDI hold the progress, and RIP still points at the instruction (SDM vol. 1,
//! 7.3.9.3). Iterations within one page are executed in bulk, which the guest cannot observe.

use crate::core::Core;
use crate::exec::integer::alu::sub_flags;
use crate::exec::integer::by_width;
use crate::exec::integer::width::Width;
use crate::flags::bits;
use crate::op::operand::segment_slot;
use crate::op::{Handler, Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;

/// Bit of `Op::aux`: addresses and count have 32 bits.
const SHORT: u16 = 1;
/// Bit of `Op::aux`: the prefix is REP or REPE.
const REPEAT: u16 = 2;
/// Bit of `Op::aux`: the prefix is REPNE.
const REPEAT_NOT_EQUAL: u16 = 4;

fn read_index(core: &Core, op: &Op, r: usize) -> u64 {
    if op.aux & SHORT != 0 { core.regs[r] & 0xffff_ffff } else { core.regs[r] }
}
fn write_index(core: &mut Core, op: &Op, r: usize, v: u64) {
    core.regs[r] = if op.aux & SHORT != 0 { v & 0xffff_ffff } else { v };
}
fn source(core: &Core, op: &Op) -> u64 {
    read_index(core, op, RSI).wrapping_add(core.regs[(op.seg & 31) as usize])
}
fn destination(core: &Core, op: &Op) -> u64 {
    read_index(core, op, RDI)
}
/// Moves an index register by `n` elements, in the direction that DF selects.
fn advance<W: Width>(core: &mut Core, op: &Op, r: usize, n: u64) {
    let step = n.wrapping_mul(W::SIZE);
    let step = if core.rflags & bits::DF != 0 { step.wrapping_neg() } else { step };
    let v = read_index(core, op, r).wrapping_add(step);
    write_index(core, op, r, v);
}

/// Kind of string instruction.
trait Element {
    /// True if the instruction compares, so that ZF can end a repetition.
    const COMPARES: bool = false;
    /// Executes one iteration. Leaves RCX as it is.
    fn one<W: Width>(core: &mut Core, op: &Op) -> Flow;
    /// Executes up to `n` iterations at once. Leaves RCX as it is. Returns the number of iterations, possibly 0.
    fn many<W: Width>(_core: &mut Core, _op: &Op, _n: u64) -> u64 {
        0
    }
}
struct Movs;
struct Stos;
struct Lods;
struct Scas;
struct Cmps;

impl Element for Movs {
    fn one<W: Width>(core: &mut Core, op: &Op) -> Flow {
        let v = core.mem.load::<W>(source(core, op))?;
        core.mem.store(destination(core, op), v)?;
        advance::<W>(core, op, RSI, 1);
        advance::<W>(core, op, RDI, 1);
        Ok(())
    }
    fn many<W: Width>(core: &mut Core, op: &Op, n: u64) -> u64 {
        if core.rflags & bits::DF != 0 || op.aux & SHORT != 0 {
            return 0;
        }
        let (dst, src) = (destination(core, op), source(core, op));
        let len = n.saturating_mul(W::SIZE).min(4096);
        let done = core.mem.copy_up(dst, src, len, W::SIZE) / W::SIZE;
        advance::<W>(core, op, RSI, done);
        advance::<W>(core, op, RDI, done);
        done
    }
}
impl Element for Stos {
    fn one<W: Width>(core: &mut Core, op: &Op) -> Flow {
        let v = W::from_u64(core.regs[0]);
        core.mem.store(destination(core, op), v)?;
        advance::<W>(core, op, RDI, 1);
        Ok(())
    }
    fn many<W: Width>(core: &mut Core, op: &Op, n: u64) -> u64 {
        if core.rflags & bits::DF != 0 || op.aux & SHORT != 0 {
            return 0;
        }
        let len = n.saturating_mul(W::SIZE).min(4096);
        let value = W::read(core, 0);
        let done = core.mem.fill_up(destination(core, op), value, len, W::SIZE) / W::SIZE;
        advance::<W>(core, op, RDI, done);
        done
    }
}
impl Element for Lods {
    fn one<W: Width>(core: &mut Core, op: &Op) -> Flow {
        let v = core.mem.load::<W>(source(core, op))?;
        W::write(core, 0, v.to_u64());
        advance::<W>(core, op, RSI, 1);
        Ok(())
    }
}
impl Element for Scas {
    const COMPARES: bool = true;
    fn one<W: Width>(core: &mut Core, op: &Op) -> Flow {
        let b = core.mem.load::<W>(destination(core, op))?.to_u64();
        let a = W::read(core, 0);
        core.flags = sub_flags::<W>(a, b, a.wrapping_sub(b));
        advance::<W>(core, op, RDI, 1);
        Ok(())
    }
}
impl Element for Cmps {
    const COMPARES: bool = true;
    fn one<W: Width>(core: &mut Core, op: &Op) -> Flow {
        // If both operands fault, hardware reports the fault of the second operand (ES:RDI), so that operand is loaded
        // first.
        let b = core.mem.load::<W>(destination(core, op))?.to_u64();
        let a = core.mem.load::<W>(source(core, op))?.to_u64();
        core.flags = sub_flags::<W>(a, b, a.wrapping_sub(b));
        advance::<W>(core, op, RSI, 1);
        advance::<W>(core, op, RDI, 1);
        Ok(())
    }
}

fn single<W: Width, E: Element>(core: &mut Core, op: &Op) -> Flow {
    E::one::<W>(core, op)
}

fn repeated<W: Width, E: Element>(core: &mut Core, op: &Op) -> Flow {
    let mut count = read_index(core, op, RCX);
    if count == 0 {
        return Ok(());
    }
    let budget = core.limit.saturating_sub(core.icount + u64::from(op.idx)).max(1);
    let mut done = 0;
    let mut ended = false;
    while !ended && done < budget {
        let bulk = E::many::<W>(core, op, count.min(budget - done));
        let n = if bulk > 0 {
            bulk
        } else {
            if let Err(stop) = E::one::<W>(core, op) {
                if done == 0 {
                    return Err(stop);
                }
                // The completed iterations have retired. The next execution of the instruction faults in its first
                // iteration.
                break;
            }
            1
        };
        done += n;
        count -= n;
        write_index(core, op, RCX, count);
        let zf = core.flags.zf();
        ended = count == 0
            || (E::COMPARES && ((op.aux & REPEAT != 0 && !zf) || (op.aux & REPEAT_NOT_EQUAL != 0 && zf)));
    }
    if !ended {
        core.rip = op.rip(core);
    }
    core.icount += done - 1;
    Err(Stop::Leave)
}

/// Chooses the handler of a string instruction. Returns `None` for other instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let w = match i.mnemonic() {
        // These mnemonics also stand for SSE instructions.
        Mnemonic::Movsd | Mnemonic::Cmpsd if !i.is_string_instruction() => return None,
        Mnemonic::Movsb | Mnemonic::Stosb | Mnemonic::Lodsb | Mnemonic::Scasb | Mnemonic::Cmpsb => 1,
        Mnemonic::Movsw | Mnemonic::Stosw | Mnemonic::Lodsw | Mnemonic::Scasw | Mnemonic::Cmpsw => 2,
        Mnemonic::Movsd | Mnemonic::Stosd | Mnemonic::Lodsd | Mnemonic::Scasd | Mnemonic::Cmpsd => 4,
        Mnemonic::Movsq | Mnemonic::Stosq | Mnemonic::Lodsq | Mnemonic::Scasq | Mnemonic::Cmpsq => 8,
        _ => return None,
    };
    if uses_short_addresses(i) {
        op.aux |= SHORT;
    }
    op.seg = segment_slot(i.memory_segment());
    if i.has_repne_prefix() {
        op.aux |= REPEAT_NOT_EQUAL;
    } else if i.has_rep_prefix() {
        op.aux |= REPEAT;
    }
    let repeats = op.aux & (REPEAT | REPEAT_NOT_EQUAL) != 0;
    macro_rules! kind {
        ($e:ident) => {
            if repeats { by_width!(w, repeated, $e) } else { by_width!(w, single, $e) }
        };
    }
    use Mnemonic::*;
    let run: Handler = match i.mnemonic() {
        Movsb | Movsw | Movsd | Movsq => kind!(Movs),
        Stosb | Stosw | Stosd | Stosq => kind!(Stos),
        Lodsb | Lodsw | Lodsd | Lodsq => kind!(Lods),
        Scasb | Scasw | Scasd | Scasq => kind!(Scas),
        _ => kind!(Cmps),
    };
    op.run = run;
    Some(if repeats { Kind::Ends } else { Kind::Straight })
}

/// True if the instruction has the address-size prefix.
fn uses_short_addresses(i: &Instruction) -> bool {
    use iced_x86::OpKind::*;
    (0..i.op_count()).any(|n| matches!(i.op_kind(n), MemorySegESI | MemoryESEDI | MemorySegEDI))
}
