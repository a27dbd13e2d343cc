//! Lists the files and crates of the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
#[must_use]
pub fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns all files below a folder whose names end in `ending`, in ascending order. Leaves out `target`, and hidden
/// folders other than `.ci`.
///
/// # Errors
/// Returns an error if a folder cannot be read.
pub fn below(top: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut open = vec![top.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "target" || name.starts_with('.') && name != ".ci" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else if name.ends_with(ending) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the root files (`src/lib.rs`, `src/main.rs`) of all crates below a folder, in ascending order.
///
/// # Errors
/// Returns an error if a folder cannot be read.
pub fn roots(top: &Path) -> io::Result<Vec<PathBuf>> {
    let manifests = below(top, "Cargo.toml")?;
    let of_crate =
        |manifest: &PathBuf| ["src/lib.rs", "src/main.rs"].map(|root| manifest.with_file_name(root));
    let mut roots: Vec<PathBuf> = manifests.iter().flat_map(of_crate).filter(|root| root.is_file()).collect();
    roots.sort();
    Ok(roots)
}
