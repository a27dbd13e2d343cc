//! Processes of the machine, read from `/proc`.

use std::fs;

use nix::unistd::Pid;

/// Returns the children of a process, dead ones that were not waited for too.
pub(crate) fn children_of(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        parent_in(&stat) == Some(parent.as_raw())
    };
    pids.filter(is_child).map(Pid::from_raw).collect()
}

/// Returns the parent in a line of `/proc/PID/stat` (proc_pid_stat(5)). The name before it may contain any character.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns true if a process has a handler for a signal.
pub(crate) fn catches(process: Pid, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    is_caught(&status, signal)
}

/// Looks a signal up in the mask `SigCgt` of `/proc/PID/status`: bit 0 is signal 1.
fn is_caught(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(signal - 1).ok().filter(|bit| *bit < u64::BITS);
    mask.zip(bit).is_some_and(|(mask, bit)| mask & (1 << bit) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_follows_a_name_with_any_characters() {
        assert_eq!(parent_in("12 (a) (b 3) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a"), None);
    }

    #[test]
    fn bits_of_the_mask_are_signals() {
        let status = "Name:\tx\nSigIgn:\tffffffffffffffff\nSigCgt:\t8000000000004001\n";
        for (signal, caught) in [(1, true), (2, false), (15, true), (64, true), (0, false), (65, false)] {
            assert_eq!(is_caught(status, signal), caught, "{signal}");
        }
        assert!(!is_caught("Name:\tx\n", 15));
    }

    #[test]
    fn this_process_is_a_child_of_its_parent() {
        assert!(children_of(Pid::parent()).contains(&Pid::this()));
    }
}
