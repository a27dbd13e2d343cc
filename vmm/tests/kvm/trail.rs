//! Observations of a machine, for comparison with another machine.

/// Observations of a machine.
pub(crate) struct Trail {
    /// Stops, digests and registers, line by line.
    pub(crate) lines: String,
    /// Memory of the guest's data at the end.
    pub(crate) memory: Vec<u8>,
    /// Number of engine changes.
    pub(crate) swapped: u64,
    /// Number of repeated runs.
    pub(crate) disturbed: u64,
    /// Number of interrupts that it took.
    pub(crate) interrupts: u64,
}

/// Returns the first line in which two trails differ.
pub(crate) fn difference(one: &Trail, other: &Trail) -> Option<String> {
    let mut lines = one.lines.lines().zip(other.lines.lines());
    let line = lines.find(|(a, b)| a != b);
    let line = line.map(|(a, b)| format!("\n{a}\n{b}"));
    let lengths = (one.lines.lines().count(), other.lines.lines().count());
    line.or_else(|| (lengths.0 != lengths.1).then(|| format!("{lengths:?} lines")))
        .or_else(|| (one.memory != other.memory).then(|| "memory".to_owned()))
}
