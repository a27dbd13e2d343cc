//! Separate files with debug information, in folders that the user names.
//!
//! Distributions put the debug information of a program into a file of its own, and name this file by the program's
//! build ID. A folder can have the layout of Debian's debug packages, of their installed form `/usr/lib/debug`, or of a
//! cache of debuginfod.

use std::path::{Path, PathBuf};

use everett_input::file;
use everett_symbols::lines::Lines;
use everett_symbols::program::{Program, Supplement};

/// Maximum length of a file with debug information, in bytes.
const DEBUG_FILE_BYTES_MAX: u64 = 2 << 30;

/// Folder of debug files in Debian's packages.
const DEBIAN: &str = "usr/lib/debug";

/// Folders with debug files.
#[derive(Debug, Clone, Default)]
pub struct DebugFolders(Vec<PathBuf>);

impl DebugFolders {
    /// Returns the folders. Files in a folder are found when they are needed.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> DebugFolders {
        DebugFolders(folders)
    }

    /// Adds folders.
    pub fn add(&mut self, folders: impl IntoIterator<Item = PathBuf>) {
        self.0.extend(folders);
    }

    /// Returns the source lines of a program: from the program itself, or from its separate debug file. `bytes_left` is
    /// the number of bytes of debug information that may still be kept. `None` if neither file has lines, or if they are
    /// too long.
    #[must_use]
    pub fn lines(&self, program: &Program, bytes_left: &mut u64) -> Option<Lines> {
        let mut of_file = |program: &Program| {
            let supplement = program.supplement().and_then(|supplement| self.supplement(supplement));
            Lines::of(program.file(), supplement.as_deref(), bytes_left)
        };
        if let Some(lines) = of_file(program) {
            return Some(lines);
        }
        let separate = self.by_id(program.build_id()?)?;
        of_file(&Program::parse(separate.into()).ok()?)
    }

    /// Returns the content of the debug file with a build ID.
    fn by_id(&self, id: &[u8]) -> Option<Vec<u8>> {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (first, rest) = hex.split_at_checked(2)?;
        let debian = format!(".build-id/{first}/{rest}.debug");
        let paths = [debian.clone(), format!("{DEBIAN}/{debian}"), format!("{hex}/debuginfo")];
        self.read(&paths)
    }

    /// Returns the content of a file with the parts that several debug files share.
    fn supplement(&self, supplement: &Supplement) -> Option<Vec<u8>> {
        if let Some(content) = self.by_id(&supplement.build_id) {
            return Some(content);
        }
        // The path is relative to the debug file, and Debian's begins with `../../.dwz/`.
        let (_, name) = supplement.path.split_once(".dwz/")?;
        if Path::new(name).components().any(|part| part == std::path::Component::ParentDir) {
            return None;
        }
        let name = format!(".dwz/{name}");
        self.read(&[name.clone(), format!("{DEBIAN}/{name}")])
    }

    fn read(&self, paths: &[String]) -> Option<Vec<u8>> {
        let all = self.0.iter().flat_map(|folder| paths.iter().map(|path| folder.join(path)));
        let mut found = all.filter_map(|path| file::read(&path, DEBUG_FILE_BYTES_MAX).ok());
        found.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_each_layout() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, path.to_str().unwrap()).unwrap();
        };
        let folders = DebugFolders::new(vec![folder.path().join("none"), folder.path().to_owned()]);
        let id = |id: &[u8]| folders.by_id(id).is_some();
        for (path, bytes) in [
            (".build-id/ab/cdef.debug", [0xab, 0xcd, 0xef]),
            ("usr/lib/debug/.build-id/01/0203.debug", [1, 2, 3]),
            ("040506/debuginfo", [4, 5, 6]),
        ] {
            assert!(!id(&bytes));
            put(path);
            assert!(id(&bytes), "{path}");
        }
        assert!(!id(&[]) && !id(&[0xab]));
        let shared = |path: &str| {
            let supplement = Supplement { path: path.to_owned(), build_id: vec![9, 9] };
            folders.supplement(&supplement).is_some()
        };
        put("usr/lib/debug/.dwz/x86_64/p.debug");
        assert!(shared("../../.dwz/x86_64/p.debug"));
        assert!(!shared("../../.dwz/x86_64/../x86_64/p.debug") && !shared("/usr/lib/debug/p.debug"));
    }
}
