//! Kinds of memory accesses.

/// Kind of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Load.
    Read,
    /// Store, or the load half of a read-modify-write.
    Write,
    /// Instruction fetch.
    Exec,
}
