//! Random registers and memory for an instruction. Every access of the instruction is inside the arena (memory that
//! host and guest have at the same addresses), or at an address that faults in the same way on host and guest.

use crate::arena::{self, CONST, CONST_LEN, DATA, DATA_LEN, GS_BASE, HIGH, LOW};
use crate::encode::Encoded;
use crate::extended::{AREA_LEN, aim_gather, fill_area, has_area, select_components};
use crate::rng::Rng;
use crate::state::{FXSAVE_LEN, RCX, RSP, State, flag, to_fxsave};
use crate::values::{self, Shape};
use everett_cpu::CpuModel;
use iced_x86::{
    CodeSize, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpKind, Register, UsedMemory,
};

/// A test case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) encoded: Encoded,
    pub(crate) state: State,
    /// Writes to the arena before the case. Each has an offset and bytes.
    pub(crate) writes: Vec<(u64, Vec<u8>)>,
}

/// Maximum number of iterations of a repeated string instruction in a case.
pub(crate) const ITERATIONS_MAX: u64 = 40;
/// Maximum number of changes to the registers of a case. If an access is then still neither inside the arena nor
/// certain to fault, the case is dropped.
const ATTEMPTS: usize = 6;

const RAX: usize = 0;
const RDX: usize = 2;
const RBP: usize = 5;
const RSI: usize = 6;
const RDI: usize = 7;

/// One memory access of an instruction.
#[derive(Debug, Clone, Copy)]
struct Access {
    va: u64,
    len: u64,
    size: MemorySize,
}

/// Draws a state for an instruction. Returns `None` if no attempt gave a state in which all accesses stay in the arena
/// or fault.
pub(crate) fn place(encoded: Encoded, rng: &mut Rng, factory: &mut InstructionInfoFactory) -> Option<Case> {
    let i = encoded.instruction;
    let shape = shape_of(i.code().op_code().memory_size());
    let mut state = registers(&i, shape, rng);
    let mut memory: Vec<UsedMemory> = factory.info(&i).used_memory().to_vec();
    if i.is_vsib() {
        if !aim_gather(&i, &mut state, rng) {
            return None;
        }
        memory.clear();
    }
    for m in &memory {
        retarget(&i, m, &mut state, rng);
    }
    accumulator(&i, &mut state, rng);
    if has_area(&i) {
        select_components(&mut state, rng);
    }
    let mut accesses = Vec::new();
    for attempt in 0.. {
        let Some(wrong) =
            memory.iter().find(|m| !access(&i, m, &state).is_some_and(|a| arena::is_safe(a.va, a.len)))
        else {
            break;
        };
        if attempt == ATTEMPTS {
            return None;
        }
        retarget(&i, wrong, &mut state, rng);
    }
    if has_area(&i) && (state.gpr[RAX] as u32 > 7 || state.gpr[RDX] as u32 != 0) {
        // The register is also a part of the address, and selects components that only the host may have.
        return None;
    }
    accesses.extend(memory.iter().filter_map(|m| access(&i, m, &state)));
    if locks(&i) && accesses.iter().any(|a| a.va % 64 + a.len > 64) {
        // A locked access across two cache lines. The kernel may slow the process down after it.
        return None;
    }
    let writes = contents(&i, &accesses, &state, rng);
    Some(Case { encoded, state, writes })
}

fn locks(i: &Instruction) -> bool {
    i.has_lock_prefix() || i.mnemonic() == Mnemonic::Xchg
}

/// Returns the type of values for an operand of this size.
fn shape_of(size: MemorySize) -> Shape {
    match size.element_type() {
        MemorySize::Float32 => Shape::Singles,
        MemorySize::Float64 => Shape::Doubles,
        MemorySize::Float80 => Shape::Extended,
        _ => Shape::Integers,
    }
}

/// Draws registers for an instruction. `shape` is the type of its operands.
pub(crate) fn registers(i: &Instruction, shape: Shape, rng: &mut Rng) -> State {
    let mut gpr: [u64; 16] = std::array::from_fn(|_| values::integer(rng));
    for n in [RSP, RBP, RSI, RDI] {
        gpr[n] = target(rng, 64, n == RSP, false);
    }
    gpr[RCX] = match rng.below(4) {
        0 => values::integer(rng),
        _ => rng.below(80),
    };
    if i.has_rep_prefix() || i.has_repne_prefix() {
        gpr[RCX] = rng.below(ITERATIONS_MAX - 8);
        if i.memory_size() != MemorySize::Unknown && rng.one_in(4) {
            gpr[RCX] = rng.below(3);
        }
    }
    match i.mnemonic() {
        // Operands whose quotient is in range most of the time.
        Mnemonic::Div | Mnemonic::Idiv if !rng.one_in(4) => {
            gpr[RDX] = rng.pick(&[0, 0, u64::MAX, 1]);
            if rng.one_in(2) {
                gpr[RAX] &= 0xffff_ffff_ffff_00ff;
            }
        }
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
            if i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register =>
        {
            gpr[i.op1_register().full_register().number()] = rng.below(1 << 13).wrapping_sub(1 << 12);
        }
        _ => {}
    }
    let other = rng.pick(&[Shape::Integers, Shape::Singles, Shape::Doubles, Shape::Extended]);
    let mut fpu = values::fpu(if rng.one_in(8) { other } else { shape }, rng);
    if rng.one_in(8) {
        // Two registers with equal values.
        let n = rng.below(16) as usize;
        fpu.xmm[rng.below(16) as usize] = fpu.xmm[n];
        fpu.r[rng.below(8) as usize] = fpu.r[n & 7];
    }
    if (i.has_rep_prefix() || i.has_repne_prefix()) && rng.one_in(2) {
        // Sets upper bits of RCX, which make the count huge. With prefix 67 the instruction ignores these bits. Cases
        // with more than `ITERATIONS_MAX` iterations are dropped.
        gpr[RCX] |= rng.next() << 32;
    }
    let mut rflags = 0x202 | rng.next() & flag::ARITH;
    if rng.one_in(3) {
        rflags |= flag::DF;
    }
    if rng.one_in(24) {
        rflags |= flag::AC;
    }
    // Cases of the smallest model stay as they were recorded.
    let ymm = if CpuModel::V2.has(i) { [0; 16] } else { std::array::from_fn(|_| values::vector(shape, rng)) };
    State { gpr, rip: i.ip(), rflags, fpu, ymm }
}

/// Draws an address for an access of `len` bytes. Most addresses are in `DATA`. Some are across two pages, read-only,
/// unmapped or non-canonical.
fn target(rng: &mut Rng, len: u64, stack: bool, low_only: bool) -> u64 {
    let view = if low_only || rng.one_in(3) { LOW } else { HIGH };
    let align = if stack { 8 } else { 16 };
    let len = len.max(1);
    let offset = match rng.below(64) {
        0..=35 => DATA + 512 + rng.below((DATA_LEN - 2048) / align) * align,
        36..=49 => DATA + 512 + rng.below(DATA_LEN - 2048),
        // Across the boundary of two pages.
        50..=55 => DATA + (1 + rng.below(DATA_LEN / 4096 - 1)) * 4096 - rng.below(len + 1),
        // Up to the read-only page, across its start, or inside it.
        56..=57 => CONST - rng.below(len + 1),
        58 => CONST + rng.below(CONST_LEN - 512),
        // Around the ends of the mapped range.
        59..=60 => CONST + CONST_LEN - rng.below(len + 1),
        61 => DATA - rng.below(len + 1),
        62 => DATA + DATA_LEN + CONST_LEN + rng.below(0x8000),
        _ if low_only => DATA - 0x1000,
        _ => {
            return rng.pick(&[0xffff_8800_0000_0000, 0x7f00_0000_0000_0000, 0x8100_0000_0000_0000])
                + rng.below(1 << 32);
        }
    };
    view + offset
}

fn is_32(m: &UsedMemory) -> bool {
    m.address_size() == CodeSize::Code32
}

/// Returns the number of a general register.
fn number(r: Register) -> Option<usize> {
    r.is_gpr().then(|| r.full_register().number())
}

/// Changes the base or index register of an access, so that the access goes to a new random target.
fn retarget(i: &Instruction, m: &UsedMemory, state: &mut State, rng: &mut Rng) {
    let low_only = is_32(m);
    let len = m.memory_size().size() as u64;
    let mut to = target(rng, len, m.base() == Register::RSP, low_only);
    if locks(i) {
        to &= !15;
    }
    if has_area(i) && !rng.one_in(8) {
        to &= !63;
    }
    if m.segment() == Register::GS {
        to = to.wrapping_sub(GS_BASE);
    }
    let to = to.wrapping_sub(m.displacement());
    let scale = u64::from(m.scale());
    let (base, index) = (number(m.base()), number(m.index()));
    let (register, value) = match (base, index) {
        (Some(b), Some(x)) if b == x => (b, to / (1 + scale)),
        (Some(b), Some(x)) if m.index().size() < 4 => (b, to.wrapping_sub(state.gpr[x] & 0xff)),
        (Some(b), Some(x)) => (b, to.wrapping_sub(state.gpr[x].wrapping_mul(scale))),
        (Some(b), None) => (b, to),
        (None, Some(x)) => (x, to / scale),
        (None, None) => return,
    };
    let upper = if low_only { rng.next() & !0xffff_ffff } else { 0 };
    state.gpr[register] = if low_only { value & 0xffff_ffff | upper } else { value };
}

/// Returns an access of an instruction. Returns `None` if the address cannot be computed, or if the instruction has
/// more than [`ITERATIONS_MAX`] iterations.
fn access(i: &Instruction, m: &UsedMemory, state: &State) -> Option<Access> {
    let size = m.memory_size();
    let mut va = m.virtual_address(0, |register, _, _| match register {
        Register::GS => Some(GS_BASE),
        r if r.is_segment_register() => Some(0),
        r if r.is_gpr() => {
            let bits = r.size() as u32 * 8;
            Some(state.gpr[r.full_register().number()] & (u64::MAX >> (64 - bits)))
        }
        _ => None,
    })?;
    let mut len = if has_area(i) { AREA_LEN } else { size.size() as u64 };
    if i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix()) {
        let count = if is_32(m) { state.gpr[RCX] & 0xffff_ffff } else { state.gpr[RCX] };
        if count > ITERATIONS_MAX {
            return None;
        }
        let element = i.memory_size().size() as u64;
        len = element * (count + 1);
        if state.rflags & flag::DF != 0 {
            va = va.wrapping_sub(len - element);
        }
    }
    let bit_test = matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc);
    if bit_test && i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register {
        let bits = i.op1_register().size() as u32 * 8;
        let value = state.gpr[i.op1_register().full_register().number()];
        let signed = ((value << (64 - bits)) as i64) >> (64 - bits);
        va = va.wrapping_add(((signed >> bits.trailing_zeros()) * i64::from(bits / 8)) as u64);
    }
    Some(Access { va, len, size })
}

/// Returns the address of an instruction's memory operand, if it has one.
pub(crate) fn image(case: &Case, factory: &mut InstructionInfoFactory) -> Option<u64> {
    let i = case.encoded.instruction;
    let memory = *factory.info(&i).used_memory().first()?;
    access(&i, &memory, &case.state).map(|a| a.va)
}

/// Sets RAX for CMPXCHG on a register, so that at least half of the comparisons succeed.
fn accumulator(i: &Instruction, state: &mut State, rng: &mut Rng) {
    if i.mnemonic() == Mnemonic::Cmpxchg && i.op0_kind() == OpKind::Register && rng.one_in(2) {
        state.gpr[RAX] = state.gpr[i.op0_register().full_register().number()];
    }
}

/// Draws the contents of the accessed memory.
fn contents(i: &Instruction, accesses: &[Access], state: &State, rng: &mut Rng) -> Vec<(u64, Vec<u8>)> {
    let mut writes = Vec::new();
    for a in accesses {
        if a.len == 0 || rng.one_in(12) {
            continue;
        }
        let mut bytes = Vec::with_capacity(a.len as usize + 16);
        while bytes.len() < a.len as usize {
            let v = values::vector(shape_of(a.size), rng).to_le_bytes();
            let step = if shape_of(a.size) == Shape::Extended { 10 } else { 16 };
            bytes.extend(&v[..step]);
        }
        bytes.truncate(a.len as usize);
        special(i, state, &mut bytes, rng);
        if let Some(write) = clipped(a.va, bytes) {
            writes.push(write);
        }
    }
    writes
}

/// Sets memory operands that must have a special content: expected values, FXSAVE and x87 images, strings.
fn special(i: &Instruction, state: &State, bytes: &mut [u8], rng: &mut Rng) {
    match i.mnemonic() {
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b if rng.one_in(2) => {
            let half = if i.mnemonic() == Mnemonic::Cmpxchg { bytes.len() } else { bytes.len() / 2 };
            let (low, high) = bytes.split_at_mut(half.min(8));
            low.copy_from_slice(&state.gpr[RAX].to_le_bytes()[..low.len()]);
            let high_len = high.len().min(8);
            high[..high_len].copy_from_slice(&state.gpr[RDX].to_le_bytes()[..high_len]);
        }
        Mnemonic::Fxrstor | Mnemonic::Fxrstor64 if !rng.one_in(4) => {
            let mut image = [0u8; FXSAVE_LEN];
            rng.fill(&mut image);
            to_fxsave(&values::fpu(Shape::Extended, rng), &mut image);
            bytes.copy_from_slice(&image[..bytes.len()]);
        }
        _ if has_area(i) => fill_area(bytes, rng),
        Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr if !rng.one_in(4) => {
            let mxcsr = values::fpu(Shape::Integers, rng).mxcsr;
            bytes.copy_from_slice(&mxcsr.to_le_bytes());
        }
        Mnemonic::Scasb | Mnemonic::Scasw | Mnemonic::Scasd | Mnemonic::Scasq if !rng.one_in(4) => {
            // Most elements equal RAX, so that REPE continues and REPNE ends.
            let element = i.memory_size().size();
            for chunk in bytes.chunks_mut(element) {
                if rng.below(8) < 7 {
                    chunk.copy_from_slice(&state.gpr[RAX].to_le_bytes()[..chunk.len()]);
                }
            }
        }
        Mnemonic::Cmpsb | Mnemonic::Cmpsw | Mnemonic::Cmpsd | Mnemonic::Cmpsq
            if i.is_string_instruction() && !rng.one_in(3) =>
        {
            bytes.fill(rng.next() as u8 & 1);
        }
        _ => {}
    }
}

/// Returns the part of `bytes` at `va` that is in `DATA` or `CONST`, with its offset in the arena.
fn clipped(va: u64, mut bytes: Vec<u8>) -> Option<(u64, Vec<u8>)> {
    let mut at = arena::offset(va)?;
    let end = CONST + CONST_LEN;
    if at < DATA {
        let cut = (DATA - at) as usize;
        if cut >= bytes.len() {
            return None;
        }
        bytes.drain(..cut);
        at = DATA;
    }
    if at >= end {
        return None;
    }
    bytes.truncate((end - at) as usize);
    Some((at, bytes))
}
