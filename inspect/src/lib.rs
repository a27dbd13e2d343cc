//! Processes, their mappings, files and sockets in a Linux guest, read from its memory. The guest executes no instruction for this,
//! and nothing in it changes.
//!
//! The kernel's own structures say which processes exist. [`Kernel`] knows where the fields of these structures are: it
//! reads the kernel's symbols and types from the `vmlinux` that was booted. A [`Guest`] is a kernel and a machine's RAM.
//!
//! - [`memory`]: RAM, page tables, and address spaces
//! - [`error`]: [`Error`], the reasons why a guest cannot be read
//! - [`limits`]: bounds on what is read
//! - `layout`: places of the fields of processes, mappings and paths
//! - `file_layout`, `socket_layout`, `argument_layout`: places of the fields of open files, of sockets, and of arguments of
//!   the kernel's functions
//! - [`kernel`]: a kernel's symbols, types and layout
//! - [`guest`]: reads numbers, lists and texts from the kernel's memory
//! - [`task`]: processes and threads
//! - [`floating`]: x87, SSE and AVX registers, and the areas in which XSAVE stores them
//! - [`registers`]: registers of the CPU and of programs' threads
//! - [`module`]: loadable modules of the kernel, with their functions and unwind tables
//! - [`stack`]: stacks of the kernel, and the registers of programs
//! - [`program_stack`]: stacks of programs, with the names of their functions
//! - `path`: paths of open and mapped files
//! - [`mapping`]: mappings of a process
//! - [`libraries`]: libraries of a process, by the names that its dynamic linker gave them
//! - `elf_core`: headers and notes of core files
//! - [`files`]: open files of a process
//! - [`arguments`]: requests to disks, signals and futexes, from arguments of the kernel's functions
//! - [`current`]: the thread that runs, and its open files
//! - [`special_files`]: what pipes, eventfds and epoll instances hold
//! - [`sockets`]: sockets of all network namespaces, and their owners
//! - [`calls`]: calls that give a program's bytes to the kernel
//! - [`core_file`]: a process as a core file for debuggers
//! - [`vmcore`]: the kernel as a core file for debuggers
//!
//! A guest may be hostile, so its structures may contradict themselves. No function here panics or reads without a
//! bound, and a part that is not mapped is an error, never a zero.
//!
//! Not here: names of addresses in programs (`symbols/`), and how a timeline gets to the moment that is read (`session/`).

mod argument_layout;
pub mod arguments;
pub mod calls;
pub mod core_file;
pub mod current;
mod elf_core;
pub mod error;
mod file_layout;
pub mod files;
pub mod floating;
pub mod guest;
pub mod kernel;
mod layout;
pub mod libraries;
pub mod limits;
pub mod mapping;
pub mod memory;
pub mod module;
mod path;
pub mod program_stack;
pub mod registers;
mod socket_layout;
pub mod sockets;
pub mod special_files;
pub mod stack;
pub mod task;
pub mod vmcore;

pub use error::Error;
pub use guest::Guest;
pub use kernel::Kernel;
