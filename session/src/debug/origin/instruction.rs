//! An instruction before its execution, and where the values that it stores or defines come from.

use everett_cpu::state::seg;
use everett_vmm::Machine;
use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, EncodingKind, Instruction, InstructionInfo,
    InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Maximum length of an instruction, in bytes.
const CODE_BYTES: usize = 15;

/// Length of an XMM register, in bytes. The upper half of a YMM register begins at this offset.
const XMM_BYTES: u64 = 16;

/// Reason why a value is not followed that several instructions made.
const PARTS_LACK: &str = "several instructions each wrote a part of the value";

/// Reason why the computations of AVX instructions are not followed.
const VECTORS_LACK: &str = "an AVX instruction that is no plain copy made the value, which is not followed";

/// A CPU before an instruction.
#[derive(Debug, Clone)]
pub(super) struct Before {
    gpr: [u64; 16],
    /// Bases of FS and GS.
    bases: [u64; 2],
    flags: u64,
    /// Paging root.
    pub(super) root: u64,
    /// Number of instructions that the node has retired.
    pub(super) count: u64,
    instruction: Option<Instruction>,
}

/// A part of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The whole register: one of RAX to R15 or XMM0 to XMM15. An XMM register stands for the YMM register that it is the
    /// lower half of, so `offset` can be 16 or more.
    pub(super) register: Register,
    /// Offset of the first byte.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
}

impl Part {
    /// Returns the register's name for messages: that of the YMM register if the part has bytes of its upper half.
    pub(super) fn named(self) -> Register {
        if self.register.is_xmm() && self.offset + self.bytes > XMM_BYTES {
            Register::YMM0 + self.register.number() as u32
        } else {
            self.register
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Linear address and length in bytes.
    Memory(u64, u64),
    /// A register.
    Register(Part),
    /// The instruction itself contains or makes the value.
    Constant(String),
    /// Computed from these values.
    Computed(Vec<Value>),
    /// Not known, for this reason.
    Unknown(String),
}

/// Instructions that copy their second operand to their first.
fn copies(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Lddqu, Mov, Movapd, Movaps, Movd, Movdqa, Movdqu, Movntdq, Movnti, Movntps, Movq, Movsx, Movsxd,
        Movupd, Movups, Movzx, Vlddqu, Vmovapd, Vmovaps, Vmovd, Vmovdqa, Vmovdqu, Vmovntdq, Vmovntdqa,
        Vmovntpd, Vmovntps, Vmovq, Vmovupd, Vmovups,
    };
    matches!(
        mnemonic,
        Mov | Movzx
            | Movsx
            | Movsxd
            | Movd
            | Movq
            | Movaps
            | Movapd
            | Movups
            | Movupd
            | Movdqa
            | Movdqu
            | Lddqu
            | Movnti
            | Movntdq
            | Movntps
            | Vmovd
            | Vmovq
            | Vmovaps
            | Vmovapd
            | Vmovups
            | Vmovupd
            | Vmovdqa
            | Vmovdqu
            | Vlddqu
            | Vmovntdq
            | Vmovntdqa
            | Vmovntps
            | Vmovntpd
    )
}

fn is_string_copy(mnemonic: Mnemonic, instruction: &Instruction) -> bool {
    use Mnemonic::{Movsb, Movsd, Movsq, Movsw};
    matches!(mnemonic, Movsb | Movsw | Movsd | Movsq) && instruction.is_string_instruction()
}

fn is_general(register: Register) -> bool {
    register.is_gpr() || register.is_vector_register()
}

/// Returns the part that a register names. Registers of 32 bits name the whole register if they are written, because
/// the CPU clears the rest. Instructions with a VEX prefix write a ZMM register, because they clear the rest of theirs.
fn part(register: Register, is_written: bool) -> Option<Part> {
    if !is_general(register) {
        return None;
    }
    let offset = u64::from(matches!(register, Register::AH | Register::BH | Register::CH | Register::DH));
    let bytes = register.size() as u64;
    let bytes = if is_written && register.is_gpr32() { 8 } else { bytes };
    let register = if register.is_vector_register() {
        Register::XMM0 + register.number() as u32
    } else {
        register.full_register()
    };
    Some(Part { register, offset, bytes })
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

impl Before {
    pub(super) fn of(machine: &Machine, count: u64) -> Before {
        let cpu = machine.cpu();
        let mut code = [0; CODE_BYTES];
        let read = machine.read_virtual(cpu.rip, &mut code);
        let mut decoder = Decoder::with_ip(64, &code[..read.min(CODE_BYTES)], cpu.rip, DecoderOptions::NONE);
        let instruction = decoder.can_decode().then(|| decoder.decode()).filter(|it| !it.is_invalid());
        Before {
            gpr: cpu.gpr,
            bases: [cpu.seg[seg::FS].base, cpu.seg[seg::GS].base],
            flags: cpu.rflags,
            root: cpu.cr3,
            count,
            instruction,
        }
    }

    /// Returns the instruction as text, as the CPU's manual writes its form.
    pub(super) fn text(&self) -> String {
        match &self.instruction {
            Some(instruction) => instruction.op_code().instruction_string().to_owned(),
            None => "an unknown instruction".to_owned(),
        }
    }

    fn value(&self, register: Register) -> Option<u64> {
        Some(match register {
            Register::FS => self.bases[0],
            Register::GS => self.bases[1],
            Register::ES | Register::CS | Register::SS | Register::DS => 0,
            _ if register.is_gpr() => {
                let value = *self.gpr.get(register.full_register().number())?;
                if register.size() == 4 { value & 0xffff_ffff } else { value }
            }
            _ => return None,
        })
    }

    /// Returns the linear address of a memory operand.
    fn address(&self, instruction: &Instruction, operand: u32) -> Option<u64> {
        instruction.virtual_address(operand, 0, |register, _, _| self.value(register))
    }

    /// True if the instruction's result also depends on the CPU's flags.
    pub(super) fn reads_flags(&self) -> bool {
        self.instruction.is_some_and(|instruction| instruction.rflags_read() != 0)
    }

    /// Returns the registers that choose an entry of a table, if the instruction loads one: those of an address with an
    /// index, or with a displacement that can be a table's address.
    pub(super) fn chosen_by(&self) -> Vec<Part> {
        /// Lowest displacement that can be a table's address. No program has memory below it.
        const LOWEST: u64 = 0x1_0000;
        /// Maximum length of an entry, in bytes.
        const ENTRY_BYTES: usize = 8;
        let Some(instruction) = self.instruction.filter(|instruction| copies(instruction.mnemonic())) else {
            return Vec::new();
        };
        let has_index = instruction.memory_index() != Register::None;
        let is_table = has_index || (LOWEST..1 << 31).contains(&instruction.memory_displacement64());
        if instruction.op_count() != 2
            || instruction.op1_kind() != OpKind::Memory
            || instruction.memory_size().size() > ENTRY_BYTES
            || !is_table
        {
            return Vec::new();
        }
        let registers = [instruction.memory_base(), instruction.memory_index()];
        registers.into_iter().filter_map(|register| part(register, false)).collect()
    }

    /// Returns where the instruction takes the bytes from that it stores at `address`.
    pub(super) fn stored(&self, address: u64, bytes: u64) -> Value {
        let Some(instruction) = &self.instruction else {
            return unknown("its instruction cannot be decoded");
        };
        let mnemonic = instruction.mnemonic();
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        // A repeated instruction executes one iteration at a time here.
        let stores = info.used_memory().iter().filter(|memory| writes(memory.access()));
        let offset = stores.filter_map(|memory| {
            let start = memory.virtual_address(0, |register, _, _| self.value(register))?;
            let size = match memory.memory_size().size() as u64 {
                0 => u64::MAX,
                size => size,
            };
            Some(address.wrapping_sub(start)).filter(|offset| *offset < size)
        });
        let Some(offset) = offset.min() else {
            return unknown("its instruction does not store there; the CPU may have delivered an interrupt");
        };
        if is_string_copy(mnemonic, instruction) {
            return match self.address(instruction, 1) {
                Some(source) => Value::Memory(source.wrapping_add(offset), bytes),
                None => unknown("the source of its string instruction is not known"),
            };
        }
        let rax = |offset| Value::Register(Part { register: Register::RAX, offset, bytes });
        match mnemonic {
            Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq => return rax(offset),
            Mnemonic::Call => return Value::Constant("the return address of a call".to_owned()),
            _ => {}
        }
        match mnemonic {
            Mnemonic::Push => self.operand(instruction, 0, offset, bytes),
            Mnemonic::Pop => Value::Memory(self.gpr[4].wrapping_add(offset), bytes),
            Mnemonic::Xchg => {
                let register = if instruction.op0_kind() == OpKind::Register { 0 } else { 1 };
                self.operand(instruction, register, offset, bytes)
            }
            _ if copies(mnemonic) => self.operand(instruction, 1, offset, bytes),
            _ => self.computed(instruction, info),
        }
    }

    /// Returns the bytes of an operand that are copied: `bytes` bytes from `offset` on.
    fn operand(&self, instruction: &Instruction, operand: u32, offset: u64, bytes: u64) -> Value {
        match instruction.op_kind(operand) {
            OpKind::Register => {
                let register = instruction.op_register(operand);
                let source = part(register, false).map(|part| match instruction.mnemonic() {
                    // These copy only the first bytes of an SSE register.
                    Mnemonic::Movq | Mnemonic::Vmovq => Part { bytes: part.bytes.min(8), ..part },
                    Mnemonic::Movd | Mnemonic::Vmovd => Part { bytes: part.bytes.min(4), ..part },
                    _ => part,
                });
                match source {
                    Some(part) if offset + bytes <= part.bytes => {
                        Value::Register(Part { offset: part.offset + offset, bytes, ..part })
                    }
                    Some(part) if offset < part.bytes => {
                        let bytes = part.bytes - offset;
                        Value::Register(Part { offset: part.offset + offset, bytes, ..part })
                    }
                    Some(_) => Value::Constant("the extension of a shorter value".to_owned()),
                    None => unknown("the value comes from a special register"),
                }
            }
            OpKind::Memory => {
                let size = instruction.memory_size().size() as u64;
                match self.address(instruction, operand) {
                    Some(address) if offset < size => {
                        Value::Memory(address.wrapping_add(offset), bytes.min(size - offset))
                    }
                    Some(_) => Value::Constant("the extension of a shorter value".to_owned()),
                    None => unknown("the address of an operand is not known"),
                }
            }
            kind if is_immediate(kind) => {
                Value::Constant(format!("the constant {:#x} in the code", instruction.immediate(operand)))
            }
            _ => unknown("an operand of its instruction is not known"),
        }
    }

    /// Returns the values from which an instruction computes its result.
    fn computed(&self, instruction: &Instruction, info: &InstructionInfo) -> Value {
        let mnemonic = instruction.mnemonic();
        let same = instruction.op_count() >= 2
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register();
        if same && matches!(mnemonic, Mnemonic::Xor | Mnemonic::Sub | Mnemonic::Pxor | Mnemonic::Xorps) {
            return Value::Constant("the constant 0 in the code".to_owned());
        }
        match mnemonic {
            Mnemonic::Rdtsc | Mnemonic::Rdtscp => return Value::Constant("the CPU's time stamp".to_owned()),
            Mnemonic::Rdrand | Mnemonic::Rdseed => {
                return Value::Constant("the CPU's random numbers".to_owned());
            }
            Mnemonic::Cpuid => return Value::Constant("the CPU's identification".to_owned()),
            Mnemonic::In | Mnemonic::Insb | Mnemonic::Insw | Mnemonic::Insd => {
                return Value::Constant("a device's port".to_owned());
            }
            Mnemonic::Fxsave | Mnemonic::Fxsave64 => {
                return unknown("the registers were saved by fxsave, which is not followed");
            }
            Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Xsaveopt
            | Mnemonic::Xsaveopt64
            | Mnemonic::Xsavec
            | Mnemonic::Xsavec64
            | Mnemonic::Xsaves
            | Mnemonic::Xsaves64 => {
                return unknown("the registers were saved by xsave, which is not followed");
            }
            _ => {}
        }
        let is_wide = |register: Register| register.is_ymm() || register.is_zmm();
        if info.used_registers().iter().any(|used| is_wide(used.register())) {
            return unknown(VECTORS_LACK);
        }
        let is_address = |register: Register| {
            instruction.mnemonic() != Mnemonic::Lea
                && info.used_memory().iter().any(|memory| {
                    memory.base().full_register() == register.full_register()
                        || memory.index().full_register() == register.full_register()
                })
                && (0..instruction.op_count()).all(|n| {
                    instruction.op_kind(n) != OpKind::Register
                        || instruction.op_register(n).full_register() != register.full_register()
                })
        };
        let mut sources = Vec::new();
        for used in info.used_registers() {
            let register = used.register();
            if reads(used.access())
                && is_general(register)
                && !is_address(register)
                && let Some(part) = part(register, false)
            {
                sources.push(Value::Register(part));
            }
        }
        for memory in info.used_memory().iter().filter(|memory| reads(memory.access())) {
            match memory.virtual_address(0, |register, _, _| self.value(register)) {
                Some(address) => sources.push(Value::Memory(address, memory.memory_size().size() as u64)),
                None => return unknown("the address of an operand is not known"),
            }
        }
        sources.retain(|source| !matches!(source, Value::Memory(_, 0)));
        match sources.is_empty() {
            true if instruction.rflags_read() != 0 => unknown("the value depends on the CPU's flags"),
            true => Value::Constant("a constant that the code computes".to_owned()),
            false => Value::Computed(sources),
        }
    }

    /// Returns where a part of a register comes from, if this instruction defines it.
    pub(super) fn defined(&self, wanted: Part) -> Option<Value> {
        let Some(instruction) = &self.instruction else {
            return Some(unknown("an instruction on the way cannot be decoded"));
        };
        let mnemonic = instruction.mnemonic();
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        let end = wanted.offset + wanted.bytes;
        let is_vector = wanted.register.is_xmm();
        match mnemonic {
            Mnemonic::Xrstor | Mnemonic::Xrstor64 | Mnemonic::Xrstors | Mnemonic::Xrstors64 if is_vector => {
                return Some(unknown("the registers were restored by xrstor, which is not followed"));
            }
            Mnemonic::Vzeroall if is_vector => return Some(unknown(VECTORS_LACK)),
            Mnemonic::Vzeroupper if is_vector => return (end > XMM_BYTES).then(|| unknown(VECTORS_LACK)),
            _ => {}
        }
        if matches!(mnemonic, Mnemonic::Fxrstor | Mnemonic::Fxrstor64) && is_vector {
            if wanted.offset >= XMM_BYTES {
                return None;
            }
            if end > XMM_BYTES {
                return Some(unknown(PARTS_LACK));
            }
            /// Offset of the first SSE register in the area.
            const VECTORS: u64 = 160;
            let at = VECTORS + 16 * wanted.register.number() as u64 + wanted.offset;
            return Some(match self.address(instruction, 0) {
                Some(area) => Value::Memory(area.wrapping_add(at), wanted.bytes),
                None => unknown("the address of an operand is not known"),
            });
        }
        let written = info.used_registers().iter().filter(|used| writes(used.access()));
        let mut written = written.filter_map(|used| part(used.register(), true)).filter(|part| {
            part.register == wanted.register && part.offset < end && wanted.offset < part.offset + part.bytes
        });
        let part = written.next()?;
        let first_is_it = instruction.op0_kind() == OpKind::Register
            && self::part(instruction.op0_register(), true)
                .is_some_and(|first| first == part || is_vector && first.register == part.register);
        if is_conditional(instruction) && !is_met(instruction.condition_code(), self.flags) {
            // A destination of 32 bits loses its upper half even so.
            let kept = if instruction.op0_register().is_gpr32() { 4 } else { part.bytes };
            return match wanted.offset {
                _ if end <= kept => None,
                from if from >= kept => Some(Value::Constant("the extension of a shorter value".to_owned())),
                _ => Some(Value::Computed(vec![Value::Register(Part {
                    bytes: kept - wanted.offset,
                    ..wanted
                })])),
            };
        }
        if part.offset > wanted.offset || part.offset + part.bytes < end {
            return Some(unknown(PARTS_LACK));
        }
        if is_vector && instruction.encoding() != EncodingKind::Legacy && !copies(mnemonic) {
            return Some(unknown(VECTORS_LACK));
        }
        let offset = wanted.offset - part.offset;
        Some(match mnemonic {
            _ if copies(mnemonic) && first_is_it => self.operand(instruction, 1, offset, wanted.bytes),
            _ if is_conditional(instruction) && first_is_it => {
                self.operand(instruction, 1, offset, wanted.bytes)
            }
            Mnemonic::Pop if first_is_it && wanted.register != Register::RSP => {
                Value::Memory(self.gpr[4].wrapping_add(offset), wanted.bytes)
            }
            Mnemonic::Leave if wanted.register == Register::RBP => {
                Value::Memory(self.gpr[5].wrapping_add(offset), wanted.bytes)
            }
            Mnemonic::Lodsb | Mnemonic::Lodsw | Mnemonic::Lodsd | Mnemonic::Lodsq
                if wanted.register == Register::RAX =>
            {
                Value::Memory(self.gpr[6].wrapping_add(offset), wanted.bytes)
            }
            Mnemonic::Xchg => self.operand(instruction, u32::from(first_is_it), offset, wanted.bytes),
            Mnemonic::Xadd if !first_is_it => self.operand(instruction, 0, offset, wanted.bytes),
            Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => {
                unknown("a compare-and-exchange loaded the value, which is not followed")
            }
            Mnemonic::Syscall | Mnemonic::Sysret | Mnemonic::Iretq => {
                unknown("the value is a part of the program's state at a system call or interrupt")
            }
            _ => self.computed(instruction, info),
        })
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// True for conditional moves (CMOVcc).
fn is_conditional(instruction: &Instruction) -> bool {
    instruction.condition_code() != ConditionCode::None
        && instruction.op_count() == 2
        && !instruction.is_jcc_short_or_near()
}

/// True if a condition holds with these flags (SDM volume 1, appendix B).
fn is_met(condition: ConditionCode, flags: u64) -> bool {
    let bit = |n: u32| flags >> n & 1 != 0;
    let (carry, parity, zero, sign, overflow) = (bit(0), bit(2), bit(6), bit(7), bit(11));
    match condition {
        ConditionCode::None => true,
        ConditionCode::o => overflow,
        ConditionCode::no => !overflow,
        ConditionCode::b => carry,
        ConditionCode::ae => !carry,
        ConditionCode::e => zero,
        ConditionCode::ne => !zero,
        ConditionCode::be => carry || zero,
        ConditionCode::a => !carry && !zero,
        ConditionCode::s => sign,
        ConditionCode::ns => !sign,
        ConditionCode::p => parity,
        ConditionCode::np => !parity,
        ConditionCode::l => sign != overflow,
        ConditionCode::ge => sign == overflow,
        ConditionCode::le => zero || sign != overflow,
        ConditionCode::g => !zero && sign == overflow,
    }
}

fn unknown(because: &str) -> Value {
    Value::Unknown(because.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the CPU before an instruction. RAX is 0x1000, RCX 0x2000, RSP 0x3000, RSI 0x4000, RDI 0x5000.
    fn before(code: &[u8]) -> Before {
        let mut gpr = [0; 16];
        [gpr[0], gpr[1], gpr[4], gpr[6], gpr[7]] = [0x1000, 0x2000, 0x3000, 0x4000, 0x5000];
        let instruction = Some(Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode());
        Before { gpr, bases: [0; 2], flags: 0, root: 0, count: 0, instruction }
    }

    fn register(register: Register, offset: u64, bytes: u64) -> Value {
        Value::Register(Part { register, offset, bytes })
    }

    #[test]
    fn sources_of_stores_are_found() {
        let stored = |code: &[u8], address, bytes| before(code).stored(address, bytes);
        // mov [rax], rcx; mov [rax], cl; mov [rax], ch
        assert_eq!(stored(&[0x48, 0x89, 0x08], 0x1002, 3), register(Register::RCX, 2, 3));
        assert_eq!(stored(&[0x88, 0x08], 0x1000, 1), register(Register::RCX, 0, 1));
        assert_eq!(stored(&[0x88, 0x28], 0x1000, 1), register(Register::RCX, 1, 1));
        // rep movsb; push rcx; movups [rax], xmm1
        assert_eq!(stored(&[0xf3, 0xa4], 0x5000, 1), Value::Memory(0x4000, 1));
        assert_eq!(stored(&[0x51], 0x2ffc, 4), register(Register::RCX, 4, 4));
        assert_eq!(stored(&[0x0f, 0x11, 0x08], 0x1008, 8), register(Register::XMM1, 8, 8));
        // add [rax], ecx
        let sum = Value::Computed(vec![register(Register::RCX, 0, 4), Value::Memory(0x1000, 4)]);
        assert_eq!(stored(&[0x01, 0x08], 0x1000, 4), sum);
        // mov dword [rax], 7
        assert!(matches!(stored(&[0xc7, 0, 7, 0, 0, 0], 0x1000, 4), Value::Constant(_)));
        // A store of the instruction to other bytes.
        assert!(matches!(stored(&[0x48, 0x89, 0x08], 0x2000, 1), Value::Unknown(_)));
    }

    #[test]
    fn entries_of_tables_have_registers_that_chose_them() {
        let chosen = |code: &[u8]| {
            let parts = before(code).chosen_by();
            parts.into_iter().map(|part| part.register).collect::<Vec<_>>()
        };
        // movzx ecx, byte [rsi+rdx]; movzx ecx, byte [rax+0x4ae120]; movzx ecx, byte [rsi+8]
        assert_eq!(chosen(&[0x0f, 0xb6, 0x0c, 0x16]), [Register::RSI, Register::RDX]);
        assert_eq!(chosen(&[0x0f, 0xb6, 0x88, 0x20, 0xe1, 0x4a, 0x00]), [Register::RAX]);
        assert_eq!(chosen(&[0x0f, 0xb6, 0x4e, 0x08]), []);
        // mov [rsi+rdx], cl; movups xmm1, [rsi+rdx]; lea rcx, [rsi+rdx]
        assert_eq!(chosen(&[0x88, 0x0c, 0x16]), []);
        assert_eq!(chosen(&[0x0f, 0x10, 0x0c, 0x16]), []);
        assert_eq!(chosen(&[0x48, 0x8d, 0x0c, 0x16]), []);
        // adc rcx, rax
        assert!(before(&[0x48, 0x11, 0xc1]).reads_flags() && !before(&[0x48, 0x01, 0xc1]).reads_flags());
    }

    #[test]
    fn definitions_of_registers_are_found() {
        let rcx = |offset, bytes| Part { register: Register::RCX, offset, bytes };
        let defined = |code: &[u8], part| before(code).defined(part);
        // mov rcx, rsi; movzx ecx, byte [rsi]; mov rsi, rcx
        assert_eq!(defined(&[0x48, 0x89, 0xf1], rcx(0, 8)), Some(register(Register::RSI, 0, 8)));
        assert_eq!(defined(&[0x0f, 0xb6, 0x0e], rcx(0, 1)), Some(Value::Memory(0x4000, 1)));
        assert!(matches!(defined(&[0x0f, 0xb6, 0x0e], rcx(1, 1)), Some(Value::Constant(_))));
        assert_eq!(defined(&[0x48, 0x89, 0xce], rcx(0, 8)), None);
        // mov cl, al defines only the first byte.
        assert_eq!(defined(&[0x88, 0xc1], rcx(1, 1)), None);
        assert!(matches!(defined(&[0x88, 0xc1], rcx(0, 2)), Some(Value::Unknown(_))));
        // cmove rcx, rax does not copy, because the zero flag is clear; cmovne does.
        assert_eq!(defined(&[0x48, 0x0f, 0x44, 0xc8], rcx(0, 8)), None);
        assert_eq!(defined(&[0x48, 0x0f, 0x45, 0xc8], rcx(0, 8)), Some(register(Register::RAX, 0, 8)));
        // cmove ecx, eax does not copy, but clears the upper half of RCX.
        let cmove = &[0x0f, 0x44, 0xc8];
        assert_eq!(defined(cmove, rcx(0, 4)), None);
        assert!(matches!(defined(cmove, rcx(4, 4)), Some(Value::Constant(_))));
        assert_eq!(defined(cmove, rcx(0, 8)), Some(Value::Computed(vec![register(Register::RCX, 0, 4)])));
        // xchg cl, ch exchanges two parts of one register; mov ch, al.
        assert_eq!(defined(&[0x86, 0xe9], rcx(1, 1)), Some(register(Register::RCX, 0, 1)));
        assert_eq!(defined(&[0x86, 0xe9], rcx(0, 1)), Some(register(Register::RCX, 1, 1)));
        assert_eq!(defined(&[0x88, 0xc5], rcx(1, 1)), Some(register(Register::RAX, 0, 1)));
        // movq xmm1, xmm2 and movd ecx, xmm2 copy a part of XMM2 and clear the rest.
        let xmm1 = |offset| Part { register: Register::XMM1, offset, bytes: 8 };
        let movq = &[0xf3, 0x0f, 0x7e, 0xca];
        assert_eq!(defined(movq, xmm1(0)), Some(register(Register::XMM2, 0, 8)));
        assert!(matches!(defined(movq, xmm1(8)), Some(Value::Constant(_))));
        let movd = &[0x66, 0x0f, 0x7e, 0xd1];
        assert_eq!(defined(movd, rcx(0, 4)), Some(register(Register::XMM2, 0, 4)));
        assert!(matches!(defined(movd, rcx(4, 4)), Some(Value::Constant(_))));
        // xor ecx, ecx; pop rcx
        assert!(matches!(defined(&[0x31, 0xc9], rcx(0, 8)), Some(Value::Constant(_))));
        assert_eq!(defined(&[0x59], rcx(0, 8)), Some(Value::Memory(0x3000, 8)));
    }

    #[test]
    fn copies_of_vector_registers_are_followed() {
        let stored = |code: &[u8], address, bytes| before(code).stored(address, bytes);
        // vmovdqu [rdi], ymm0; vmovntdq [rdi], ymm0; vmovups [rdi], xmm0; vmovq [rdi], xmm0
        assert_eq!(stored(&[0xc5, 0xfe, 0x7f, 0x07], 0x5000, 32), register(Register::XMM0, 0, 32));
        assert_eq!(stored(&[0xc5, 0xfe, 0x7f, 0x07], 0x5014, 4), register(Register::XMM0, 20, 4));
        assert_eq!(stored(&[0xc5, 0xfd, 0xe7, 0x07], 0x5010, 16), register(Register::XMM0, 16, 16));
        assert_eq!(stored(&[0xc5, 0xf8, 0x11, 0x07], 0x5008, 8), register(Register::XMM0, 8, 8));
        assert_eq!(stored(&[0xc5, 0xf9, 0xd6, 0x07], 0x5000, 8), register(Register::XMM0, 0, 8));

        let xmm1 = |offset, bytes| Part { register: Register::XMM1, offset, bytes };
        let defined = |code: &[u8], part| before(code).defined(part);
        // vmovdqu ymm1, [rsi]; vmovdqa ymm1, ymm9; vmovdqa ymm9, ymm1
        let load = &[0xc5, 0xfe, 0x6f, 0x0e];
        assert_eq!(defined(load, xmm1(0, 32)), Some(Value::Memory(0x4000, 32)));
        assert_eq!(defined(load, xmm1(24, 8)), Some(Value::Memory(0x4018, 8)));
        assert_eq!(
            defined(&[0xc4, 0xc1, 0x7d, 0x6f, 0xc9], xmm1(8, 24)),
            Some(register(Register::XMM9, 8, 24))
        );
        assert_eq!(defined(&[0xc5, 0x7d, 0x6f, 0xc9], xmm1(0, 16)), None);
        // vmovdqu xmm1, [rsi] and vmovd xmm1, ecx clear the rest of the register; vmovd ecx, xmm1 that of RCX.
        let load = &[0xc5, 0xfa, 0x6f, 0x0e];
        assert_eq!(defined(load, xmm1(8, 8)), Some(Value::Memory(0x4008, 8)));
        assert!(matches!(defined(load, xmm1(16, 16)), Some(Value::Constant(_))));
        let vmovd = &[0xc5, 0xf9, 0x6e, 0xc9];
        assert_eq!(defined(vmovd, xmm1(0, 4)), Some(register(Register::RCX, 0, 4)));
        assert!(matches!(defined(vmovd, xmm1(4, 4)), Some(Value::Constant(_))));
        let rcx = |offset, bytes| Part { register: Register::RCX, offset, bytes };
        let vmovd = &[0xc5, 0xf9, 0x7e, 0xc9];
        assert_eq!(defined(vmovd, rcx(0, 4)), Some(register(Register::XMM1, 0, 4)));
        assert!(matches!(defined(vmovd, rcx(4, 4)), Some(Value::Constant(_))));
        // movups xmm1, [rsi] keeps the upper half of YMM1.
        let load = &[0x0f, 0x10, 0x0e];
        assert_eq!(defined(load, xmm1(16, 16)), None);
        assert!(matches!(defined(load, xmm1(0, 32)), Some(Value::Unknown(_))));
        // fxrstor [rdi] does, too.
        let fxrstor = &[0x0f, 0xae, 0x0f];
        assert_eq!(defined(fxrstor, xmm1(8, 8)), Some(Value::Memory(0x50b8, 8)));
        assert_eq!(defined(fxrstor, xmm1(16, 8)), None);
        assert!(matches!(defined(fxrstor, xmm1(8, 16)), Some(Value::Unknown(_))));
    }

    #[test]
    fn other_instructions_with_vector_registers_are_not_followed() {
        let xmm1 = |offset, bytes| Part { register: Register::XMM1, offset, bytes };
        let defined = |code: &[u8], part| before(code).defined(part);
        let is_unknown = |code: &[u8], part| matches!(defined(code, part), Some(Value::Unknown(_)));
        // vpaddd xmm1, xmm2, xmm3; vpaddd ymm1, ymm2, ymm3; vfmadd231ps ymm1, ymm2, ymm3; vpgatherdd xmm1, [rsi+xmm2], xmm3
        for code in [
            &[0xc5, 0xe9, 0xfe, 0xcb][..],
            &[0xc5, 0xed, 0xfe, 0xcb],
            &[0xc4, 0xe2, 0x6d, 0xb8, 0xcb],
            &[0xc4, 0xe2, 0x61, 0x90, 0x0c, 0x16],
        ] {
            assert!(is_unknown(code, xmm1(0, 16)) && is_unknown(code, xmm1(16, 16)), "{code:x?}");
            assert_eq!(defined(code, Part { register: Register::XMM4, offset: 0, bytes: 8 }), None);
        }
        // vzeroupper; vzeroall
        assert_eq!(defined(&[0xc5, 0xf8, 0x77], xmm1(0, 16)), None);
        assert!(is_unknown(&[0xc5, 0xf8, 0x77], xmm1(16, 16)));
        assert!(is_unknown(&[0xc5, 0xf8, 0x77], xmm1(0, 32)));
        assert!(is_unknown(&[0xc5, 0xfc, 0x77], xmm1(0, 16)));
        // xrstor [rdi]; xrstor64 [rdi]
        let rcx = Part { register: Register::RCX, offset: 0, bytes: 8 };
        for code in [&[0x0f, 0xae, 0x2f][..], &[0x48, 0x0f, 0xae, 0x2f]] {
            assert!(is_unknown(code, xmm1(0, 16)) && is_unknown(code, xmm1(16, 16)));
            assert_eq!(defined(code, rcx), None);
        }
        // vpmovmskb ecx, ymm1; andn rcx, rax, rsi, which has a VEX prefix but no vector register
        assert!(is_unknown(&[0xc5, 0xfd, 0xd7, 0xc9], rcx));
        assert!(matches!(defined(&[0xc4, 0xe2, 0xf8, 0xf2, 0xce], rcx), Some(Value::Computed(_))));
        // vextracti128 [rdi], ymm0, 1
        let stored = before(&[0xc4, 0xe3, 0x7d, 0x39, 0x07, 0x01]).stored(0x5000, 16);
        assert!(matches!(stored, Value::Unknown(_)));
        // xsave [rdi]; xsave64 [rdi]; xsaveopt [rdi]; xsavec [rdi]
        for code in
            [&[0x0f, 0xae, 0x27][..], &[0x48, 0x0f, 0xae, 0x27], &[0x0f, 0xae, 0x37], &[0x0f, 0xc7, 0x27]]
        {
            let Value::Unknown(because) = before(code).stored(0x5240, 16) else { panic!("{code:x?}") };
            assert!(because.contains("xsave"), "{because}");
        }
    }
}
