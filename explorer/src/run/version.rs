//! Versions of the format of run directories.

/// Version of the format that Everett writes.
pub const SCHEMA_VERSION: u32 = 4;
/// Oldest version of the format that Everett reads. Everett continues only runs of version [`SCHEMA_VERSION`].
pub const SCHEMA_VERSION_OLDEST: u32 = 3;
/// Oldest version of the format whose records (the stored results of branches) contain the cost of final phases. In a
/// final phase, the checks run after the end of a branch.
pub(super) const FINAL_PHASE_SINCE: u32 = 4;
