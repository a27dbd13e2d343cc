//! Input and outcome of an instruction, in one form for host and guest.

pub(crate) use crate::flag;
use everett_cpu::state::FpuState;
use std::fmt;

/// Names of the general registers, in the order of `State::gpr`.
pub(crate) const GPR_NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
/// Index of RCX in `State::gpr`.
pub(crate) const RCX: usize = 1;
/// Index of RSP in `State::gpr`.
pub(crate) const RSP: usize = 4;

/// Registers that user code can access.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) gpr: [u64; 16],
    pub(crate) rip: u64,
    pub(crate) rflags: u64,
    pub(crate) fpu: FpuState,
    /// Upper halves of the YMM registers. They are zero on models without AVX.
    pub(crate) ymm: [u128; 16],
}

/// Leaves out YMM registers that are all zero: the recorded digests of models without AVX cover this text.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("State");
        out.field("gpr", &self.gpr).field("rip", &self.rip);
        out.field("rflags", &self.rflags).field("fpu", &self.fpu);
        if self.ymm != [0; 16] {
            out.field("ymm", &self.ymm);
        }
        out.finish()
    }
}

/// The way in which an instruction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The instruction retired.
    Retired,
    /// The instruction raised an exception.
    Fault {
        vector: u8,
        /// Error code, or zero if the vector has none.
        error: u32,
        /// CR2 after a page fault, otherwise zero.
        address: u64,
    },
}

/// Number of instructions or iterations to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// One instruction. A repeated string instruction executes at most this many iterations.
    Iterations(u64),
    /// This many instructions.
    Instructions(u64),
}

/// Outcome of the execution of one or several instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    pub(crate) end: End,
    /// Number of retired instructions. Each iteration of a repeated string instruction counts as one.
    pub(crate) retired: u64,
}

/// Size of the FXSAVE image in bytes (SDM vol. 1, 10.5.1).
pub(crate) const FXSAVE_LEN: usize = 512;

/// Writes x87 and SSE state into an FXSAVE64 image. Bytes that belong to no register keep their values.
pub(crate) fn to_fxsave(fpu: &FpuState, image: &mut [u8; FXSAVE_LEN]) {
    image[0..2].copy_from_slice(&fpu.fcw.to_le_bytes());
    image[2..4].copy_from_slice(&fpu.fsw.to_le_bytes());
    image[4] = fpu.ftw;
    image[5] = 0;
    image[6..8].copy_from_slice(&fpu.fop.to_le_bytes());
    image[8..16].copy_from_slice(&fpu.fip.to_le_bytes());
    image[16..24].copy_from_slice(&fpu.fdp.to_le_bytes());
    image[24..28].copy_from_slice(&fpu.mxcsr.to_le_bytes());
    for i in 0..8 {
        let (significand, exponent) = fpu.r[(usize::from(fpu.fsw >> 11) + i) & 7];
        let at = 32 + 16 * i;
        image[at..at + 8].copy_from_slice(&significand.to_le_bytes());
        image[at + 8..at + 10].copy_from_slice(&exponent.to_le_bytes());
        image[at + 10..at + 16].fill(0);
    }
    for (i, xmm) in fpu.xmm.iter().enumerate() {
        let at = 160 + 16 * i;
        image[at..at + 16].copy_from_slice(&xmm.to_le_bytes());
    }
}

/// Reads x87 and SSE state from an FXSAVE64 image.
pub(crate) fn from_fxsave(image: &[u8; FXSAVE_LEN]) -> FpuState {
    let u16_at = |at: usize| u16::from_le_bytes([image[at], image[at + 1]]);
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| image[at + i]));
    let mut fpu = FpuState {
        fcw: u16_at(0),
        fsw: u16_at(2),
        ftw: image[4],
        fop: u16_at(6),
        fip: u64_at(8),
        fdp: u64_at(16),
        mxcsr: u64_at(24) as u32,
        ..FpuState::default()
    };
    for i in 0..8 {
        let at = 32 + 16 * i;
        fpu.r[(usize::from(fpu.fsw >> 11) + i) & 7] = (u64_at(at), u16_at(at + 8));
    }
    for (i, xmm) in fpu.xmm.iter_mut().enumerate() {
        *xmm = u128::from_le_bytes(std::array::from_fn(|b| image[160 + 16 * i + b]));
    }
    fpu
}
