//! Events of a timeline. Everett searches these events for violations of properties.

/// Event of a timeline. Events come in the order in which they happen in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'t> {
    /// Vtime of the event, in nanoseconds.
    pub vtime_ns: u64,
    /// Index of the event's node in the world. `None` for events without a node.
    pub node: Option<u16>,
    /// Content of the event.
    pub what: What<'t>,
}

/// Content of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'t> {
    /// A program printed a line.
    Line {
        /// Name of the program's unit (a service, driver, check or test command).
        unit: &'t str,
        /// True if the line is on standard error. All lines of one message, e.g. of a stack trace, are on the same
        /// output.
        is_error: bool,
        /// Text of the line, without its line feed.
        text: &'t str,
    },
    /// The kernel of the node printed a line.
    Console(&'t str),
    /// Everett itself found a violation, e.g. a service that exited or a check that failed.
    Found {
        /// Violated property, usually a name in [`builtin`](super::builtin).
        property: &'t str,
        /// Description in one line.
        text: &'t str,
    },
    /// The node runs slower than normal or not at all. Either the node itself is paused, stalled or slowed down, or
    /// requests to one of its disks are slow or fail.
    StandsStill {
        /// End of the slow period, in nanoseconds of vtime.
        until_ns: u64,
    },
    /// A disk-error fault has begun on the node, or the node's last disk-error fault has ended. During the fault,
    /// requests to a disk fail.
    DiskErrors {
        /// True if a fault has begun. False if the last fault has ended.
        begins: bool,
    },
    /// A fault flipped bits on a disk of the node.
    BitRot,
    /// The node has restarted.
    Restarted,
    /// A program violated an assertion.
    Asserted {
        /// Name of the assertion, which is the violated property. All violations of one assertion have the same
        /// signature, the key by which violations are grouped, so they are one finding.
        name: &'t str,
        /// Description in one line.
        text: &'t str,
    },
    /// A probe hit.
    Reached {
        /// Name of the probe.
        name: &'t str,
    },
    /// An operation history violates a property.
    History {
        /// Violated property, usually a name in [`builtin`](super::builtin).
        property: &'t str,
        /// Cause of the violation, used for the signature instead of the text. Two violations with the same cause are
        /// one finding.
        cause: &'t str,
        /// Description in one line.
        text: &'t str,
    },
}
