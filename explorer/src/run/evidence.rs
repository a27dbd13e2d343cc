//! Files of a finding's evidence, in the folder `findings/ID/`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::RunError;
use super::folder;
use super::limits::{FILE_NAME_BYTES_MAX, FILES_MAX};
use super::names;

/// Returns the folder of a finding.
pub(super) fn place(run: &Path, id: u32) -> PathBuf {
    run.join(names::FINDINGS).join(id.to_string())
}

/// Stores the files of a finding. If an error occurs, stores none of them. If the finding's folder already exists,
/// leaves it unchanged.
pub(super) fn keep(run: &Path, id: u32, files: &[(&str, &[u8])]) -> Result<(), RunError> {
    let mut names = BTreeSet::new();
    for (name, _) in files {
        if !is_name(name) {
            return Err(RunError::FileName(name.chars().take(FILE_NAME_BYTES_MAX).collect()));
        }
        if names.len() >= FILES_MAX || !names.insert(*name) {
            return Err(RunError::Files(id));
        }
    }
    let (findings, place) = (run.join(names::FINDINGS), place(run, id));
    if place.try_exists().map_err(RunError::io("look at", &place))? {
        return Ok(());
    }
    let temporary = findings.join(format!("{}{id}", names::TEMPORARY));
    if temporary.try_exists().map_err(RunError::io("look at", &temporary))? {
        // An earlier attempt failed and left this folder behind.
        fs::remove_dir_all(&temporary).map_err(RunError::io("remove", &temporary))?;
    }
    fs::create_dir(&temporary).map_err(RunError::io("create", &temporary))?;
    for (name, bytes) in files {
        folder::write_new(&temporary.join(name), bytes)?;
    }
    folder::sync(&temporary)?;
    fs::rename(&temporary, &place).map_err(RunError::io("create", &place))?;
    folder::sync(&findings)
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
    (1..=FILE_NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}
