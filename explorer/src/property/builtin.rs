//! Properties that every world has, unless it ignores them by name.
//!
//! Kernels' troubles are judged here. The others are names for what the caller judged, so that there is one list of what can be
//! ignored: a name that is not on it is judged as well, but no world can switch it off.

use super::kernel::Trouble;

/// A service ended that should not have.
pub const SERVICE_EXIT: &str = "service exit";
/// A driver of the workload ended in failure.
pub const DRIVER_EXIT: &str = "driver exit";
/// A check of the workload failed.
pub const FAILED_CHECK: &str = "failed check";
/// A machine does not get ready.
pub const NOT_READY: &str = "not ready";
/// A machine stopped by itself.
pub const MACHINE_STOPPED: &str = "machine stopped";
/// Everett's own CPU panicked: a defect of Everett's, not of the guest.
pub const ENGINE_FAILURE: &str = "engine failure";
/// A guest's agent is gone, or says what makes no sense.
pub const AGENT_FAILURE: &str = "agent failure";
/// No correct server could have told clients what they were told.
pub const LINEARIZABILITY: &str = "linearizability";
/// A write was acknowledged and is gone.
pub const LOST_WRITE: &str = "lost write";

/// When nothing is done to a world any more it comes to rest, and its checks can run.
pub const NOT_CALM: &str = "not calm";
/// A history has lines that cannot be used.
pub const BAD_HISTORY: &str = "bad history";

/// What the caller judges.
const TOLD: [&str; 11] = [
    SERVICE_EXIT,
    DRIVER_EXIT,
    FAILED_CHECK,
    NOT_READY,
    MACHINE_STOPPED,
    ENGINE_FAILURE,
    AGENT_FAILURE,
    LINEARIZABILITY,
    LOST_WRITE,
    NOT_CALM,
    BAD_HISTORY,
];

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

/// The names of all of them.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    TROUBLES.into_iter().map(Trouble::name).chain(TOLD)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
        // The last of the enum: whoever adds a trouble behind it has to add it to the list.
        assert_eq!(TROUBLES.len(), Trouble::FileSystem as usize + 1);
        assert!(TROUBLES.is_sorted_by(|a, b| a < b));
    }
}
