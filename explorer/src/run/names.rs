//! Names of the files and folders of a run directory.

/// Name of the file with the header.
pub(super) const HEADER: &str = "run.json";
/// Name of the file of records.
pub(super) const BRANCHES: &str = "branches.bin";
/// Name of the folder of evidence.
pub(super) const FINDINGS: &str = "findings";
/// Name of the file that says how the run ended.
pub(super) const END: &str = "end.json";
/// Prefix of the names of temporary files.
pub(super) const TEMPORARY: &str = ".temporary-";
