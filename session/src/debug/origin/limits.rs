//! Bounds on the search for origins.

/// Maximum number of bytes whose origin is looked for at once.
pub const BYTES_MAX: u64 = 4_096;
/// Maximum number of steps of all chains of a search.
pub const STEPS_MAX: usize = 256;
/// Number of instructions before a store that are executed again at first, to find where its value came from.
pub const WINDOW: u64 = 64;
/// Maximum number of bytes of frames that are kept to find the sender of bytes. Later frames are not kept.
pub const FRAMES_BYTES_MAX: usize = 256 << 20;
/// Maximum distance in bytes of a byte in a frame from the start of the frame's TCP header.
pub const SEGMENT_BYTES_MAX: u64 = 9_216;
/// Maximum number of stores to a block of memory that are followed to see whether a device wrote into it, too.
pub const BLOCK_STORES_MAX: u64 = 1 << 20;
/// Maximum number of mappings of a page whose stores are looked for.
pub const ALIASES_MAX: usize = 64;
/// Maximum number of entries of page tables that are read to find the mappings of a page: those of 16 GiB.
pub const ALIAS_PAGES_MAX: usize = 1 << 22;
/// Maximum number of instructions before a store that are executed again. Each keeps the registers of the CPU.
pub const INSTRUCTIONS_MAX: u64 = 1 << 20;
/// Maximum number of computations on a way back to which a search goes on.
pub const DEPTH_MAX: usize = 64;

/// Bounds that a search can have smaller than they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Number of bytes of frames that are kept. See [`FRAMES_BYTES_MAX`].
    pub frames_bytes: usize,
    /// Number of entries of page tables that are read to find the mappings of a page. See [`ALIAS_PAGES_MAX`].
    pub alias_pages: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { frames_bytes: FRAMES_BYTES_MAX, alias_pages: ALIAS_PAGES_MAX }
    }
}
