//! The purposes for which random numbers are drawn, such as disk errors. Each purpose has a stream of its own.

use everett_fault::FaultKind;
use serde::{Deserialize, Serialize};

use super::OwnerKind;
use super::encode::Encoder;

/// Declares [`Purpose`] from one list, so that the enum, its identifiers, owners and encoding cannot disagree.
macro_rules! purposes {
    ($($(#[$doc:meta])* $id:literal [$($owner:ident)+] $name:ident $({ $($(#[$about:meta])* $field:ident: $type:ty),+ })?,)*) => {
        /// Purpose of a stream. A changed identifier or parameter changes every trail, so it requires a new machine
        /// version.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Purpose { $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),+ })?,)* }

        impl Purpose {
            /// Returns one purpose of each variant. Each parameter has its first value.
            #[must_use]
            pub fn each() -> Vec<Purpose> {
                vec![$(Purpose::$name $({ $($field: <$type as Parameter>::FIRST),+ })?,)*]
            }

            /// Returns the identifier from which the keys of streams are derived. Identifiers are never reused.
            #[must_use]
            pub const fn id(self) -> u16 {
                match self { $(Purpose::$name $({ $($field: _),+ })? => $id,)* }
            }

            /// Returns the kinds of owners (e.g. a node or the wire) that draw random numbers for this purpose.
            #[must_use]
            pub const fn owners(self) -> &'static [OwnerKind] {
                match self { $(Purpose::$name $({ $($field: _),+ })? => &[$(OwnerKind::$owner),+],)* }
            }

            pub(super) fn encode(self, encoder: &mut Encoder) {
                encoder.part(&self.id().to_le_bytes());
                match self { $(Purpose::$name $({ $($field),+ })? => { $($($field.encode(encoder);)+)? })* }
            }
        }
    };
}

purposes! {
    /// Bytes that the virtio-rng device gives to the guest.
    1 [Node] Entropy,
    /// Seed of the guest kernel's random generator, which the kernel receives at boot in `setup_data`.
    2 [Node] KernelSeed,
    /// VM generation IDs. A new ID tells a guest's kernel that it now runs in a copy of its machine, e.g. after a fork.
    3 [Node] Generation,
    /// Bytes with which the agent seeds the guest's kernel.
    4 [Node] AgentEntropy,
    /// Instructions at which stalls begin, and the lengths of stalls. During a stall, the node's CPU stands still.
    5 [Node] Stalls,
    /// Priorities of threads, and the times at which they change.
    6 [Node] Priorities,
    /// Failures of disk requests.
    7 [Node] DiskErrors {
        /// Index of the disk in the machine's configuration.
        disk: u8
    },
    /// Additional latencies of disk requests.
    8 [Node] DiskLatency {
        /// Index of the disk in the machine's configuration.
        disk: u8
    },
    /// Latency, loss and other effects on frames in one direction of a link.
    9 [Wire] Link {
        /// Port of the sender.
        from: u8,
        /// Port of the receiver.
        to: u8,
        /// Quantity to draw.
        draw: LinkDraw
    },
    /// Seed from which Everett's TCP/IP stack draws sequence numbers and identifiers.
    10 [Endpoint] EndpointStack,
    /// First local port number that Everett's TCP/IP stack uses.
    11 [Endpoint] EndpointPort,
    /// Choice of the writes that survive a power loss.
    12 [Faults] PowerLoss {
        /// Number of the node.
        node: u16,
        /// Index of the disk in the machine's configuration.
        disk: u8
    },
    /// Choice of the requests in flight that take effect when a node is reset.
    13 [Faults] Reset {
        /// Number of the node.
        node: u16,
        /// Index of the disk in the machine's configuration.
        disk: u8
    },
    /// Positions of the bits that flip on a disk (bit rot).
    14 [Faults] Rot {
        /// Number of the node.
        node: u16,
        /// Index of the disk in the machine's configuration.
        disk: u8
    },
    /// Boot seed of a node's machine when the node starts again.
    15 [Faults] Restart {
        /// Number of the node.
        node: u16
    },
    /// Choice of the commands of a test template, and the times at which they run.
    16 [Composer] Commands,
    /// Choice of the fault kinds that occur in a timeline.
    17 [Fates] Swarm,
    /// Choice of the branches after which checks run.
    18 [Fates] Checks,
    /// Random priorities of nodes, which the strategy `pct` turns into latencies of their frames.
    19 [Fates] Priority,
    /// Start times and values of faults of one kind.
    20 [Fates Plan] Fault {
        /// Kind of the faults.
        kind: FaultKind
    },
    /// Choice of the moment that a branch extends.
    21 [Search] Choice {
        /// Number of the branch, in the order in which the explorer chooses branches.
        number: u64
    },
}

/// Declares [`LinkDraw`] from one list, from which tests get all its values.
macro_rules! link_draws {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// Quantity that is drawn for a frame on one direction of a link.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum LinkDraw { $($(#[$doc])* $name = $number,)* }

        #[cfg(test)]
        impl LinkDraw {
            pub(super) const ALL: &[LinkDraw] = &[$(LinkDraw::$name),*];
        }
    };
}

link_draws! {
    /// Latency of the link itself.
    Base = 1,
    /// Additional latency that a fault causes.
    Latency = 2,
    /// Loss of the frame.
    Loss = 3,
    /// Duplication of the frame.
    Duplicate = 4,
    /// Whether the frame is delayed so that later frames overtake it, and for how long.
    Reorder = 5,
    /// Corruption of the frame, and the position of the flipped bit.
    Corrupt = 6,
    /// Latency, reordering and corruption of a duplicate.
    Copy = 7,
}

/// Type of a purpose's parameter.
trait Parameter: Copy {
    /// The value that [`Purpose::each`] uses.
    const FIRST: Self;

    fn encode(self, encoder: &mut Encoder);
}

macro_rules! numbers {
    ($($type:ty)+) => {
        $(impl Parameter for $type {
            const FIRST: $type = 0;

            fn encode(self, encoder: &mut Encoder) {
                encoder.part(&self.to_le_bytes());
            }
        })+
    };
}
numbers!(u8 u16 u64);

impl Parameter for LinkDraw {
    const FIRST: LinkDraw = LinkDraw::Base;

    fn encode(self, encoder: &mut Encoder) {
        encoder.part(&[self as u8]);
    }
}

impl Parameter for FaultKind {
    const FIRST: FaultKind = FaultKind::Latency;

    fn encode(self, encoder: &mut Encoder) {
        encoder.part(self.name().as_bytes());
    }
}
