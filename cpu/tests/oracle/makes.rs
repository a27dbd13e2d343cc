//! Differences between the processors of two vendors, and their detection on the host.
//!
//! The soft CPU behaves like Intel's processors. Each [`Difference`] is one behaviour in which another vendor's
//! processors differ. A difference has its own test case, and applies to a host only if the host shows the other
//! behaviour in that case. A host that behaves like the soft CPU is therefore compared in full. On every host, a
//! deviation that is not in [`TABLE`] is a disagreement.
//!
//! A difference excuses outcomes, not instructions. If host and soft CPU agree in a case to which the difference
//! applies, the case counts as compared. If they disagree, the difference describes the other outcome that the host may
//! have ([`Seen::agrees_with`]). All other parts of the outcome must still agree.
//!
//! Some cases execute a sequence of instructions instead of one. Sequences contain no instructions that a difference
//! concerns, because the different state would spread to the following instructions.

use std::ops::Range;

use everett_cpu::CpuModel;
use everett_cpu::state::FpuState;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::arena::{CODE, CONST, CONST_LEN, DATA, GS_BASE, HIGH, offset};
use crate::compare::differences;
use crate::encode::{Encoded, decode};
use crate::exempt::is_prefix;
use crate::host::features::Features;
use crate::place::Case;
use crate::state::{End, Outcome, RCX, RSP, State, flag};

/// Bits of MXCSR.
const INVALID: u32 = 1;
const OVERFLOW_MASK: u32 = 1 << 10;
const UNDERFLOW: u32 = 1 << 4;
const PRECISION: u32 = 1 << 5;
const UNDERFLOW_MASK: u32 = 1 << 11;
const VECTOR_UD: u8 = 6;
const VECTOR_GP: u8 = 13;
const VECTOR_PF: u8 = 14;
const VECTOR_AC: u8 = 17;
const VECTOR_XM: u8 = 19;
/// A non-canonical address.
const WILD: u64 = 0x7f00_0000_0000_0000;
/// Address after the last mapped data byte of the arena, i.e. of the memory for test instructions and their data. The
/// arena is mapped at two addresses (views); this address is in the upper view.
const END: u64 = HIGH + CONST + CONST_LEN;
/// Number of bytes that a near call pushes.
const PUSHED: u64 = 8;
const RSI: usize = 6;
const RDI: usize = 7;
const R8: usize = 8;

/// A behaviour in which another vendor's processors differ from the soft CPU.
pub(crate) struct Difference {
    /// Name for messages.
    pub(crate) name: &'static str,
    /// The two behaviours, and the manuals that describe them or leave the choice open.
    pub(crate) reason: &'static str,
    /// Instruction of the difference's test case.
    pub(crate) bytes: &'static [u8],
    /// Sets registers of the test case. The other registers are those of [`plain`].
    pub(crate) prepare: fn(&mut State),
    /// True if the host showed the other behaviour in the test case. The last argument is the data in the arena
    /// (`crate::arena`) after the case.
    pub(crate) shown: fn(&Case, &Outcome, &[u8]) -> bool,
    /// True if the difference can affect this instruction.
    pub(crate) concerns: fn(&Encoded) -> bool,
    /// True if the difference explains why the outcomes of host and guest differ.
    pub(crate) explains: fn(&Seen<'_>) -> bool,
}

/// The outcomes of a case on the host and on the soft CPU (the guest).
#[derive(Debug, Clone)]
pub(crate) struct Seen<'a> {
    pub(crate) case: &'a Case,
    pub(crate) features: Features,
    pub(crate) host: &'a Outcome,
    pub(crate) guest: &'a Outcome,
    /// Offsets in the arena, from the first differing byte to the last. `None` if memory is equal.
    pub(crate) memory: Option<Range<u64>>,
}

impl Seen<'_> {
    /// True if the host's registers equal those of `guest`, and the instruction retired or faulted as in `guest`.
    /// Memory is not compared.
    fn registers_agree_with(&self, guest: &Outcome) -> bool {
        differences(self.case, 0, self.features, self.host, guest).is_empty()
    }
    /// True if the host's outcome equals `guest`, and host and guest have the same memory.
    fn agrees_with(&self, guest: &Outcome) -> bool {
        self.memory.is_none() && self.registers_agree_with(guest)
    }
    /// True if memory differs only in bytes that a call pushes, or not at all.
    fn memory_agrees_but_for_a_push(&self) -> bool {
        let Some(memory) = &self.memory else { return true };
        let end = offset(self.case.state.gpr[RSP]);
        end.is_some_and(|end| end - PUSHED <= memory.start && memory.end <= end)
    }
    /// True if the range in which memory differs is at most as long as the instruction's store.
    fn memory_agrees_but_for_a_store(&self) -> bool {
        let i = &self.case.encoded.instruction;
        let stored = if i.op0_kind() == OpKind::Memory { i.memory_size().size() as u64 } else { 0 };
        self.memory.as_ref().is_none_or(|memory| memory.end - memory.start <= stored)
    }
    /// Returns the outcome of an instruction that ends as on the host, but has changed no registers.
    fn nothing_done(&self) -> Outcome {
        let mut outcome = Outcome { state: self.case.state.clone(), ..self.host.clone() };
        if self.host.end != End::Retired {
            outcome.state.rflags |= flag::RF;
        }
        outcome
    }
}

fn faulted(outcome: &Outcome, with: u8) -> bool {
    matches!(outcome.end, End::Fault { vector, .. } if vector == with)
}
/// Returns the prefixes of an instruction, including REX.
fn prefixes(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| !is_prefix(*byte)).unwrap_or(bytes.len())]
}
fn is_near_branch(i: &Instruction) -> bool {
    i.is_jmp_short_or_near()
        || i.is_jmp_near_indirect()
        || i.is_jcc_short_or_near()
        || i.is_jcx_short()
        || i.is_loop()
        || i.is_loopcc()
        || i.is_call_near()
        || i.is_call_near_indirect()
        || i.mnemonic() == Mnemonic::Ret
}
/// True if the bytes are a near branch with prefix 66, and AMD's processors give it another operand size.
fn is_near_branch_of_16_bits(e: &Encoded) -> bool {
    let options = CpuModel::V2.decoder_options() | DecoderOptions::AMD;
    let amd = Decoder::with_ip(64, &e.bytes, e.instruction.ip(), options).decode();
    prefixes(&e.bytes).contains(&0x66) && amd.code() != e.instruction.code() && is_near_branch(&amd)
}
/// Returns the REX prefix directly before opcode 90, if there is one.
fn rex_of_nop(e: &Encoded) -> Option<u8> {
    let [.., rex, 0x90] = &e.bytes[..e.instruction.len()] else { return None };
    Some(*rex).filter(|rex| rex & 0xf0 == 0x40)
}
/// Exchanges RAX and R8. The prefixes of opcode 90 determine the operand size.
fn exchange(state: &mut State, e: &Encoded) {
    let is_wide = rex_of_nop(e).is_some_and(|rex| rex & 8 != 0);
    let mask = match prefixes(&e.bytes).contains(&0x66) {
        _ if is_wide => u64::MAX,
        true => 0xffff,
        false => 0xffff_ffff,
    };
    // A write of 32 bits clears the upper half.
    let kept = if mask == 0xffff { !mask } else { 0 };
    let (a, b) = (state.gpr[0], state.gpr[R8]);
    (state.gpr[0], state.gpr[R8]) = (a & kept | b & mask, b & kept | a & mask);
}
/// True if an access of `size` bytes at `va` can end with this fault.
fn is_fault_of(end: End, va: u64, size: u64, rflags: u64) -> bool {
    let is_canonical = |va: u64| (va << 16) as i64 >> 16 == va as i64;
    match end {
        End::Fault { vector: VECTOR_PF, address, .. } => address.wrapping_sub(va) < size,
        End::Fault { vector: VECTOR_GP, .. } => !is_canonical(va) || !is_canonical(va.wrapping_add(size - 1)),
        End::Fault { vector: VECTOR_AC, .. } => rflags & flag::AC != 0 && !va.is_multiple_of(size),
        _ => false,
    }
}
/// Returns the addresses of the operands at RSI and RDI. `gpr` has the registers before the iteration.
fn operands_of_cmps(i: &Instruction, gpr: &[u64; 16]) -> [u64; 2] {
    let short = i.op_kinds().any(|kind| kind == OpKind::MemorySegESI);
    let [rsi, rdi] = [RSI, RDI].map(|n| if short { u64::from(gpr[n] as u32) } else { gpr[n] });
    let base = if i.segment_prefix() == Register::GS { GS_BASE } else { 0 };
    [rsi.wrapping_add(base), rdi]
}
/// True if the host reports the fault of the operand at RSI, and the soft CPU the fault of the operand at RDI.
fn first_operand_of_cmps_faults(seen: &Seen<'_>) -> bool {
    let (host, mut guest) = (seen.host, seen.guest.clone());
    let i = &seen.case.encoded.instruction;
    let [rsi, rdi] = operands_of_cmps(i, &host.state.gpr);
    let is_fault_of = |end, va| is_fault_of(end, va, i.memory_size().size() as u64, seen.case.state.rflags);
    let order = is_fault_of(host.end, rsi) && is_fault_of(guest.end, rdi);
    guest.end = host.end;
    order && seen.agrees_with(&guest)
}

fn is_compare_of_strings(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Cmpsb | Mnemonic::Cmpsw | Mnemonic::Cmpsd | Mnemonic::Cmpsq)
        && i.is_string_instruction()
}
fn stores_from_x87(i: &Instruction) -> bool {
    use Mnemonic::{Fbstp, Fist, Fistp, Fisttp, Fst, Fstp};
    matches!(i.mnemonic(), Fst | Fstp | Fist | Fistp | Fisttp | Fbstp) && i.op0_kind() == OpKind::Memory
}
fn accesses_more_than_eight_bytes(i: &Instruction) -> bool {
    (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory) && i.memory_size().size() > 8
}
/// Replaces each NaN of the guest by the host's NaN in the same element. Elements have `bytes` bytes: 4 or 8.
fn take_nans(host: &FpuState, guest: &mut FpuState, bytes: u32) {
    let is_nan = |value: u128| match bytes {
        8 => value as u64 & u64::MAX >> 1 > 0x7ff0_0000_0000_0000,
        _ => value as u32 & u32::MAX >> 1 > 0x7f80_0000,
    };
    let bits = 8 * bytes;
    for (host, guest) in host.xmm.iter().zip(&mut guest.xmm) {
        for at in (0..u128::BITS).step_by(bits as usize) {
            if is_nan(*host >> at) && is_nan(*guest >> at) {
                let mask = (u128::MAX >> (u128::BITS - bits)) << at;
                *guest = *guest & !mask | *host & mask;
            }
        }
    }
}

/// Returns the number of the mask's register and the length of the indices in bits. `None` unless the instruction gathers
/// elements of half the size of their indices, so that the mask has as many elements that belong to no index.
fn mask_of_gather(i: &Instruction) -> Option<(usize, u32)> {
    let index = if i.memory_index().is_ymm() { 256 } else { 128 };
    let is_it = matches!(i.mnemonic(), Mnemonic::Vpgatherqd | Mnemonic::Vgatherqps);
    is_it.then(|| (i.op_register(2).number(), index))
}
/// Returns a mask with elements of 32 bits. Those in the second half of the first `bits` bits are copies of their highest
/// bit in `given`.
fn extended_mask(mut mask: [u128; 2], given: [u128; 2], bits: u32) -> [u128; 2] {
    const ELEMENT: u32 = 32;
    for at in (bits / 2..bits).step_by(ELEMENT as usize) {
        let (half, at) = ((at / 128) as usize, at % 128);
        let ones = u128::from(u32::MAX) << at;
        let is_set = given[half] >> (at + ELEMENT - 1) & 1 != 0;
        mask[half] = mask[half] & !ones | if is_set { ones } else { 0 };
    }
    mask
}

/// All known differences.
pub(crate) const TABLE: &[Difference] = &[
    Difference {
        name: "near branches with prefix 66",
        reason: "prefix ignored (SDM vol. 1, 3.3.7.1), or branch of 16 bits (APM vol. 3, near branches in 64-bit mode)",
        bytes: &[0x66, 0xeb, 0x00],
        prepare: |_| {},
        shown: |case, host, _| host.state.rip == (case.state.rip + 3) & 0xffff,
        concerns: is_near_branch_of_16_bits,
        explains: |seen| {
            let (host, mut guest) = (seen.host, seen.guest.clone());
            (guest.end, guest.retired, guest.state.rip) = (host.end, host.retired, host.state.rip);
            guest.state.gpr[RSP] = host.state.gpr[RSP];
            if host.end != End::Retired {
                guest.state.rflags |= flag::RF;
            }
            seen.memory_agrees_but_for_a_push() && seen.registers_agree_with(&guest)
        },
    },
    Difference {
        name: "MOVSXD to 16 bits",
        reason: "reads two bytes (SDM vol. 2B, MOVSXD), or four (APM vol. 3, MOVSXD)",
        // movsxd ax, [rsi]. Only the first two bytes at RSI are mapped.
        bytes: &[0x66, 0x63, 0x06],
        prepare: |s| s.gpr[RSI] = END - 2,
        shown: |_, host, _| faulted(host, VECTOR_PF),
        concerns: |e| {
            e.instruction.code() == Code::Movsxd_r16_rm16 && e.instruction.op1_kind() == OpKind::Memory
        },
        explains: |seen| {
            let reads = matches!(seen.host.end, End::Fault { vector: VECTOR_PF | VECTOR_GP | VECTOR_AC, .. });
            // If the instruction retires on the guest, the difference explains each of these faults of the host. If the
            // guest faults, too, because it cannot even read two bytes, the difference explains only #AC. A host that
            // reads four bytes may raise it instead of the page fault.
            let alone = seen.guest.end == End::Retired || faulted(seen.host, VECTOR_AC);
            reads && alone && seen.agrees_with(&seen.nothing_done())
        },
    },
    Difference {
        name: "PAUSE with REX.B",
        reason: "PAUSE, or XCHG of R8 and RAX",
        bytes: &[0xf3, 0x41, 0x90],
        prepare: |s| s.gpr[8] = 1,
        shown: |_, host, _| (host.state.gpr[0], host.state.gpr[R8]) == (1, 0),
        concerns: |e| {
            e.instruction.mnemonic() == Mnemonic::Pause && rex_of_nop(e).is_some_and(|rex| rex & 1 != 0)
        },
        explains: |seen| {
            let mut exchanged = seen.guest.clone();
            exchange(&mut exchanged.state, &seen.case.encoded);
            seen.agrees_with(&exchanged)
        },
    },
    Difference {
        name: "LOOPE and LOOPNE with prefix F2 or F3",
        reason: "the prefix is ignored, or it determines for which ZF the loop continues",
        // repe loopne, with ZF clear
        bytes: &[0xf3, 0xe0, 0x05],
        prepare: |s| s.gpr[RCX] = 2,
        shown: |case, host, _| host.state.rip == case.state.rip + 3,
        concerns: |e| {
            let repeated = prefixes(&e.bytes).iter().any(|b| matches!(b, 0xf2 | 0xf3));
            matches!(e.instruction.mnemonic(), Mnemonic::Loope | Mnemonic::Loopne) && repeated
        },
        explains: |seen| {
            let i = &seen.case.encoded.instruction;
            let mut guest = seen.guest.clone();
            let both = [i.next_ip(), i.near_branch_target()];
            let other = both.iter().find(|&&rip| rip != guest.state.rip);
            both.contains(&guest.state.rip)
                && other.is_some_and(|&other| {
                    guest.state.rip = other;
                    seen.agrees_with(&guest)
                })
        },
    },
    Difference {
        name: "order of the operands of CMPS",
        reason: "processors choose the order of an instruction's accesses",
        bytes: &[0xa6],
        prepare: |s| (s.gpr[RSI], s.gpr[RDI]) = (END, WILD),
        shown: |_, host, _| faulted(host, VECTOR_PF),
        concerns: |e| is_compare_of_strings(&e.instruction),
        explains: first_operand_of_cmps_faults,
    },
    Difference {
        name: "order of the operands of repeated CMPS",
        reason: "processors choose the order of an instruction's accesses; AMD's Zen 4 has another one for REP",
        bytes: &[0xf3, 0xa6],
        prepare: |s| (s.gpr[RSI], s.gpr[RDI]) = (END, WILD),
        shown: |_, host, _| faulted(host, VECTOR_PF),
        concerns: |e| {
            is_compare_of_strings(&e.instruction)
                && (e.instruction.has_rep_prefix() || e.instruction.has_repne_prefix())
        },
        explains: first_operand_of_cmps_faults,
    },
    Difference {
        name: "suppressed x87 stores to memory that faults",
        reason: "an unmasked numeric exception suppresses a store; processors may or may not check the access before",
        // fst dword [rsi], with a signalling NaN in ST(0)
        bytes: &[0xd9, 0x16],
        prepare: |s| {
            s.gpr[RSI] = END;
            (s.fpu.fcw, s.fpu.ftw) = (0x37e, 0xff);
            s.fpu.r = [(0xa000_0000_0000_0000, 0x7fff); 8];
        },
        shown: |_, host, _| faulted(host, VECTOR_PF),
        concerns: |e| stores_from_x87(&e.instruction),
        explains: |seen| {
            let suppressed = seen.guest.end == End::Retired && seen.guest.state.fpu.fsw & 0x80 != 0;
            suppressed && seen.host.end != End::Retired && seen.agrees_with(&seen.nothing_done())
        },
    },
    Difference {
        name: "FPREM with a denormal remainder and unmasked underflow",
        reason: "the exact tiny result raises no exception, or it underflows",
        bytes: &[0xd9, 0xf5],
        prepare: |s| {
            (s.fpu.fcw, s.fpu.ftw) = (0x36f, 0xff);
            s.fpu.r = [(1 << 63, 0x3fff); 8];
            s.fpu.r[0] = (1 << 61, 0);
        },
        shown: |_, host, _| host.state.fpu.fsw & 0x90 == 0x90,
        concerns: |e| matches!(e.instruction.mnemonic(), Mnemonic::Fprem | Mnemonic::Fprem1),
        explains: |seen| {
            let (host, mut guest) = (&seen.host.state.fpu, seen.guest.clone());
            let underflow_masked = seen.case.state.fpu.fcw & 0x10 != 0;
            // An underflow changes the status word and the exponent of the result. Before the comparison, both are
            // copied from the host to the guest.
            guest.state.fpu.fsw = host.fsw;
            let top = usize::from(host.fsw >> 11 & 7);
            guest.state.fpu.r[top] = host.r[top];
            !underflow_masked && host.fsw & 0x90 == 0x90 && seen.agrees_with(&guest)
        },
    },
    Difference {
        name: "return address of a call to a non-canonical address",
        reason: "the return address is pushed before the target's #GP, or not at all; RSP is unchanged",
        // call rsi
        bytes: &[0xff, 0xd6],
        prepare: |s| s.gpr[RSI] = WILD,
        // Both behaviours raise #GP.
        shown: |case, host, data| {
            let stack = offset(case.state.gpr[RSP]).expect("the stack is in the arena") - DATA;
            let pushed = &data[(stack - PUSHED) as usize..stack as usize];
            faulted(host, VECTOR_GP) && pushed != case.encoded.instruction.next_ip().to_le_bytes()
        },
        concerns: |e| e.instruction.is_call_near_indirect(),
        explains: |seen| {
            faulted(seen.host, VECTOR_GP)
                && seen.registers_agree_with(seen.guest)
                && seen.memory_agrees_but_for_a_push()
        },
    },
    Difference {
        name: "PREFETCHW of a register",
        reason: "a reserved NOP (SDM vol. 2D, opcode map), or #UD (APM vol. 3, PREFETCH)",
        bytes: &[0x0f, 0x0d, 0xc9],
        prepare: |_| {},
        shown: |_, host, _| faulted(host, VECTOR_UD),
        concerns: |e| {
            matches!(
                e.instruction.code(),
                Code::Reservednop_rm16_r16_0F0D
                    | Code::Reservednop_rm32_r32_0F0D
                    | Code::Reservednop_rm64_r64_0F0D
            ) && e.instruction.op0_kind() == OpKind::Register
        },
        explains: |seen| {
            let retired = faulted(seen.host, VECTOR_UD) && seen.guest.end == End::Retired;
            retired && seen.agrees_with(&seen.nothing_done())
        },
    },
    Difference {
        name: "alignment checks of more than eight bytes",
        reason: "MOVUPS, PCMPESTRI, FBSTP and the like are checked (APM vol. 2, 8.2.18), or not (SDM vol. 3A, 6.15)",
        // movups xmm0, [rsi]
        bytes: &[0x0f, 0x10, 0x06],
        prepare: |s| {
            s.gpr[RSI] = HIGH + DATA + 1;
            s.rflags |= flag::AC;
        },
        shown: |_, host, _| faulted(host, VECTOR_AC),
        concerns: |e| accesses_more_than_eight_bytes(&e.instruction),
        explains: |seen| {
            let checked = seen.case.state.rflags & flag::AC != 0 && faulted(seen.host, VECTOR_AC);
            checked && seen.memory_agrees_but_for_a_store() && seen.registers_agree_with(&seen.nothing_done())
        },
    },
    Difference {
        name: "NaNs of DPPS",
        reason: "processors choose which of several NaN operands is the result",
        // dpps xmm0, xmm1, 0xf1
        bytes: &[0x66, 0x0f, 0x3a, 0x40, 0xc1, 0xf1],
        prepare: |s| {
            s.fpu.xmm[0] = 0x7fc0_0004_7fc0_0003_7fc0_0002_7fc0_0001;
            s.fpu.xmm[1] = 0x3f80_0000_3f80_0000_3f80_0000_3f80_0000;
        },
        shown: |_, host, _| host.state.fpu.xmm[0] as u32 != 0x7fc0_0002,
        concerns: |e| matches!(e.instruction.mnemonic(), Mnemonic::Dpps | Mnemonic::Dppd),
        explains: |seen| {
            let mut guest = seen.guest.clone();
            let is_single = seen.case.encoded.instruction.mnemonic() == Mnemonic::Dpps;
            take_nans(&seen.host.state.fpu, &mut guest.state.fpu, if is_single { 4 } else { 8 });
            seen.agrees_with(&guest)
        },
    },
    Difference {
        name: "mask of a gather that faults",
        reason: "elements of the mask beyond the gathered ones are cleared at the start (SDM vol. 2C, VGATHERQPS), or \
                 extended like the others and cleared at the end",
        // vgatherqps xmm0, [rsi+ymm2], xmm1
        bytes: &[0xc4, 0xe2, 0x75, 0x93, 0x04, 0x16],
        prepare: |s| {
            s.gpr[RSI] = END;
            (s.fpu.xmm[1], s.ymm[1]) = (u128::MAX, 1 << 31);
        },
        shown: |_, host, _| host.state.ymm[1] == 0xffff_ffff,
        concerns: |e| mask_of_gather(&e.instruction).is_some(),
        explains: |seen| {
            let Some((mask, bits)) = mask_of_gather(&seen.case.encoded.instruction) else { return false };
            let mut guest = seen.guest.clone();
            let of = |state: &State| [state.fpu.xmm[mask], state.ymm[mask]];
            let all = extended_mask(of(&guest.state), of(&seen.case.state), bits);
            [guest.state.fpu.xmm[mask], guest.state.ymm[mask]] = all;
            seen.host.end != End::Retired && seen.agrees_with(&guest)
        },
    },
    Difference {
        name: "VDPPS of 256 bits with an unmasked exception in one half",
        reason: "an exception in the products of one half ends the whole instruction, or only this half",
        // vdpps ymm0, ymm1, ymm2, 0xf1. The products of the lower half overflow, and the sums of the upper half are invalid.
        bytes: &[0xc4, 0xe3, 0x75, 0x40, 0xc2, 0xf1],
        prepare: |s| {
            s.fpu.mxcsr = 0x1f80 & !OVERFLOW_MASK;
            (s.fpu.xmm[1], s.fpu.xmm[2]) = (0x7f7f_ffff, 0x7f7f_ffff);
            (s.ymm[1], s.ymm[2]) = (0x7f80_0000_7f80_0000, 0xbf80_0000_3f80_0000);
        },
        shown: |_, host, _| host.state.fpu.mxcsr & INVALID == 0,
        concerns: |e| e.instruction.code() == Code::VEX_Vdpps_ymm_ymm_ymmm256_imm8,
        explains: |seen| {
            let (host, mut guest) = (seen.host, seen.guest.clone());
            let (some, all) = (host.state.fpu.mxcsr, guest.state.fpu.mxcsr);
            let fewer = some != all && some & !all == 0;
            guest.state.fpu.mxcsr = some;
            fewer && faulted(host, VECTOR_XM) && seen.agrees_with(&guest)
        },
    },
    Difference {
        name: "VCVTPS2PH of a tiny number with unmasked underflow",
        reason: "the result is exact with an unbounded exponent, or inexact as a denormal number",
        // vcvtps2ph xmm0, xmm1, 4
        bytes: &[0xc4, 0xe3, 0x79, 0x1d, 0xc8, 0x04],
        prepare: |s| (s.fpu.mxcsr, s.fpu.xmm[1]) = (0x1f80 & !UNDERFLOW_MASK, 1),
        shown: |_, host, _| host.state.fpu.mxcsr & PRECISION != 0,
        concerns: |e| e.instruction.mnemonic() == Mnemonic::Vcvtps2ph,
        explains: |seen| {
            let mut guest = seen.guest.clone();
            let underflows = guest.state.fpu.mxcsr & (UNDERFLOW | UNDERFLOW_MASK) == UNDERFLOW;
            guest.state.fpu.mxcsr |= PRECISION;
            underflows && seen.agrees_with(&guest)
        },
    },
    Difference {
        name: "UD0 and UD1 whose last bytes cannot be fetched",
        reason: "#UD is raised before the whole operand is fetched, or after",
        // ud1 eax, [rip]. Only its first two bytes can be fetched.
        bytes: &[0x0f, 0xb9, 0x05, 0, 0, 0, 0],
        prepare: |s| s.rip = HIGH + CODE + crate::arena::CODE_LEN - 2,
        shown: |_, host, _| faulted(host, VECTOR_UD),
        concerns: |e| matches!(e.instruction.mnemonic(), Mnemonic::Ud0 | Mnemonic::Ud1),
        explains: |seen| {
            let both = faulted(seen.host, VECTOR_UD) && faulted(seen.guest, VECTOR_PF);
            both && seen.agrees_with(&seen.nothing_done())
        },
    },
];

/// Returns default registers with which any instruction can execute.
pub(crate) fn plain() -> State {
    let mut state =
        State { gpr: [0; 16], rip: HIGH + CODE, rflags: 0x202, fpu: FpuState::default(), ymm: [0; 16] };
    state.gpr[RSP] = HIGH + DATA + 0x8000;
    state.gpr[RCX] = 1;
    state
}

impl Difference {
    /// Returns the test case of the difference. The word below the stack pointer is zero, so that a pushed return
    /// address shows.
    pub(crate) fn case(&self) -> Case {
        let mut state = plain();
        let stack = offset(state.gpr[RSP]).expect("the stack is in the arena");
        (self.prepare)(&mut state);
        let encoded = decode(self.bytes, state.rip, CpuModel::LARGEST);
        Case { encoded, state, writes: vec![(stack - PUSHED, vec![0; PUSHED as usize])] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(name: &str) -> &'static Difference {
        TABLE.iter().find(|difference| difference.name == name).expect("the table has this difference")
    }

    /// With both behaviours #GP is raised, so only the pushed return address shows the difference.
    #[test]
    fn a_call_to_a_non_canonical_address_shows_in_the_stack() {
        let difference = difference("return address of a call to a non-canonical address");
        let case = difference.case();
        let host = Outcome {
            state: case.state.clone(),
            end: End::Fault { vector: VECTOR_GP, error: 0, address: 0 },
            retired: 0,
        };
        let mut data = vec![0; (DATA + crate::arena::DATA_LEN) as usize];
        assert!((difference.shown)(&case, &host, &data), "nothing was pushed");
        let at = (offset(case.state.gpr[RSP]).unwrap() - DATA - PUSHED) as usize;
        data[at..at + PUSHED as usize].copy_from_slice(&case.encoded.instruction.next_ip().to_le_bytes());
        assert!(!(difference.shown)(&case, &host, &data), "the return address was pushed");
    }

    #[test]
    fn only_near_branches_with_prefix_66_are_16_bits_wide() {
        let concerns = difference("near branches with prefix 66").concerns;
        let concerned = |bytes: &[u8]| concerns(&decode(bytes, HIGH + CODE, CpuModel::V2));
        let near: [&[u8]; 6] = [
            &[0x66, 0xeb, 0],
            &[0x66, 0xe8, 0, 0, 0, 0],
            &[0x66, 0x0f, 0x84, 0, 0, 0, 0],
            &[0x66, 0xc3],
            &[0x66, 0xe2, 0],
            &[0x66, 0xff, 0xd0],
        ];
        assert!(near.into_iter().all(concerned));
        // A short jump without a prefix, a far jump, and two instructions that are not branches. AMD's processors
        // decode 0F 0D C9 differently.
        let others: [&[u8]; 4] = [&[0xeb, 0], &[0x66, 0x48, 0xff, 0x2e], &[0x0f, 0x0d, 0xc9], &[0x66, 0x90]];
        assert!(!others.into_iter().any(concerned));
    }

    #[test]
    fn the_prefixes_of_opcode_90_determine_its_operand_size() {
        let exchanged = |bytes: &[u8]| {
            let mut state = plain();
            (state.gpr[0], state.gpr[R8]) = (0x1111_2222_3333_4444, 0x5555_6666_7777_8888);
            exchange(&mut state, &decode(bytes, HIGH + CODE, CpuModel::V2));
            (state.gpr[0], state.gpr[R8])
        };
        assert_eq!(exchanged(&[0xf3, 0x49, 0x90]), (0x5555_6666_7777_8888, 0x1111_2222_3333_4444));
        assert_eq!(exchanged(&[0xf3, 0x41, 0x90]), (0x7777_8888, 0x3333_4444));
        assert_eq!(exchanged(&[0x66, 0xf3, 0x41, 0x90]), (0x1111_2222_3333_8888, 0x5555_6666_7777_4444));
    }

    #[test]
    fn nans_are_replaced_by_element_size() {
        let (mut host, mut guest) = (FpuState::default(), FpuState::default());
        // NaNs of eight bytes. If split into elements of four bytes, only the upper elements are NaNs, and they are
        // equal.
        (host.xmm[0], guest.xmm[0]) = (0x7ff8_0000_0000_0001, 0x7ff8_0000_0000_0002);
        let mut taken = guest.clone();
        take_nans(&host, &mut taken, 8);
        assert_eq!(taken.xmm[0], host.xmm[0]);
        taken = guest.clone();
        take_nans(&host, &mut taken, 4);
        assert_eq!(taken.xmm[0], guest.xmm[0]);
    }
}
