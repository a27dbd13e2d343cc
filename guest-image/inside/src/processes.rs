//! All processes, as `/proc` describes them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

use crate::frames::{self, Frames, field};

/// Files of `/proc/PID` that are read.
const OF_PROCESS: [&str; 4] = ["stat", "status", "cmdline", "maps"];
/// Files of `/proc/PID/task/TID` that are read.
const OF_THREAD: [&str; 3] = ["comm", "stack", "syscall"];
/// Maximum length of all files, in bytes.
const BYTES_MAX: usize = 64 << 20;

/// Files by their paths below `/proc`.
type Found = BTreeMap<PathBuf, Vec<u8>>;

/// Prints files of `/proc` about all processes: the path below `/proc` of each, its content, and an end.
///
/// The machine's one CPU runs no other process while this program reads, so that all files are of one instant: until it
/// prints, this program has the highest priority of the real-time policy SCHED_FIFO, see `sched(7)`.
pub(crate) fn processes(frames: &mut Frames) -> Result<(), String> {
    let schedule = |priority, policy| {
        let set = set_thread_priority_and_policy(thread_native_id(), priority, policy);
        set.map_err(|error| format!("cannot set the priority: {error:?}"))
    };
    schedule(ThreadPriority::Max, ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo))?;
    let found = read(Path::new("/proc"))?;
    for (path, content) in &found {
        frames.fields(frames::PROC_FILE, &field(path.as_os_str().as_bytes()))?;
        frames.bytes(frames::CONTENT, content)?;
        frames.mark(frames::END)?;
    }
    Ok(())
}

/// Reads the files of all processes. A process or thread that ends meanwhile lacks files.
fn read(proc: &Path) -> Result<Found, String> {
    let mut found = Found::new();
    let mut bytes = 0;
    let mut take = |folder: &Path, names: &[&str]| {
        for name in names {
            let path = folder.join(name);
            let Ok(content) = fs::read(proc.join(&path)) else { continue };
            bytes += content.len();
            if bytes > BYTES_MAX {
                return Err(format!("the files of all processes have more than {BYTES_MAX} bytes"));
            }
            found.insert(path, content);
        }
        Ok(())
    };
    for process in numbers(proc).map_err(|error| format!("{}: {error}", proc.display()))? {
        let folder = PathBuf::from(process);
        take(&folder, &OF_PROCESS)?;
        let tasks = folder.join("task");
        for thread in numbers(&proc.join(&tasks)).unwrap_or_default() {
            take(&tasks.join(thread), &OF_THREAD)?;
        }
    }
    Ok(found)
}

/// Returns the names in a folder that are numbers.
fn numbers(folder: &Path) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name.as_bytes().iter().all(u8::is_ascii_digit) {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_this_process_are_found() {
        let found = read(Path::new("/proc")).unwrap();
        let pid = std::process::id().to_string();
        let of = |name: &str| found.get(&Path::new(&pid).join(name));
        assert!(of("stat").unwrap().starts_with(format!("{pid} (").as_bytes()));
        assert!(!of("cmdline").unwrap().is_empty() && !of("maps").unwrap().is_empty());
        assert!(of(&format!("task/{pid}/comm")).is_some());
        assert!(!found.keys().any(|path| path.starts_with("self")));
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_named() {
        assert!(read(Path::new("/nowhere")).unwrap_err().starts_with("/nowhere: "));
    }
}
