//! Built-in properties. Every world has them, except those that the world file ignores by name.
//!
//! Module `judge`, which finds violations, recognises only problems of kernels by itself. The caller of the judge
//! reports violations of all other built-in properties. Their names are here as well, so that one list has all
//! properties that a world can ignore. The caller can also report a violation of a property that is not on the list.
//! This violation becomes a hit (a recorded violation), too, but no world can ignore the property.

use super::kernel::Trouble;

/// A service ended unexpectedly.
pub const SERVICE_EXIT: &str = "service exit";
/// A driver of the workload failed.
pub const DRIVER_EXIT: &str = "driver exit";
/// A check of the workload failed.
pub const FAILED_CHECK: &str = "failed check";
/// A machine did not become ready.
pub const NOT_READY: &str = "not ready";
/// A machine stopped without a fault.
pub const MACHINE_STOPPED: &str = "machine stopped";
/// A restarted machine cannot mount a file system that it created earlier.
pub const FILE_SYSTEM_DAMAGED: &str = "file system damaged";
/// Everett's own CPU panicked. This is a defect of Everett and not of the guest.
pub const ENGINE_FAILURE: &str = "engine failure";
/// A guest's agent (Everett's program in the guest) is gone, or sends invalid messages.
pub const AGENT_FAILURE: &str = "agent failure";
/// No correct server could have given the answers that the clients got.
pub const LINEARIZABILITY: &str = "linearizability";
/// The effect of an acknowledged write is missing.
pub const LOST_WRITE: &str = "lost write";

/// The world did not settle after all faults had ended, so the checks could not run.
pub const NOT_CALM: &str = "not calm";
/// A history of clients' operations has invalid lines.
pub const BAD_HISTORY: &str = "bad history";

/// A program sent an invalid line through the SDK.
pub const BAD_SDK_LINE: &str = "bad sdk line";

/// Properties whose violations the caller of the judge reports.
const REPORTED: [&str; 13] = [
    SERVICE_EXIT,
    DRIVER_EXIT,
    FAILED_CHECK,
    NOT_READY,
    MACHINE_STOPPED,
    FILE_SYSTEM_DAMAGED,
    ENGINE_FAILURE,
    AGENT_FAILURE,
    LINEARIZABILITY,
    LOST_WRITE,
    NOT_CALM,
    BAD_HISTORY,
    BAD_SDK_LINE,
];

/// All problems that kernels report.
const TROUBLES: [Trouble; 9] = [
    Trouble::Panic,
    Trouble::Oops,
    Trouble::Warning,
    Trouble::SoftLockup,
    Trouble::HungTask,
    Trouble::RcuStall,
    Trouble::OutOfMemory,
    Trouble::Crash,
    Trouble::FileSystem,
];

/// Returns the names of all built-in properties.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    TROUBLES.into_iter().map(Trouble::name).chain(REPORTED)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
        // `FileSystem` is the last variant. If you add a variant after it, also add the variant to `TROUBLES`, and
        // write the variant's name instead of `FileSystem` below.
        assert_eq!(TROUBLES.len(), Trouble::FileSystem as usize + 1);
        assert!(TROUBLES.is_sorted_by(|a, b| a < b));
    }
}
