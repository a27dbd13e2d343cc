//! Machines of a timeline at an instant: what reads them from outside, and throw-away forks in which programs run.
//!
//! Inputs of `everett-inspect`, which executes nothing in a guest:
//!
//! - [`image_programs`]: programs and libraries of an image
//! - [`kernel_types`]: types and symbols of a world's kernel
//! - [`machine`]: RAM and registers of a machine
//! - [`debug_files`]: separate files with debug information
//! - [`mapped_files`]: programs and libraries that processes have mapped
//! - [`sampler`]: samples of what a machine executes
//! - [`profile`]: numbers of samples by node, process, function and kind
//!
//! Disks, which `everett-inspect` does not read:
//!
//! - [`file_system`]: kinds of file systems
//! - [`node_disks`]: disks of a node, with their names
//!
//! Throw-away forks:
//!
//! - [`limits`]: bounds on what a fork keeps and reads
//! - [`fork`]: [`Fork`](fork::Fork), in which vtime goes on and a caller runs commands
//! - `field`: fields of the lines of Everett's program for shells and files
//! - [`file_entry`]: attributes of a file in a guest
//! - `frames`: lines of this program
//! - `program_copy`: copies of this program in machines
//! - `program`: this program, while it runs in a fork
//! - [`terminal`]: a program on a terminal in a fork
//! - [`error`]: errors of lists and copies. [`copied`]: result of a copy
//! - [`comparison`]: compares what is read from outside with what the guest says of itself
//! - `unpack`: writes copied files below a folder of the host
//! - [`files`]: lists folders of a fork, and copies files out of it

pub mod comparison;
pub mod copied;
pub mod debug_files;
pub mod error;
mod field;
pub mod file_entry;
pub mod file_system;
pub mod files;
pub mod fork;
mod frames;
pub mod image_programs;
pub mod kernel_types;
pub mod limits;
pub mod machine;
pub mod mapped_files;
pub mod node_disks;
pub mod profile;
mod program;
mod program_copy;
pub mod sampler;
pub mod terminal;
pub mod unmapped;
mod unpack;
