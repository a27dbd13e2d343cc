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

/// Most bytes of a module, packed or not.
pub(crate) const MODULE_BYTES_MAX: u64 = 64 << 20;

/// Most bytes of all modules of a kernel, as they are packed. Debian's have 100 MiB.
pub(crate) const MODULES_BYTES_MAX: u64 = 1 << 30;

/// Why a file is no kernel for a machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder of modules cannot be read.
    #[error("cannot read the modules in {path}")]
    Read {
        /// The folder or the file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file, or that of a module, cannot be read.
    #[error("cannot read the kernel {0}")]
    File(#[from] everett_input::file::Error),
    /// The modules are too many to keep in memory.
    #[error("the modules in {path} have more than {MODULES_BYTES_MAX} bytes")]
    Modules {
        /// Their folder, or their package.
        path: String,
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
    let bytes = everett_input::file::read(path, KERNEL_BYTES_MAX)?;
    vmlinux(bytes, &path.display().to_string())
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
