//! Least memory that a node needs to boot its image.

use std::fs;

use everett_input::file;
use everett_vmm::boot::Kernel;
use everett_vmm::layout::RAM_BYTES_MAX;

use super::BootFiles;

/// Memory that Debian's cloud kernel needs besides its own image and its initramfs to reach a root filesystem without
/// running out of memory, in bytes. Found by booting: with this value, the computed minimum of an image was 72 MiB, and
/// the image did not boot in 70 MiB.
const KERNEL_WORK_BYTES: u64 = 5 << 20;
/// Granularity of the minimum, in bytes: it is rounded up to a multiple of this.
const STEP_BYTES: u64 = 1 << 20;

/// Returns the least memory that these files boot in, in bytes: the kernel, twice the initramfs file, and the kernel's
/// working memory. The initramfs counts twice because its unpacked copy is taken to be as large as the file. Returns
/// `None` if a file cannot be read or is no kernel, or if the sum overflows; creating the machine then gives the better
/// error.
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
        // A sparse file that still begins with a valid kernel.
        fs::OpenOptions::new().write(true).open(&kernel).unwrap().set_len(RAM_BYTES_MAX + 1).unwrap();
        assert_eq!(least_bytes(&files), None);
    }
}
