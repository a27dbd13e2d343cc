//! Facts about processes, read from `/proc`.

use std::fs;
use std::io;

use nix::unistd::Pid;

/// Returns the children of a process, including dead children that it has not reaped.
pub(crate) fn children_of(parent: Pid) -> io::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok()).map(Pid::from_raw);
        // Some entries are no processes, and a process may have ended in the meantime.
        let of_parent = pid.filter(|pid| parent_in(&stat(*pid)) == Some(parent.as_raw()));
        children.extend(of_parent);
    }
    Ok(children)
}

/// Returns the start time of a process in clock ticks since boot, or `None` if there is no such process.
pub(crate) fn started(process: Pid) -> Option<u64> {
    started_in(&stat(process))
}

/// Returns the line of `/proc/PID/stat` (proc_pid_stat(5)), or an empty text if there is no such process.
fn stat(process: Pid) -> String {
    fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default()
}

fn parent_in(stat: &str) -> Option<i32> {
    field(stat, 4)?.parse().ok()
}

fn started_in(stat: &str) -> Option<u64> {
    field(stat, 22)?.parse().ok()
}

/// Returns field `number` of proc_pid_stat(5). `number` is at least 3. Field 2, the name, may contain any character.
fn field(stat: &str, number: usize) -> Option<&str> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(number.checked_sub(3)?)
}

/// True if a process has a handler for a signal.
pub(crate) fn catches(process: Pid, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    is_caught(&status, signal)
}

/// True if the mask `SigCgt` in `/proc/PID/status` contains the signal. Bit 0 stands for signal 1.
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
    fn fields_follow_a_name_with_any_characters() {
        let stat = "12 (a) (b 3) S 7 6 5 0 0 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23";
        assert_eq!((parent_in(stat), started_in(stat)), (Some(7), Some(4711)));
        assert_eq!((parent_in("12 (a"), started_in("12 (a) S 7")), (None, None));
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
        assert!(children_of(Pid::parent()).unwrap().contains(&Pid::this()));
        assert!(started(Pid::this()) >= started(Pid::parent()));
    }
}
