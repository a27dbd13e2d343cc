//! Problems of the kernel and of programs that Linux reports on its console.
//!
//! The phrases are taken from the kernel's sources (`kernel/panic.c`, `arch/x86/kernel/dumpstack.c`,
//! `arch/x86/kernel/traps.c`, `arch/x86/mm/fault.c`, `kernel/watchdog.c`, `kernel/workqueue.c`, `kernel/hung_task.c`,
//! `kernel/rcu/tree_stall.h`, `mm/oom_kill.c`, `fs/ext4/super.c`, `fs/jbd2`, `fs/xfs`).

use serde::{Deserialize, Serialize};

/// Problem that a console line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The kernel panicked.
    Panic,
    /// The kernel made an invalid access, or detected a bug.
    Oops,
    /// The kernel printed a warning about itself.
    Warning,
    /// A CPU ran one task for many seconds without rescheduling, or a workqueue made no progress.
    SoftLockup,
    /// A task was in uninterruptible sleep for many seconds.
    HungTask,
    /// A CPU had no RCU quiescent state for many seconds.
    RcuStall,
    /// Memory ran out, and the kernel killed a program.
    OutOfMemory,
    /// An exception killed a program, for example an invalid memory access.
    Crash,
    /// A file system is damaged or was shut down.
    FileSystem,
}

impl Trouble {
    /// Returns the name of this problem's built-in property.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Trouble::Panic => "kernel panic",
            Trouble::Oops => "kernel oops",
            Trouble::Warning => "kernel warning",
            Trouble::SoftLockup => "soft lockup",
            Trouble::HungTask => "hung task",
            Trouble::RcuStall => "RCU stall",
            Trouble::OutOfMemory => "out of memory",
            Trouble::Crash => "program crash",
            Trouble::FileSystem => "file system error",
        }
    }

    /// Returns true if a correct kernel may report this problem after its node stood still, for example because of a
    /// pause.
    #[must_use]
    pub fn is_of_watchdogs(self) -> bool {
        matches!(self, Trouble::SoftLockup | Trouble::HungTask | Trouble::RcuStall)
    }
}

/// Beginnings of console lines, without the timestamp. The first entry that matches a line decides.
const BEGINNINGS: [(&str, Trouble); 17] = [
    ("Kernel panic - not syncing", Trouble::Panic),
    ("watchdog: BUG: soft lockup", Trouble::SoftLockup),
    ("BUG: soft lockup", Trouble::SoftLockup),
    ("BUG: workqueue lockup", Trouble::SoftLockup),
    ("BUG: ", Trouble::Oops),
    ("kernel BUG at ", Trouble::Oops),
    ("Oops: ", Trouble::Oops),
    ("general protection fault", Trouble::Oops),
    ("divide error: ", Trouble::Oops),
    ("invalid opcode: ", Trouble::Oops),
    ("stack segment: ", Trouble::Oops),
    ("WARNING: CPU: ", Trouble::Warning),
    ("rcu: INFO: ", Trouble::RcuStall),
    ("Out of memory: Killed process", Trouble::OutOfMemory),
    ("Memory cgroup out of memory: Killed process", Trouble::OutOfMemory),
    ("EXT4-fs error", Trouble::FileSystem),
    ("traps: ", Trouble::Crash),
];

/// Returns the problem that a console line reports, or `None`.
#[must_use]
pub fn trouble(line: &str) -> Option<Trouble> {
    let text = without_time(line);
    let begins = BEGINNINGS.into_iter().find(|(beginning, _)| text.starts_with(beginning));
    if let Some((_, trouble)) = begins {
        // Some messages with the beginning `rcu: INFO: ` do not report a stall.
        return Some(trouble).filter(|trouble| *trouble != Trouble::RcuStall || text.contains("stall"));
    }
    if text.starts_with("INFO: task ") && text.contains(" blocked for more than ") {
        return Some(Trouble::HungTask);
    }
    if text.contains("]: segfault at ") {
        return Some(Trouble::Crash);
    }
    let of_xfs = ["Corruption ", "Internal error ", "metadata I/O error", "Shutting down filesystem"];
    if text.starts_with("XFS (") && of_xfs.into_iter().any(|words| text.contains(words)) {
        return Some(Trouble::FileSystem);
    }
    let aborted = text.starts_with("JBD2: ") || text.starts_with("Aborting journal on device ");
    (aborted && (text.contains("rror") || text.contains("Aborting"))).then_some(Trouble::FileSystem)
}

/// Strips the timestamp from a line, e.g. `[   12.345678] `, and the log level that a console may print before it.
fn without_time(line: &str) -> &str {
    let line = line.trim_ascii_start();
    let level = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let line = level.filter(|(digits, _)| is_number(digits)).map_or(line, |(_, rest)| rest);
    let Some((time, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return line;
    };
    let (seconds, fraction) = time.trim_ascii().split_once('.').unwrap_or_default();
    if is_number(seconds) && is_number(fraction) { rest.trim_ascii_start() } else { line }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_kernels() {
        let lines = [
            ("[    1.234567] Kernel panic - not syncing: VFS: Unable to mount root fs", Some(Trouble::Panic)),
            ("[   99.000001] ---[ end Kernel panic - not syncing: Fatal exception ]---", None),
            (
                "[    2.0] BUG: kernel NULL pointer dereference, address: 0000000000000000",
                Some(Trouble::Oops),
            ),
            ("BUG: unable to handle page fault for address: ffffffffff", Some(Trouble::Oops)),
            ("[    2.0] kernel BUG at fs/ext4/inode.c:1234!", Some(Trouble::Oops)),
            ("[    2.0] invalid opcode: 0000 [#1] PREEMPT SMP", Some(Trouble::Oops)),
            ("<2>[    2.0] Oops: 0002 [#1] SMP", Some(Trouble::Oops)),
            ("[    2.0] general protection fault, probably for non-canonical address", Some(Trouble::Oops)),
            ("[    2.0] WARNING: CPU: 0 PID: 17 at kernel/softirq.c:300", Some(Trouble::Warning)),
            (
                "[   48.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [redis:77]",
                Some(Trouble::SoftLockup),
            ),
            (
                "[  242.1] INFO: task jbd2/vda-8:88 blocked for more than 120 seconds.",
                Some(Trouble::HungTask),
            ),
            ("[   21.1] rcu: INFO: rcu_preempt self-detected stall on CPU", Some(Trouble::RcuStall)),
            ("[    0.1] rcu: INFO: hierarchical RCU implementation.", None),
            ("[    0.1] rcu: Hierarchical RCU implementation.", None),
            (
                "[    9.1] Out of memory: Killed process 80 (postgres) total-vm:1kB",
                Some(Trouble::OutOfMemory),
            ),
            (
                "[    9.1] redis-server[93]: segfault at 8 ip 00005555 sp 00007ffd error 4",
                Some(Trouble::Crash),
            ),
            ("[    9.1] traps: a.out[93] general protection fault ip:40 sp:7f error:0", Some(Trouble::Crash)),
            ("[    9.1] EXT4-fs error (device vda): ext4_lookup:1855: inode #12", Some(Trouble::FileSystem)),
            ("[    9.1] EXT4-fs (vda): mounted filesystem with ordered data mode", None),
            (
                "[    9.1] XFS (vda): Corruption detected. Unmount and run xfs_repair",
                Some(Trouble::FileSystem),
            ),
            ("[    9.1] XFS (vda): Ending clean mount", None),
            ("[    9.1] JBD2: Error -5 detected when updating journal superblock", Some(Trouble::FileSystem)),
            ("[    9.1] Aborting journal on device vda-8.", Some(Trouble::FileSystem)),
            ("[    9.1] NOTE: the word BUG: in the middle", None),
            ("", None),
        ];
        for (line, expected) in lines {
            assert_eq!(trouble(line), expected, "{line}");
        }
    }

    proptest! {
        /// A line reports a problem only if it has one of the kernel's phrases.
        #[test]
        fn any_line_is_safe(line in "\\PC{0,60}|<?[0-9]{0,2}>?\\[? {0,3}[0-9.]{0,9}\\]? ?BUG: \\PC{0,9}") {
            let others = ["INFO: task ", "]: segfault at ", "XFS (", "JBD2: ", "Aborting journal"];
            let mut words = BEGINNINGS.iter().map(|(beginning, _)| *beginning).chain(others);
            prop_assert!(trouble(&line).is_none() || words.any(|words| line.contains(words)));
        }

        #[test]
        fn times_do_not_matter(seconds in 0..1_000_000u32, fraction in 0..1_000_000u32, level in 0..8u8) {
            let line = format!("<{level}>[{seconds:5}.{fraction:06}] Kernel panic - not syncing: x");
            prop_assert_eq!(trouble(&line), Some(Trouble::Panic));
        }
    }
}
