//! An assembler of 64-bit code: the guest programs of tests and benches are written with it.
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
//! - `choose`: finds the encoding of an instruction that fits the operands
//! - `assembler`: prefixes, data, the addresses of labels, and the sizes of branches; `error`: mistakes in programs
//!
//! The encoder of `iced-x86` makes the bytes, and rejects operands that an encoding does not have. Its own assembler,
//! the feature `code_asm`, has a function for each combination of operands. These are nearly 150,000 lines to compile.
//!
//! **Invariant.** The bytes are those that `code_asm` would give: golden trails of tests depend on them.

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
