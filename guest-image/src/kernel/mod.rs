//! Extracts `vmlinux` and modules from a distribution's kernel.
//!
//! - [`bzimage`]: extracts the `vmlinux`, an ELF file, from a bzImage.
//! - [`elf`]: checks that an ELF file is for x86-64, as Everett's machines are.
//! - [`modules`]: chooses the modules that a machine needs, in the order in which the agent (Everett's program in the
//!   guest) loads them.
//!
//! Not here: download of kernels ([`crate::apt`], [`crate::mirror`]).

pub mod bzimage;
pub mod elf;
pub mod modules;

use std::path::{Path, PathBuf};

/// Maximum length of a kernel in bytes, compressed or decompressed. Debian's kernel has 60 MiB.
pub const KERNEL_BYTES_MAX: u64 = 1 << 30;

/// Maximum length of a module in bytes, compressed or decompressed.
pub(crate) const MODULE_BYTES_MAX: u64 = 64 << 20;

/// Maximum total length of a kernel's module files in bytes, as stored (most are compressed). Debian's have 100 MiB.
pub(crate) const MODULES_BYTES_MAX: u64 = 1 << 30;

/// Reason why a file is not a kernel for a machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder of modules or a module's file cannot be read.
    #[error("cannot read the modules in {path}")]
    Read {
        /// Path of the folder or file.
        path: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The file of the kernel cannot be read.
    #[error("cannot read the kernel {}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: everett_input::file::Reason,
    },
    /// The total length of the modules exceeds the bound.
    #[error("the modules in {path} have more than {MODULES_BYTES_MAX} bytes")]
    Modules {
        /// Path of the modules' folder, or name of their package.
        path: String,
    },
    /// The file is neither an ELF file nor a bzImage.
    #[error("{path} is not a kernel: neither an ELF (vmlinux) nor a bzImage")]
    NotAKernel {
        /// Path of the file.
        path: String,
    },
    /// The file is a bzImage that cannot be unpacked.
    #[error("{path} is a bzImage whose content cannot be unpacked")]
    BzImage {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: bzimage::Error,
    },
    /// The file is an ELF file but not for x86-64.
    #[error("{path} is not a kernel for x86-64")]
    Elf {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: elf::Error,
    },
}

/// Reads a kernel and returns its ELF. The file may be a bzImage or an ELF.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a kernel for x86-64.
pub fn read_vmlinux(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = everett_input::file::read(path, KERNEL_BYTES_MAX);
    let bytes = bytes.map_err(|error| Error::File { path: error.path, source: error.reason })?;
    vmlinux(bytes, &path.display().to_string())
}

/// Extracts the ELF from a kernel in memory. Errors name the kernel `name`.
///
/// # Errors
/// Returns an error if the data is not a kernel for x86-64.
pub fn vmlinux(bytes: Vec<u8>, name: &str) -> Result<Vec<u8>, Error> {
    let path = || name.to_owned();
    let image = if everett_elf::is_elf(&bytes) {
        bytes
    } else if bzimage::is_bzimage(&bytes) {
        bzimage::unpack(&bytes).map_err(|source| Error::BzImage { path: path(), source })?
    } else {
        return Err(Error::NotAKernel { path: path() });
    };
    elf::check_x86_64(&image).map_err(|source| Error::Elf { path: path(), source })?;
    Ok(image)
}
