//! Kernels: from a distribution's file to the `vmlinux` that a machine boots, and its modules.
//!
//! - [`bzimage`]: extraction of the ELF from a bzImage.
//! - [`elf`]: parsing of ELF, as far as needed to check a kernel and to read a module's dependencies.
//! - [`modules`]: the modules that a machine needs, in the order in which they are loaded.
//!
//! Not here: downloading of kernels ([`crate::apt`]).

pub mod bzimage;
pub mod elf;
pub mod modules;

use std::path::{Path, PathBuf};

/// Maximum length of a kernel, compressed or not, in bytes. Debian's has 60 MiB.
pub const KERNEL_BYTES_MAX: u64 = 1 << 30;

/// Maximum length of a module, compressed or not, in bytes.
pub(crate) const MODULE_BYTES_MAX: u64 = 64 << 20;

/// Maximum total length of a kernel's module files as stored, often compressed, in bytes. Debian's have 100 MiB.
pub(crate) const MODULES_BYTES_MAX: u64 = 1 << 30;

/// Reason why a file is not a kernel for a machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder of modules cannot be read.
    #[error("cannot read the modules in {path}")]
    Read {
        /// Path of the folder or file.
        path: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The file of the kernel or of a module cannot be read.
    #[error("cannot read the kernel {}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: everett_input::file::Reason,
    },
    /// The modules are too long to keep in memory.
    #[error("the modules in {path} have more than {MODULES_BYTES_MAX} bytes")]
    Modules {
        /// Path of their folder, or name of their package.
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

impl From<everett_input::file::Error> for Error {
    fn from(error: everett_input::file::Error) -> Error {
        Error::File { path: error.path, source: error.reason }
    }
}

/// Reads a kernel, compressed or not, and returns its ELF.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a kernel for x86-64.
pub fn read_vmlinux(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = everett_input::file::read(path, KERNEL_BYTES_MAX)?;
    vmlinux(bytes, &path.display().to_string())
}

/// Extracts the ELF of a kernel in memory. `name` identifies the kernel in errors.
///
/// # Errors
/// Returns an error if the data is not a kernel for x86-64.
pub fn vmlinux(bytes: Vec<u8>, name: &str) -> Result<Vec<u8>, Error> {
    let path = || name.to_owned();
    let image = if elf::is_elf(&bytes) {
        bytes
    } else if bzimage::is_bzimage(&bytes) {
        bzimage::unpack(&bytes).map_err(|source| Error::BzImage { path: path(), source })?
    } else {
        return Err(Error::NotAKernel { path: path() });
    };
    elf::check_x86_64(&image).map_err(|source| Error::Elf { path: path(), source })?;
    Ok(image)
}
