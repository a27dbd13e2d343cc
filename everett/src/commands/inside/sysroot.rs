//! Folder with the programs and libraries that a process has mapped, in which gdb finds them by their paths in the guest.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;
use everett_inspect::Guest;
use everett_inspect::mapping::Mapping;
use everett_inspect::program_stack::Files as _;
use everett_inspect::task::Process;
use everett_session::inside::mapped_files::MappedFiles;

/// Writes the programs and libraries that a process has mapped into the folder `root`. Returns the path of the process's
/// own program there, if its content is known.
pub(super) fn unpack(
    root: &Path,
    guest: &Guest<'_>,
    process: &Process,
    mappings: &[Mapping],
    files: &MappedFiles,
) -> anyhow::Result<Option<PathBuf>> {
    let mut seen = BTreeSet::new();
    for mapping in mappings.iter().filter(|mapping| mapping.file.is_some()) {
        if seen.insert(&mapping.name)
            && let Some(path) = below(root, &mapping.name)
            && let Some(program) = files.program(mapping)
        {
            put(&path, program.file()).with_context(|| path.display().to_string())?;
        }
    }
    // gdb looks for libraries by the names that the dynamic linker gave them.
    for library in guest.libraries(process).unwrap_or_default() {
        let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&library.dynamic);
        let file = mappings.iter().find(holds).and_then(|mapping| below(root, &mapping.name));
        if let (Some(file), Some(name)) = (file.filter(|file| file.is_file()), below(root, &library.name))
            && !name.exists()
        {
            make_folder_of(&name)
                .and_then(|()| fs::hard_link(&file, &name))
                .with_context(|| name.display().to_string())?;
        }
    }
    let program = guest.program_path(process).unwrap_or_default();
    Ok(program.and_then(|path| below(root, &path)).filter(|path| path.is_file()))
}

/// Returns the path of a guest's file below a folder of the host. `None` if the path could leave the folder.
fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix('/')?);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && path.components().next().is_some()).then(|| root.join(path))
}

/// Writes a file, and the folders above it. Several processes can have mapped the same file.
fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    make_folder_of(path)?;
    if path.exists() { Ok(()) } else { fs::write(path, content) }
}

fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_guests_stay_in_the_folder() {
        let root = Path::new("out/n1");
        assert_eq!(below(root, "/usr/bin/redis-server"), Some(root.join("usr/bin/redis-server")));
        for path in ["/../x", "/usr/../../x", "/", "", "usr/bin/x", "//etc/x", "[heap]"] {
            assert_eq!(below(root, path), None, "{path}");
        }
    }
}
