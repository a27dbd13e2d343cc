//! Where makes of processors differ, and how that is found out.
//!
//! The soft CPU does what Intel's processors do. Each [`Difference`] is something that processors of another make do otherwise. It comes
//! with a case of its own: a host has the difference only if it was seen to do the other thing in that case. So a host that behaves as
//! the model does is compared in full, and a host of any make can fail: what it does otherwise, and is not in [`TABLE`], is a disagreement.
//!
//! A difference overlooks outcomes, not instructions: a case that it applies to and in which both sides agree counts as compared.

use everett_cpu::state::FpuState;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use crate::arena::{CODE, CONST, CONST_LEN, DATA, HIGH};
use crate::encode::{Encoded, decode};
use crate::exempt::DECODER;
use crate::place::Case;
use crate::state::{End, Outcome, RCX, RSP, State, flag};

const VECTOR_UD: u8 = 6;
const VECTOR_GP: u8 = 13;
const VECTOR_PF: u8 = 14;
const VECTOR_AC: u8 = 17;
/// An address that is not canonical.
const WILD: u64 = 0x7f00_0000_0000_0000;
/// Bytes behind which nothing is mapped.
const END: u64 = HIGH + CONST + CONST_LEN;
const RSI: usize = 6;
const RDI: usize = 7;

/// Something that processors of another make do otherwise.
pub(crate) struct Difference {
    /// The name by which it is told.
    pub(crate) name: &'static str,
    /// The manuals that disagree, or leave it open.
    pub(crate) reason: &'static str,
    /// Bytes of the case that shows it, and a change to plain registers.
    pub(crate) bytes: &'static [u8],
    pub(crate) prepare: fn(&mut State),
    /// True if the host did the other thing in that case.
    pub(crate) shown: fn(&Case, &Outcome) -> bool,
    /// True if the difference can bear on this instruction.
    pub(crate) concerns: fn(&Encoded) -> bool,
    /// True if it can be why these outcomes differ.
    pub(crate) explains: fn(&Case, &Outcome, &Outcome) -> bool,
}

fn faulted(outcome: &Outcome, with: u8) -> bool {
    matches!(outcome.end, End::Fault { vector, .. } if vector == with)
}
fn always(_: &Case, _: &Outcome, _: &Outcome) -> bool {
    true
}
/// The host decodes the bytes as AMD's processors do.
fn decodes_otherwise(e: &Encoded) -> bool {
    let amd = Decoder::with_ip(64, &e.bytes, e.instruction.ip(), DECODER | DecoderOptions::AMD).decode();
    amd.code() != e.instruction.code()
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
/// True if XMM registers differ in elements alone that are NaNs on both sides, of eight bytes or of four.
fn only_nans_differ(host: &FpuState, guest: &FpuState) -> bool {
    let nan = |v: u32| v & 0x7fff_ffff > 0x7f80_0000;
    let nan_64 = |v: u64| v & u64::MAX >> 1 > 0x7ff0_0000_0000_0000;
    let halves = |v: u64| [v as u32, (v >> 32) as u32];
    let alike = |h: u64, g: u64| {
        let mut pairs = halves(h).into_iter().zip(halves(g));
        nan_64(h) && nan_64(g) || pairs.all(|(h, g)| h == g || nan(h) && nan(g))
    };
    let pairs = host.xmm.iter().zip(&guest.xmm);
    pairs.into_iter().all(|(h, g)| alike(*h as u64, *g as u64) && alike((h >> 64) as u64, (g >> 64) as u64))
}

/// The table.
pub(crate) const TABLE: &[Difference] = &[
    Difference {
        name: "near branches with prefix 66",
        reason: "ignored (SDM vol. 1, 3.3.7.1), or a branch of 16 bits (APM vol. 3, near branches in 64-bit mode)",
        bytes: &[0x66, 0xeb, 0x00],
        prepare: |_| {},
        shown: |case, host| host.state.rip == (case.state.rip + 3) & 0xffff,
        concerns: decodes_otherwise,
        explains: always,
    },
    Difference {
        name: "MOVSXD to 16 bits",
        reason: "reads two bytes (SDM vol. 2B, MOVSXD), or four (APM vol. 3, MOVSXD)",
        // movsxd ax, [rsi], with two bytes left
        bytes: &[0x66, 0x63, 0x06],
        prepare: |s| s.gpr[RSI] = END - 2,
        shown: |_, host| faulted(host, VECTOR_PF),
        concerns: |e| {
            e.instruction.code() == Code::Movsxd_r16_rm16 && e.instruction.op1_kind() == OpKind::Memory
        },
        explains: |_, host, guest| host.end != guest.end,
    },
    Difference {
        name: "PAUSE with REX.B",
        reason: "PAUSE, or XCHG of R8 and RAX",
        bytes: &[0xf3, 0x41, 0x90],
        prepare: |s| s.gpr[8] = 1,
        shown: |_, host| (host.state.gpr[0], host.state.gpr[8]) == (1, 0),
        concerns: |e| e.instruction.mnemonic() == Mnemonic::Pause,
        explains: |_, host, guest| {
            let others =
                |o: &Outcome| (o.state.rip, o.end, [1, 2, 3, 4, 5, 6, 7, 9, 15].map(|n| o.state.gpr[n]));
            others(host) == others(guest)
        },
    },
    Difference {
        name: "LOOPE and LOOPNE with prefix F2 or F3",
        reason: "ignored, or it decides for which ZF the loop goes on",
        // repe loopne, where ZF is clear
        bytes: &[0xf3, 0xe0, 0x05],
        prepare: |s| s.gpr[RCX] = 2,
        shown: |case, host| host.state.rip == case.state.rip + 3,
        concerns: |e| {
            let i = &e.instruction;
            let repeated =
                e.bytes.iter().take_while(|b| **b & 0xfc != 0xe0).any(|b| matches!(b, 0xf2 | 0xf3));
            matches!(i.mnemonic(), Mnemonic::Loope | Mnemonic::Loopne) && repeated
        },
        explains: |_, host, guest| host.state.gpr == guest.state.gpr,
    },
    Difference {
        name: "operand of CMPS that faults first",
        reason: "processors choose the order of an instruction's accesses",
        bytes: &[0xa6],
        prepare: |s| (s.gpr[RSI], s.gpr[RDI]) = (END, WILD),
        shown: |_, host| faulted(host, VECTOR_PF),
        concerns: |e| is_compare_of_strings(&e.instruction),
        explains: |_, host, guest| host.end != End::Retired && guest.end != End::Retired,
    },
    Difference {
        name: "x87 stores that are suppressed, to memory that faults",
        reason: "an unmasked numeric exception keeps a result from being stored; whether the access is tried before is open",
        // fst dword [rsi], of a NaN that signals
        bytes: &[0xd9, 0x16],
        prepare: |s| {
            s.gpr[RSI] = END;
            (s.fpu.fcw, s.fpu.ftw) = (0x37e, 0xff);
            s.fpu.r = [(0xa000_0000_0000_0000, 0x7fff); 8];
        },
        shown: |_, host| faulted(host, VECTOR_PF),
        concerns: |e| stores_from_x87(&e.instruction),
        explains: |_, host, guest| host.end != End::Retired && guest.state.fpu.fsw & 0x80 != 0,
    },
    Difference {
        name: "FPREM of a denormal that is the remainder, with underflow not masked",
        reason: "the result is exact and as tiny as the operand, or it underflows",
        bytes: &[0xd9, 0xf5],
        prepare: |s| {
            (s.fpu.fcw, s.fpu.ftw) = (0x36f, 0xff);
            s.fpu.r = [(1 << 63, 0x3fff); 8];
            s.fpu.r[0] = (1 << 61, 0);
        },
        shown: |_, host| host.state.fpu.fsw & 0x90 == 0x90,
        concerns: |e| matches!(e.instruction.mnemonic(), Mnemonic::Fprem | Mnemonic::Fprem1),
        explains: |case, host, _| {
            let underflow_masked = case.state.fpu.fcw & 0x10 != 0;
            !underflow_masked && host.state.fpu.fsw & 0x90 == 0x90
        },
    },
    Difference {
        name: "return address of a call to nowhere",
        reason: "pushed or not before the target's #GP; RSP is as it was",
        // call rsi
        bytes: &[0xff, 0xd6],
        prepare: |s| s.gpr[RSI] = WILD,
        shown: |_, host| faulted(host, VECTOR_GP),
        concerns: |e| e.instruction.is_call_near_indirect(),
        explains: |_, host, guest| {
            faulted(host, VECTOR_GP) && host.end == guest.end && host.state.gpr == guest.state.gpr
        },
    },
    Difference {
        name: "PREFETCHW of a register",
        reason: "a reserved NOP (SDM vol. 2D, opcode map), or #UD (APM vol. 3, PREFETCH)",
        bytes: &[0x0f, 0x0d, 0xc9],
        prepare: |_| {},
        shown: |_, host| faulted(host, VECTOR_UD),
        concerns: |e| {
            matches!(
                e.instruction.code(),
                Code::Reservednop_rm16_r16_0F0D
                    | Code::Reservednop_rm32_r32_0F0D
                    | Code::Reservednop_rm64_r64_0F0D
            ) && e.instruction.op0_kind() == OpKind::Register
        },
        explains: |_, host, _| faulted(host, VECTOR_UD),
    },
    Difference {
        name: "alignment checks of more than eight bytes",
        reason: "operands of MOVUPS, PCMPESTRI, FBSTP and their like are checked (APM vol. 2, 8.2.18), or not (SDM vol. 3A, 6.15)",
        // movups xmm0, [rsi]
        bytes: &[0x0f, 0x10, 0x06],
        prepare: |s| {
            s.gpr[RSI] = HIGH + DATA + 1;
            s.rflags |= flag::AC;
        },
        shown: |_, host| faulted(host, VECTOR_AC),
        concerns: |e| accesses_more_than_eight_bytes(&e.instruction),
        explains: |case, host, _| case.state.rflags & flag::AC != 0 && faulted(host, VECTOR_AC),
    },
    Difference {
        name: "NaNs of DPPS",
        reason: "which of several NaNs a sum of products is",
        // dpps xmm0, xmm1, 0xf1
        bytes: &[0x66, 0x0f, 0x3a, 0x40, 0xc1, 0xf1],
        prepare: |s| {
            s.fpu.xmm[0] = 0x7fc0_0004_7fc0_0003_7fc0_0002_7fc0_0001;
            s.fpu.xmm[1] = 0x3f80_0000_3f80_0000_3f80_0000_3f80_0000;
        },
        shown: |_, host| host.state.fpu.xmm[0] as u32 != 0x7fc0_0002,
        concerns: |e| matches!(e.instruction.mnemonic(), Mnemonic::Dpps | Mnemonic::Dppd),
        explains: |_, host, guest| only_nans_differ(&host.state.fpu, &guest.state.fpu),
    },
    Difference {
        name: "bytes of UD1 that cannot be fetched",
        reason: "#UD is found before all of the operand is fetched, or after",
        bytes: &[0x0f, 0xb9],
        prepare: |s| s.rip = HIGH + CODE + crate::arena::CODE_LEN - 2,
        shown: |_, host| faulted(host, VECTOR_UD),
        concerns: |e| matches!(e.instruction.mnemonic(), Mnemonic::Ud0 | Mnemonic::Ud1),
        explains: |_, host, guest| faulted(host, VECTOR_UD) && faulted(guest, VECTOR_PF),
    },
];

/// Registers of no particular instruction.
pub(crate) fn plain() -> State {
    let mut state = State { gpr: [0; 16], rip: HIGH + CODE, rflags: 0x202, fpu: FpuState::default() };
    state.gpr[RSP] = HIGH + DATA + 0x8000;
    state.gpr[RCX] = 1;
    state
}

impl Difference {
    /// The case that shows it.
    pub(crate) fn case(&self) -> Case {
        let mut state = plain();
        (self.prepare)(&mut state);
        let encoded = decode(self.bytes, state.rip);
        Case { encoded, state, writes: vec![] }
    }
}
