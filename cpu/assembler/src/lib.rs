//! An assembler of 64-bit code. Tests and benches write guest programs with it.
//!
//! ```
//! use everett_assembler::*;
//!
//! # fn main() -> Result<(), Error> {
//! let mut a = Assembler::new();
//! let again = a.create_label();
//! a.mov(ecx, 10)?;
//! a.set_label(again)?;
//! a.lock().add(qword_ptr(rbx + rcx * 8), 1)?;
//! a.dec(ecx)?;
//! a.jnz(again)?;
//! a.hlt()?;
//! let code = a.assemble(0x1000)?;
//! # assert_eq!(code.len(), 5 + 6 + 2 + 2 + 1);
//! # Ok(())
//! # }
//! ```
//!
//! - `operand`: registers, memory operands, immediates and labels
//! - `mnemonics`: one method per instruction
//! - `choose`: chooses the encoding of an instruction that fits the operands best
//! - `assembler`: collects a program, and computes the addresses of its labels and the sizes of its branches
//! - `error`: mistakes in programs
//!
//! The encoder of `iced-x86` produces the bytes, and rejects operands that an encoding cannot have. The crate does not
//! use `code_asm`, the assembler of `iced-x86`: it has a function for each combination of operands, nearly 150,000
//! lines to compile.
//!
//! **Invariant.** The bytes are those that `code_asm` would produce. Tests compare the trails of guest programs with
//! recorded trails. With other bytes, the trails would differ.

mod assembler;
mod choose;
mod error;
mod mnemonics;
mod operand;

pub use assembler::Assembler;
pub use error::Error;
pub use operand::registers::*;
pub use operand::{
    Label, MemoryOperand, Operand, Register, byte_ptr, dword_ptr, fword_ptr, ptr, qword_ptr, tbyte_ptr,
    word_ptr, xmmword_ptr,
};
