//! What is judged.

/// Something that happened on a timeline. Events come in the order of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'t> {
    /// When, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// On which node, by its index in the world.
    pub node: Option<u16>,
    /// What.
    pub what: What<'t>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'t> {
    /// A program printed a line.
    Line {
        /// Its name.
        unit: &'t str,
        /// The line, without its end.
        text: &'t str,
    },
    /// The node's kernel printed a line.
    Console(&'t str),
    /// The caller found something wrong.
    Found {
        /// As what, of [`builtin`](super::builtin).
        property: &'t str,
        /// What, in one line.
        text: &'t str,
    },
    /// The node stands still: it is paused, stalled, slowed down or cut off.
    StandsStill {
        /// Until when, in nanoseconds of vtime.
        until_ns: u64,
    },
    /// Requests to a disk of the node begin to fail; or none does any more.
    DiskErrors {
        /// True if they begin to.
        begins: bool,
    },
    /// Bits on a disk of the node were flipped.
    BitRot,
    /// The node has started again.
    Restarted,
    /// A history was found wrong.
    History {
        /// As what, of [`builtin`](super::builtin).
        property: &'t str,
        /// Its cause, which stands for the text in the signature: two histories with one cause are one finding.
        cause: &'t str,
        /// What, in one line.
        text: &'t str,
    },
}
