//! Writes small crates on which tests try rules.

use std::fs;

use everett_lint::circles::Graph;
use everett_lint::modules::Crate;
use tempfile::TempDir;

/// Writes a crate with these files into a temporary folder. Its root is `lib.rs`. Returns the folder and the imports of
/// the files.
pub(crate) fn of_files(files: &[(&str, &str)]) -> (TempDir, Graph) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let imports = Crate::read(&folder.path().join("lib.rs")).unwrap().imports();
    (folder, imports)
}
