//! Listing of the programs in a folder.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use everett_protocol::limits::{LISTED_BYTES_MAX, LISTED_NAMES_MAX};

use crate::failure::{Context as _, Failure};

/// Returns the names of the files with any execute bit set, in byte order. If the folder does not exist, there are
/// none. Fails if a name is not UTF-8 or the names exceed the protocol's bounds, because a partial list would mislead.
pub(crate) fn programs(folder: &str) -> Result<Vec<String>, Failure> {
    let what = || format!("list {folder}");
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(what),
    };
    let mut names = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.context(what)?;
        if !is_program(&entry.path()).context(what)? {
            continue;
        }
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| {
            let shown = name.as_encoded_bytes().escape_ascii();
            Failure::new(format!("cannot list {folder}: \"{shown}\" is not UTF-8"))
        })?;
        bytes += name.len();
        names.push(name.to_owned());
        if names.len() > LISTED_NAMES_MAX || bytes > LISTED_BYTES_MAX {
            let most = format!("{LISTED_NAMES_MAX} programs and {LISTED_BYTES_MAX} bytes of names");
            return Err(Failure::new(format!("cannot list {folder}: it has more than {most}")));
        }
    }
    names.sort();
    Ok(names)
}

/// True if the path is a regular file with any execute bit set. Follows symbolic links, as execve(2) does.
fn is_program(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(file) => Ok(file.is_file() && file.permissions().mode() & 0o111 != 0),
        // The path is a dangling symbolic link.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::programs;
    use everett_protocol::limits::{LISTED_BYTES_MAX, LISTED_NAMES_MAX};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    fn put(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn list(folder: &Path) -> Result<Vec<String>, String> {
        programs(folder.to_str().unwrap()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_somebody_may_execute_is_named_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in [("z", 0o755), ("a b", 0o700), ("B", 0o645), ("data", 0o644)] {
            put(&at(name), mode);
        }
        fs::create_dir(at("folder")).unwrap();
        symlink("z", at("link")).unwrap();
        symlink("data", at("link to data")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        assert_eq!(list(folder.path()).unwrap(), ["B", "a b", "link", "z"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_empty_and_a_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(list(&folder.path().join("none")).unwrap(), [] as [&str; 0]);
        put(&folder.path().join("file"), 0o755);
        let error = list(&folder.path().join("file")).unwrap_err();
        assert!(error.starts_with("cannot list /") && error.contains("ot a directory"), "{error}");
    }

    #[test]
    fn half_a_list_is_none() {
        let folder = tempfile::tempdir().unwrap();
        put(&folder.path().join(OsStr::from_bytes(b"a\xff")), 0o644);
        assert_eq!(list(folder.path()).unwrap(), [] as [&str; 0], "nobody asked for it");
        put(&folder.path().join(OsStr::from_bytes(b"a\xff")), 0o755);
        assert!(list(folder.path()).unwrap_err().ends_with(": \"a\\xff\" is not UTF-8"));

        let folder = tempfile::tempdir().unwrap();
        for i in 0..LISTED_NAMES_MAX {
            put(&folder.path().join(format!("{i:05}")), 0o755);
        }
        assert_eq!(list(folder.path()).unwrap().len(), LISTED_NAMES_MAX);
        put(&folder.path().join("one more"), 0o755);
        assert!(list(folder.path()).unwrap_err().contains("more than 4096 programs"));

        let folder = tempfile::tempdir().unwrap();
        for i in 0..=LISTED_BYTES_MAX / 250 {
            put(&folder.path().join(format!("{i:0250}")), 0o755);
        }
        assert!(list(folder.path()).unwrap_err().contains("131072 bytes of names"));
    }
}
