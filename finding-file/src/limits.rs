//! Every bound of a finding file, by name.

/// Maximum length of the manifest, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of members besides the manifest.
pub const MEMBERS_MAX: usize = 100_000;
/// Maximum length of a member's name, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;
/// Maximum number of folders above a member.
pub const DEPTH_MAX: usize = 64;
/// Maximum length of a member, in bytes: that of a layer of a container image.
pub const MEMBER_BYTES_MAX: u64 = 16 << 30;
/// Maximum length of all members together, in bytes.
pub const TOTAL_BYTES_MAX: u64 = 64 << 30;
/// A file unpacks to at most this many times its own length, beyond [`EXPANSION_FREE_BYTES`].
pub const EXPANSION_MAX: u64 = 1_000;
/// Length up to which a file may expand by any factor, in bytes.
pub const EXPANSION_FREE_BYTES: u64 = 64 << 20;
/// Binary logarithm of the longest window of a zstd frame that is read: 128 MiB.
pub(crate) const WINDOW_LOG_MAX: u32 = 27;
