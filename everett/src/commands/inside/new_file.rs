//! A file that a command writes: it must be new, and it is removed unless it is complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

/// New file of the option `--output`.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    file: File,
    is_complete: bool,
}

impl NewFile {
    /// Creates the file. Returns an error if it exists.
    pub(super) fn create(path: &Path) -> anyhow::Result<NewFile> {
        let here = || format!("--output: {}", path.display());
        let file = File::create_new(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                anyhow!("{}: it exists already, and a new file is needed", here())
            }
            _ => anyhow::Error::new(error).context(here()),
        })?;
        Ok(NewFile { path: path.to_owned(), file, is_complete: false })
    }

    /// Returns the open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Keeps the file, which is complete.
    pub(super) fn keep(mut self) -> anyhow::Result<()> {
        self.file.sync_all().with_context(|| self.path.display().to_string())?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // The command already reports why the file is not complete.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        drop(NewFile::create(&path).unwrap());
        assert!(!path.exists());
        NewFile::create(&path).unwrap().keep().unwrap();
        let error = NewFile::create(&path).unwrap_err().to_string();
        assert!(error.ends_with("new: it exists already, and a new file is needed"), "{error}");
        assert!(path.exists());
    }
}
