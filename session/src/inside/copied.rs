//! Result of a copy of files.

/// Result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Path of the copy on the host.
    pub to: String,
    /// Number of files, without further names of the same file.
    pub files: u64,
    /// Number of folders.
    pub folders: u64,
    /// Number of symbolic links, and of further names of files.
    pub links: u64,
    /// Length of all files, in bytes.
    pub bytes: u64,
    /// Files that were not copied, each with the reason.
    pub left_out: Vec<String>,
}
