//! The file in which the supervisor of a service tells who runs: `/run/everett/unit-NAME`.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

/// Folder of the files, in a filesystem that is new at each boot.
const FOLDER: &str = "/run/everett";

/// The processes of a running service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// The supervisor.
    pub(crate) supervisor: Pid,
    /// The service.
    pub(crate) service: Pid,
    /// True if the supervisor is the first process of the container, and not the service.
    pub(crate) init: bool,
}

impl Record {
    /// Returns the record of a service, or `None` if it does not run.
    pub(crate) fn of(unit: &str) -> Option<Record> {
        Record::parse(&fs::read_to_string(path(unit)).ok()?)
    }

    fn parse(text: &str) -> Option<Record> {
        let mut words = text.split_ascii_whitespace();
        let mut pid = || words.next()?.parse().ok().map(Pid::from_raw);
        let (supervisor, service) = (pid()?, pid()?);
        Some(Record { supervisor, service, init: words.next()? == "init" })
    }

    fn text(self) -> String {
        let kind = if self.init { "init" } else { "plain" };
        format!("{} {} {kind}\n", self.supervisor, self.service)
    }

    /// Writes the record. A reader sees all of it or nothing.
    pub(crate) fn write(self, unit: &str) -> Result<(), String> {
        let path = path(unit);
        let new = Path::new(FOLDER).join(format!("new-{unit}"));
        let written = fs::write(&new, self.text()).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Removes the record of a service that has ended.
    pub(crate) fn remove(unit: &str) {
        // Without the file, it is removed already.
        let _ = fs::remove_file(path(unit));
    }
}

fn path(unit: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("unit-{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for init in [true, false] {
            let record = Record { supervisor: Pid::from_raw(7), service: Pid::from_raw(8), init };
            assert_eq!(Record::parse(&record.text()), Some(record));
        }
        for text in ["", "7", "7 8", "x 8 init"] {
            assert_eq!(Record::parse(text), None, "{text}");
        }
    }
}
