//! Names of the files and folders of a run directory.

/// Name of the file with the header, i.e. with the exploration's identity and parameters.
pub(super) const HEADER: &str = "run.json";
/// Name of the file with one record (result) for each branch.
pub(super) const BRANCHES: &str = "branches.bin";
/// Name of the folder with the evidence of each finding.
pub(super) const FINDINGS: &str = "findings";
/// Name of the file that says how the run ended.
pub(super) const END: &str = "end.json";
/// Prefix of the names of temporary files.
pub(super) const TEMPORARY: &str = ".temporary-";
