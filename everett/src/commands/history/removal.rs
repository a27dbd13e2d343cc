//! Removal of a run directory.
//!
//! The history may name any folder, so nothing is removed that is not provably the recorded run, and in its folder only
//! files that Everett writes there.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, bail};
use everett_explorer::run::{Header, Journal, RunError};
use everett_history::Run;

/// Names of the files of a run, in the order of removal. Without a header a folder is no run, so the header comes last
/// but for the lock: an interrupted removal can be repeated.
const FILES: [&str; 6] = ["end.json", "report.html", "recorded.json", "branches.bin", "run.json", "lock"];
/// Name of the folder of evidence.
const EVIDENCE: &str = "findings";
/// Beginnings and ends of the names of files of a finding or a branch, with its number in between.
const OF_FINDINGS: [(&str, &str); 4] =
    [("regression-", ".json"), ("timeline-", ".jsonl"), ("causality-", ".json"), ("branch-", ".jsonl")];

/// What is left of a run's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing.
    Nothing,
    /// Files that Everett did not write.
    OtherFiles,
    /// Everything: no run is in it any more.
    NoRun,
    /// Everything: it holds another exploration.
    OtherRun,
}

impl Left {
    /// Returns a note for the operator.
    pub(super) const fn note(self) -> Option<&'static str> {
        match self {
            Left::Nothing => None,
            Left::OtherFiles => Some("other files are in it and stay"),
            Left::NoRun => Some("no run is in it any more; it stays"),
            Left::OtherRun => Some("it holds another exploration, which stays"),
        }
    }
}

/// Removes the files of a run, and its folder if nothing else is in it. Returns what is left of the folder.
pub(super) fn remove(run: &Run) -> anyhow::Result<Left> {
    let folder = Path::new(&run.folder);
    let here = || format!("cannot remove {}", folder.display());
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Left::Nothing),
        Err(error) => return Err(error).with_context(here),
        Ok(metadata) if !metadata.is_dir() => bail!("it is not a folder any more"),
        Ok(_) => {}
    }
    let header = match Header::read(folder) {
        Ok(header) => header,
        // The record is removed, and the folder stays.
        Err(RunError::NoRun(_)) => return Ok(Left::NoRun),
        Err(error) => return Err(error.into()),
    };
    if header.identity != run.identity || header.seed.number() != run.seed {
        return Ok(Left::OtherRun);
    }
    // It holds the lock, so no process explores there meanwhile.
    let journal = Journal::resume(folder, &header)?;
    let evidence = folder.join(EVIDENCE);
    gone(&evidence, |path| fs::remove_dir_all(path))?;
    for entry in fs::read_dir(folder).with_context(here)? {
        let entry = entry.with_context(here)?;
        if entry.file_name().to_str().is_some_and(is_of_finding) {
            gone(&entry.path(), |path| fs::remove_file(path))?;
        }
    }
    for name in FILES {
        gone(&folder.join(name), |path| fs::remove_file(path))?;
    }
    drop(journal);
    match fs::remove_dir(folder) {
        Ok(()) => Ok(Left::Nothing),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(Left::OtherFiles),
        Err(error) => Err(error).with_context(here),
    }
}

/// True if Everett writes files of this name for findings.
fn is_of_finding(name: &str) -> bool {
    OF_FINDINGS.iter().any(|(begin, end)| {
        let number = name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// Removes a file or folder, unless it is gone already. A link is removed, and not what it names.
fn gone(path: &Path, remove: impl FnOnce(&Path) -> io::Result<()>) -> anyhow::Result<()> {
    match remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_finding;

    #[test]
    fn only_names_that_everett_writes_are_removed() {
        for name in ["regression-1.json", "timeline-12.jsonl", "causality-3.json", "branch-17.jsonl"] {
            assert!(is_of_finding(name), "{name}");
        }
        for name in ["report.html", "regression-.json", "regression-x.json", "notes.txt", "1.json"] {
            assert!(!is_of_finding(name), "{name}");
        }
    }
}
