//! How much memory a node needs to boot its image.

use std::fs;

use everett_input::file;
use everett_vmm::boot::Kernel;
use everett_vmm::layout::RAM_BYTES_MAX;

use super::machines::BootFiles;

/// What Debian's cloud kernel needs besides its own image and its initramfs, in bytes, to get to a root filesystem without
/// running out of memory. Measured by booting: 70 MiB are too little for an image whose least comes to 72.
const KERNEL_WORK_BYTES: u64 = 5 << 20;
/// The least is told in whole steps of this, in bytes.
const STEP_BYTES: u64 = 1 << 20;

/// The least memory that these files boot in, in bytes: the kernel, the initramfs packed and unpacked, and what a kernel works
/// with. `None` if a file cannot be read or is no kernel, which the machine says better.
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
        let files = BootFiles { kernel: kernel.clone(), initramfs: None, root: None };
        assert!(least_bytes(&files).is_some());
        // Sparse, and a kernel all the same.
        fs::OpenOptions::new().write(true).open(&kernel).unwrap().set_len(RAM_BYTES_MAX + 1).unwrap();
        assert_eq!(least_bytes(&files), None);
    }
}
