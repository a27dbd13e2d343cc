//! Least memory in which a node can boot its image.

use std::fs;

use everett_input::file;
use everett_vmm::boot::Kernel;
use everett_vmm::layout::RAM_BYTES_MAX;

use super::BootFiles;

/// Memory in bytes that Debian's cloud kernel needs to reach its root filesystem, beside its own image and the
/// initramfs. Measured by booting: this value gives a minimum of 72 MiB for an image that does not boot in 70 MiB.
const KERNEL_WORK_BYTES: u64 = 5 << 20;
/// Granularity of the minimum, in bytes. The minimum is rounded up to a multiple of it.
const STEP_BYTES: u64 = 1 << 20;

/// Returns the least memory in which these files boot, in bytes. It is the sum of the kernel's end address, twice the
/// size of the initramfs file, and the kernel's working memory. The initramfs counts twice because its unpacked copy
/// needs about as much memory again.
///
/// Returns `None` if a file cannot be read, if the kernel's file holds no kernel, or if the sum overflows. The error
/// then appears when the machine is created.
#[must_use]
pub fn least_bytes(files: &BootFiles) -> Option<u64> {
    let kernel = Kernel::parse(file::read(&files.kernel, RAM_BYTES_MAX).ok()?).ok()?;
    let initramfs_bytes = match &files.initramfs {
        None => 0,
        Some(path) => fs::metadata(path).ok()?.len(),
    };
    let parts = [kernel.end(), initramfs_bytes, initramfs_bytes, KERNEL_WORK_BYTES];
    parts.into_iter().fold(0, u64::saturating_add).checked_next_multiple_of(STEP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_beyond_the_bound_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("kernel");
        fs::write(&kernel, everett_vmm::boot::small_kernel(&[0xf4], 0)).unwrap();
        let files =
            BootFiles { kernel: kernel.clone(), initramfs: None, root: None, images: Default::default() };
        assert!(least_bytes(&files).is_some());
        // The file is sparse and still begins with a valid kernel.
        fs::OpenOptions::new().write(true).open(&kernel).unwrap().set_len(RAM_BYTES_MAX + 1).unwrap();
        assert_eq!(least_bytes(&files), None);
    }
}
