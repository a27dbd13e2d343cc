//! A kernel, from whatever a distribution ships to the `vmlinux` that a machine boots, and its modules.
//!
//! - [`bzimage`]: the ELF inside a bzImage.
//! - [`elf`]: the little of ELF that is needed to check a kernel and to read a module's dependencies.
//! - [`modules`]: which modules a machine needs, in the order in which they load.
//!
//! What is not here: where kernels come from ([`crate::apt`]).

pub mod bzimage;
pub mod elf;
pub mod modules;

use std::path::Path;

/// Most bytes of a kernel, packed or not. Debian's has 60 MiB.
pub const KERNEL_BYTES_MAX: u64 = 1 << 30;

/// Why a file is no kernel for a machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the kernel {path}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is neither an ELF nor a bzImage.
    #[error("{path} is not a kernel: neither an ELF (vmlinux) nor a bzImage")]
    NotAKernel {
        /// The file.
        path: String,
    },
    /// It is a bzImage that cannot be unpacked.
    #[error("{path} is a bzImage whose content cannot be unpacked")]
    BzImage {
        /// The file.
        path: String,
        /// Why.
        source: bzimage::Error,
    },
    /// It is an ELF, and not for x86-64.
    #[error("{path} is not a kernel for x86-64")]
    Elf {
        /// The file.
        path: String,
        /// Why.
        source: elf::Error,
    },
}

/// Reads a kernel, packed or not, and gives its ELF.
///
/// # Errors
/// The file cannot be read, or is no kernel for x86-64.
pub fn read_vmlinux(path: &Path) -> Result<Vec<u8>, Error> {
    let name = || path.display().to_string();
    let length = std::fs::metadata(path).map_err(|source| Error::Read { path: name(), source })?.len();
    if length > KERNEL_BYTES_MAX {
        return Err(Error::NotAKernel { path: name() });
    }
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: name(), source })?;
    vmlinux(bytes, &name())
}

/// The ELF of a kernel that is in memory. `name` is what errors call it.
///
/// # Errors
/// It is no kernel for x86-64.
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
