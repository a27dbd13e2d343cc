//! File with the processes of a running service, `/run/everett/unit-NAME`. The service's supervisor writes it.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::processes;

/// Folder of the files. Its filesystem is new at each boot.
const FOLDER: &str = "/run/everett";

/// Process IDs of a running service and its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Process ID of the supervisor.
    supervisor: Pid,
    /// Start time of the supervisor in clock ticks since boot. A later process may get the same process ID.
    started: u64,
    /// Process ID of the service.
    pub(crate) service: Pid,
    /// True if the supervisor, and not the service, behaves like process 1 of a container.
    pub(crate) init: bool,
}

impl Record {
    /// Creates the record of a service whose supervisor is this process.
    pub(crate) fn new(service: Pid, init: bool) -> Result<Record, String> {
        let supervisor = Pid::this();
        let started = processes::started(supervisor);
        let started = started.ok_or("cannot read when this process was started: there is no /proc")?;
        Ok(Record { supervisor, started, service, init })
    }

    /// Reads the record of a service. Returns `None` if the service does not run, even if an old record exists.
    pub(crate) fn of(unit: &str) -> Option<Record> {
        Record::parse(&fs::read_to_string(path(unit)).ok()?).filter(|record| record.is_current())
    }

    /// True if the supervisor still runs.
    fn is_current(&self) -> bool {
        processes::started(self.supervisor) == Some(self.started)
    }

    fn parse(text: &str) -> Option<Record> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let [supervisor, started, service, kind] = words[..] else { return None };
        let pid = |word: &str| word.parse().ok().map(Pid::from_raw);
        let (supervisor, service) = (pid(supervisor)?, pid(service)?);
        Some(Record { supervisor, started: started.parse().ok()?, service, init: kind == "init" })
    }

    fn text(self) -> String {
        let kind = if self.init { "init" } else { "plain" };
        format!("{} {} {} {kind}\n", self.supervisor, self.started, self.service)
    }

    /// Writes the record to its file. A reader sees the whole record or none.
    pub(crate) fn write(self, unit: &str) -> Result<(), String> {
        let path = path(unit);
        let new = Path::new(FOLDER).join(format!("new-{unit}"));
        let written = fs::write(&new, self.text()).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Removes the record of a service that has ended.
    pub(crate) fn remove(unit: &str) {
        // Fails if the file does not exist, which is no problem.
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
            let (supervisor, service) = (Pid::from_raw(7), Pid::from_raw(8));
            let record = Record { supervisor, started: 9, service, init };
            assert_eq!(Record::parse(&record.text()), Some(record));
        }
        for text in ["", "7", "7 9 8", "x 9 8 init", "7 x 8 init", "7 9 8 init 1"] {
            assert_eq!(Record::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_record_that_a_killed_supervisor_left_is_not_current() {
        let record = Record::new(Pid::this(), false).unwrap();
        assert!(record.is_current());
        assert!(
            !Record { started: record.started + 1, ..record }.is_current(),
            "another process with its number"
        );
        assert!(!Record { supervisor: Pid::from_raw(i32::MAX), ..record }.is_current(), "no process");
    }
}
