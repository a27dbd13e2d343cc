//! Events that are judged.

/// Event of a timeline. Events come in the order of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'t> {
    /// Virtual time of the event, in nanoseconds.
    pub vtime_ns: u64,
    /// Node of the event, by its index in the world.
    pub node: Option<u16>,
    /// Content of the event.
    pub what: What<'t>,
}

/// Content of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'t> {
    /// A program printed a line.
    Line {
        /// Name of the program.
        unit: &'t str,
        /// True if it is on standard error. Only the lines of a record of several lines depend on it.
        is_error: bool,
        /// Line without its end.
        text: &'t str,
    },
    /// The node's kernel printed a line.
    Console(&'t str),
    /// The caller found a problem.
    Found {
        /// Property that is violated, usually one of [`builtin`](super::builtin).
        property: &'t str,
        /// Description in one line.
        text: &'t str,
    },
    /// The node is slower than normal, or stands still: the node itself is paused, stalled or slowed down, or requests
    /// to one of its disks are slow or fail.
    StandsStill {
        /// End of that state, in nanoseconds of vtime.
        until_ns: u64,
    },
    /// Requests to a disk of the node begin to fail, or no disk of the node has failing requests any more.
    DiskErrors {
        /// True if requests begin to fail.
        begins: bool,
    },
    /// Bits on a disk of the node were flipped.
    BitRot,
    /// The node has restarted.
    Restarted,
    /// A program violates an assertion.
    Asserted {
        /// Name of the assertion. It is the property, and the signature: an assertion is one finding.
        name: &'t str,
        /// Description in one line.
        text: &'t str,
    },
    /// A history violates a property.
    History {
        /// Property that is violated, usually one of [`builtin`](super::builtin).
        property: &'t str,
        /// Cause of the violation. It replaces the text in the signature: two histories with the same cause are one
        /// finding.
        cause: &'t str,
        /// Description in one line.
        text: &'t str,
    },
}
