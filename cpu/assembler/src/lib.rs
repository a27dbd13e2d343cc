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
//! - `choose`: choice of an encoding that fits the operands
//! - `assembler`: prefixes, data, the addresses of labels, and the sizes of branches
//! - `error`: mistakes in programs
//!
//! The encoder of `iced-x86` produces the bytes, and rejects operands that an encoding cannot have. The crate does not
//! use the assembler of `iced-x86`, its feature `code_asm`: that has a function for each combination of operands,
//! nearly 150,000 lines to compile.
//!
//! **Invariant.** The bytes are those that `code_asm` would produce, because tests compare the trails of such programs
//! with recorded ones.

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
