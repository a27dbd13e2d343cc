//! Symbols of the kernel in a file.

use std::path::Path;

use everett_guest_image::kernel::KERNEL_BYTES_MAX;
use everett_symbols::kernel::Symbols;

/// Reads the symbols of the kernel in a file. The result is empty if the file cannot be read.
#[must_use]
pub fn of_file(kernel: &Path) -> Symbols {
    everett_input::file::read(kernel, KERNEL_BYTES_MAX)
        .map(|file| Symbols::of_kernel(&file))
        .unwrap_or_default()
}
