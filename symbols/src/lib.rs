//! Names and types of code and data: from the files of kernels and programs, without a guest.
//!
//! - [`kernel`]: symbols and types of a kernel
//! - [`program`]: names of a program or library
//! - [`functions`]: all functions of a program, also functions without names
//! - [`lines`]: lines of source code
//! - [`variables`]: variables of programs, their places and types
//! - [`unwind`]: stacks of programs
//! - `go`: the table of functions of Go programs
//! - `cfi`: finds unwind tables that could loop for ever, because a program may be hostile
//! - `bytes`: numbers at offsets of untrusted bytes
//! - `limits`: bounds on the tables of Go programs
//!
//! Not here: what is in a guest's memory (`inspect/`), and the layout of ELF files (`elf/`).

mod bytes;
#[cfg(feature = "programs")]
mod cfi;
#[cfg(feature = "programs")]
pub mod functions;
#[cfg(feature = "programs")]
mod go;
pub mod kernel;
#[cfg(feature = "programs")]
mod limits;
#[cfg(feature = "programs")]
pub mod lines;
#[cfg(feature = "programs")]
pub mod program;
#[cfg(feature = "programs")]
pub mod unwind;
#[cfg(feature = "programs")]
pub mod variables;

/// Maximum number of frames of a stack, of a kernel or of a program.
pub const FRAMES_MAX: usize = 1_024;
