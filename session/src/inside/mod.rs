//! Inputs of `everett-inspect`: RAM and registers of a machine, and the files of its programs.
//!
//! - [`image_programs`]: programs and libraries of an image
//! - [`machine`]: RAM and registers of a machine
//! - [`debug_files`]: separate files with debug information
//! - [`mapped_files`]: programs and libraries that processes have mapped
//!
//! Disks, which `everett-inspect` does not read:
//!
//! - [`file_system`]: kinds of file systems
//! - [`node_disks`]: disks of a node, with their names

pub mod debug_files;
pub mod file_system;
pub mod image_programs;
pub mod machine;
pub mod mapped_files;
pub mod node_disks;
