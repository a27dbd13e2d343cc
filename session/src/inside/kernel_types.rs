//! The types and symbols of the kernel that the machines of a world run.

use anyhow::Context as _;
use everett_guest_image::kernel::KERNEL_BYTES_MAX;
use everett_inspect::Kernel;

use crate::machines::BootFiles;

/// Reads the types and symbols of the kernel that all machines run.
///
/// # Errors
/// Returns an error if the kernel's file cannot be read, or has no types.
pub fn kernel(files: &BootFiles) -> anyhow::Result<Kernel> {
    let file = &files.kernel;
    let kernel = everett_input::file::read(file, KERNEL_BYTES_MAX)?;
    Kernel::new(&kernel).with_context(|| file.display().to_string())
}
