//! Versions of the format of run directories.

/// Version of the format of run directories that is written.
pub const SCHEMA_VERSION: u32 = 4;
/// Oldest version of the format that is read. An exploration continues only in a run of [`SCHEMA_VERSION`].
pub const SCHEMA_VERSION_OLDEST: u32 = 3;
/// Version of the format since which records have the cost of final phases.
pub(super) const FINAL_PHASE_SINCE: u32 = 4;
