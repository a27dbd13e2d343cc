//! Size of a run directory, and free space on its file system.

use std::fs;
use std::path::Path;

use super::model::Disk;

/// Maximum number of files that are counted.
const FILES_MAX: usize = 20_000;
/// Maximum depth of nested folders that are counted.
const DEPTH_MAX: usize = 3;

/// Measures a run directory. Files and folders that cannot be read are left out.
pub(super) fn measure(run: &Path) -> Disk {
    let free = rustix::fs::statvfs(run).map_or(0, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    let mut files = 0;
    Disk { run_bytes: size(run, 0, &mut files), free_bytes: free }
}

fn size(folder: &Path, depth: usize, files: &mut usize) -> u64 {
    let mut bytes = 0u64;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        *files += 1;
        if *files > FILES_MAX {
            break;
        }
        // Does not follow links.
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() && depth < DEPTH_MAX {
            bytes = bytes.saturating_add(size(&entry.path(), depth + 1, files));
        } else if about.is_file() {
            bytes = bytes.saturating_add(about.len());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_counted_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), [0; 100]).unwrap();
        fs::create_dir(folder.path().join("findings")).unwrap();
        fs::write(folder.path().join("findings/b"), [0; 50]).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
        let disk = measure(folder.path());
        assert_eq!(disk.run_bytes, 150);
        assert!(disk.free_bytes > 0);
        assert_eq!(measure(Path::new("/nonexistent")).run_bytes, 0);
    }
}
