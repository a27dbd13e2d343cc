//! Removes a run directory.
//!
//! The history (a file that lists past explorations) may name any folder. So Everett touches the folder only if it
//! provably holds the run that the history lists, and removes only files that Everett writes there.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, bail};
use everett_explorer::run::{Header, Journal, RunError};
use everett_history::Run;

/// Names of the files of a run, in the order of removal. Everett recognises a run by its header (`run.json`). The
/// header comes after all results, so an interrupted removal can be repeated.
const FILES: [&str; 6] = ["end.json", "report.html", "recorded.json", "branches.bin", "run.json", "lock"];
/// Name of the folder with the evidence of findings.
const EVIDENCE: &str = "findings";
/// Prefixes and suffixes of the names of files for a finding or a branch. The number of the finding or branch stands
/// between prefix and suffix.
const OF_FINDINGS: [(&str, &str); 4] =
    [("regression-", ".json"), ("timeline-", ".jsonl"), ("causality-", ".json"), ("branch-", ".jsonl")];

/// Remains of a run's folder after the removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The folder is gone.
    Nothing,
    /// Files that Everett did not write.
    OtherFiles,
    /// The whole folder, because it holds no run any more.
    NoRun,
    /// The whole folder, because it holds another exploration.
    OtherRun,
}

impl Left {
    /// Returns a note for the operator. `None` if the folder is gone.
    pub(super) const fn note(self) -> Option<&'static str> {
        match self {
            Left::Nothing => None,
            Left::OtherFiles => Some("its folder stays, because it has other files"),
            Left::NoRun => Some("its folder stays, because it holds no run any more"),
            Left::OtherRun => Some("its folder stays, because it holds another exploration"),
        }
    }
}

/// Removes the files of a run, and its folder if that has no other files. Returns what stays of the folder.
pub(super) fn remove(run: &Run) -> anyhow::Result<Left> {
    let folder = Path::new(&run.folder);
    let here = || format!("cannot remove {}", folder.display());
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Left::Nothing),
        Err(error) => return Err(error).with_context(here),
        Ok(metadata) if !metadata.is_dir() => bail!("its path is not a folder any more"),
        Ok(_) => {}
    }
    let header = match Header::read(folder) {
        Ok(header) => header,
        // The folder stays. The caller removes only the run's record from the history.
        Err(RunError::NoRun(_)) => return Ok(Left::NoRun),
        Err(error) => return Err(error.into()),
    };
    if !super::is_of(&header, run) {
        return Ok(Left::OtherRun);
    }
    // The journal holds the run directory's lock, so no process explores there during the removal.
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

/// True if Everett writes a file of this name for a finding or a branch.
fn is_of_finding(name: &str) -> bool {
    OF_FINDINGS.iter().any(|(begin, end)| {
        let number = name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// Removes a file or folder, or does nothing if it is gone already. If the path is a link, removes the link itself.
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
