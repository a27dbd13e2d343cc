//! All bounds of a finding file.

/// Maximum length of the manifest, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of members besides the manifest.
pub const MEMBERS_MAX: usize = 100_000;
/// Maximum length of a member's name, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;
/// Maximum number of folders in a member's path.
pub const DEPTH_MAX: usize = 64;
/// Maximum length of a member, in bytes. The layer of a container image has the same bound.
pub const MEMBER_BYTES_MAX: u64 = 16 << 30;
/// Maximum length of all members together, in bytes.
pub const TOTAL_BYTES_MAX: u64 = 64 << 30;
/// Maximum number of unpacked bytes for each packed byte of a file, in addition to [`EXPANSION_FREE_BYTES`].
pub const EXPANSION_MAX: u64 = 1_000;
/// Number of unpacked bytes that even the shortest packed file may have.
pub const EXPANSION_FREE_BYTES: u64 = 64 << 20;
/// Binary logarithm of the longest window of a zstd frame that the reader accepts. The window then has 128 MiB.
pub(crate) const WINDOW_LOG_MAX: u32 = 27;
