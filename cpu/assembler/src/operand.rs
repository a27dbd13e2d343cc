//! Operands: registers, memory, immediates and labels.

use std::ops::{Add, Mul, Sub};

/// Register, e.g. [`rax`](registers::rax).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub(crate) iced_x86::Register);

/// Address in the code, set by [`Assembler::set_label`](crate::Assembler::set_label).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(pub(crate) usize);

/// Memory operand: `base + index * scale + displacement`, or the address of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOperand {
    pub(crate) base: iced_x86::Register,
    pub(crate) index: iced_x86::Register,
    /// Factor of the index: 1, 2, 4 or 8.
    pub(crate) scale: u32,
    pub(crate) displacement: i64,
    /// Segment override.
    pub(crate) segment: iced_x86::Register,
    /// Label that the operand refers to, relative to `rip`. The operand then has no registers and no displacement.
    pub(crate) label: Option<Label>,
    /// Size in bytes. It is 0 if the other operands or the instruction determine it.
    pub(crate) size: usize,
}

/// Operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Register.
    Register(Register),
    /// Memory.
    Memory(MemoryOperand),
    /// Immediate of up to 32 bits.
    Immediate(i64),
    /// Immediate of 64 bits, or the absolute address of a branch target.
    Wide(u64),
    /// Label as the target of a branch.
    Label(Label),
}

impl MemoryOperand {
    /// Operand without registers and displacement.
    const EMPTY: Self = Self {
        base: iced_x86::Register::None,
        index: iced_x86::Register::None,
        scale: 1,
        displacement: 0,
        segment: iced_x86::Register::None,
        label: None,
        size: 0,
    };

    /// Adds a `gs` segment override.
    #[must_use]
    pub fn gs(self) -> Self {
        Self { segment: iced_x86::Register::GS, ..self }
    }
}

/// Defines one function for each size of a memory operand.
macro_rules! sizes {
    ($($name:ident $size:literal)*) => { $(
        #[doc = concat!("Returns a memory operand of ", $size, " bytes.")]
        pub fn $name(address: impl Into<MemoryOperand>) -> MemoryOperand {
            MemoryOperand { size: $size, ..address.into() }
        }
    )* };
}
sizes!(byte_ptr 1 word_ptr 2 dword_ptr 4 fword_ptr 6 qword_ptr 8 tbyte_ptr 10 xmmword_ptr 16);

/// Returns a memory operand without a size. The other operands or the instruction must determine the size.
pub fn ptr(address: impl Into<MemoryOperand>) -> MemoryOperand {
    address.into()
}

/// Defines conversions from each source type to the target type.
macro_rules! conversions {
    ($target:ty: $($source:ty, $value:ident => $result:expr;)*) => { $(
        impl From<$source> for $target {
            fn from($value: $source) -> Self {
                $result
            }
        }
    )* };
}
conversions! { MemoryOperand:
    Register, base => Self { base: base.0, ..Self::EMPTY };
    Label, label => Self { base: iced_x86::Register::RIP, label: Some(label), ..Self::EMPTY };
    i32, displacement => Self { displacement: displacement.into(), ..Self::EMPTY };
    u32, displacement => Self { displacement: displacement.into(), ..Self::EMPTY };
    i64, displacement => Self { displacement, ..Self::EMPTY };
    u64, displacement => Self { displacement: displacement as i64, ..Self::EMPTY };
}
conversions! { Operand:
    Register, register => Self::Register(register);
    MemoryOperand, memory => Self::Memory(memory);
    Label, label => Self::Label(label);
    i32, value => Self::Immediate(value.into());
    u32, value => Self::Immediate(value.into());
    i64, value => Self::Wide(value as u64);
    u64, value => Self::Wide(value);
}

impl<T: Into<MemoryOperand>> Add<T> for MemoryOperand {
    type Output = Self;
    /// Adds the displacements. A register of `other` becomes the base, or the index if there is already a base.
    fn add(mut self, other: T) -> Self {
        let other = other.into();
        if other.index != iced_x86::Register::None {
            (self.index, self.scale) = (other.index, other.scale);
        }
        if self.base == iced_x86::Register::None {
            self.base = other.base;
        } else if other.base != iced_x86::Register::None {
            self.index = other.base;
        }
        self.displacement = self.displacement.wrapping_add(other.displacement);
        self
    }
}

impl<T: Into<MemoryOperand>> Add<T> for Register {
    type Output = MemoryOperand;
    fn add(self, other: T) -> MemoryOperand {
        MemoryOperand::from(self) + other
    }
}

impl Sub<i32> for MemoryOperand {
    type Output = Self;
    fn sub(self, displacement: i32) -> Self {
        self + -i64::from(displacement)
    }
}

impl Sub<i32> for Register {
    type Output = MemoryOperand;
    fn sub(self, displacement: i32) -> MemoryOperand {
        MemoryOperand::from(self) - displacement
    }
}

impl Mul<u32> for Register {
    type Output = MemoryOperand;
    fn mul(self, scale: u32) -> MemoryOperand {
        MemoryOperand { index: self.0, scale, ..MemoryOperand::EMPTY }
    }
}

/// Constants for the registers.
pub(crate) mod registers {
    use super::Register;

    /// Defines a constant for each register.
    macro_rules! registers {
        ($($name:ident $register:ident)*) => { $(
            #[doc = concat!("Register `", stringify!($name), "`.")]
            #[allow(non_upper_case_globals)]
            pub const $name: Register = Register(iced_x86::Register::$register);
        )* };
    }
    registers! {
        al AL bl BL cl CL dl DL sil SIL dil DIL bpl BPL spl SPL ah AH bh BH ch CH dh DH
        r8b R8L r9b R9L r10b R10L r11b R11L r12b R12L r13b R13L r14b R14L r15b R15L
        ax AX bx BX cx CX dx DX si SI di DI bp BP sp SP
        r8w R8W r9w R9W r10w R10W r11w R11W r12w R12W r13w R13W r14w R14W r15w R15W
        eax EAX ebx EBX ecx ECX edx EDX esi ESI edi EDI ebp EBP esp ESP
        r8d R8D r9d R9D r10d R10D r11d R11D r12d R12D r13d R13D r14d R14D r15d R15D
        rax RAX rbx RBX rcx RCX rdx RDX rsi RSI rdi RDI rbp RBP rsp RSP
        r8 R8 r9 R9 r10 R10 r11 R11 r12 R12 r13 R13 r14 R14 r15 R15
        cs CS ds DS es ES fs FS gs GS ss SS
        cr0 CR0 cr2 CR2 cr3 CR3 cr4 CR4 cr8 CR8
        dr0 DR0 dr1 DR1 dr2 DR2 dr3 DR3 dr4 DR4 dr5 DR5 dr6 DR6 dr7 DR7
        st0 ST0 st1 ST1 st2 ST2 st3 ST3 st4 ST4 st5 ST5 st6 ST6 st7 ST7
        xmm0 XMM0 xmm1 XMM1 xmm2 XMM2 xmm3 XMM3 xmm4 XMM4 xmm5 XMM5 xmm6 XMM6 xmm7 XMM7
        xmm8 XMM8 xmm9 XMM9 xmm10 XMM10 xmm11 XMM11 xmm12 XMM12 xmm13 XMM13 xmm14 XMM14 xmm15 XMM15
    }
}
