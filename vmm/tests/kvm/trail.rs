//! What a machine did, to be compared with another one's.

/// What was seen of a machine.
pub(crate) struct Trail {
    /// Its stops, digests and registers, line by line.
    pub(crate) lines: String,
    /// Its data at the end.
    pub(crate) memory: Vec<u8>,
    /// How often it changed its engine.
    pub(crate) swapped: u64,
    /// How often a run was made again.
    pub(crate) disturbed: u64,
    /// How many interrupts it took.
    pub(crate) interrupts: u64,
}

/// The first line in which they differ.
pub(crate) fn difference(one: &Trail, other: &Trail) -> Option<String> {
    let mut lines = one.lines.lines().zip(other.lines.lines());
    let line = lines.find(|(a, b)| a != b);
    let line = line.map(|(a, b)| format!("\n{a}\n{b}"));
    let lengths = (one.lines.lines().count(), other.lines.lines().count());
    line.or_else(|| (lengths.0 != lengths.1).then(|| format!("{lengths:?} lines")))
        .or_else(|| (one.memory != other.memory).then(|| "memory".to_owned()))
}
