//! Purposes of streams.

use everett_fault::FaultKind;
use serde::{Deserialize, Serialize};

use super::OwnerKind;
use super::encode::Encoder;

/// Declares [`Purpose`] from one list, so that the enum, its identifiers, owners and encoding cannot differ.
macro_rules! purposes {
    ($($(#[$doc:meta])* $id:literal [$($owner:ident)+] $name:ident $({ $($(#[$about:meta])* $field:ident: $type:ty),+ })?,)*) => {
        /// Purpose of a stream. Purposes are part of the machine version: a changed identifier or parameter changes
        /// every trail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Purpose { $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),+ })?,)* }

        impl Purpose {
            /// Returns one purpose of each variant, with the first value of each parameter.
            #[must_use]
            pub fn each() -> Vec<Purpose> {
                vec![$(Purpose::$name $({ $($field: <$type as Parameter>::FIRST),+ })?,)*]
            }

            /// Returns the variant's identifier in the derivation of keys. Identifiers are never reused.
            #[must_use]
            pub const fn id(self) -> u16 {
                match self { $(Purpose::$name $({ $($field: _),+ })? => $id,)* }
            }

            /// Returns the kinds of owners that draw for the purpose.
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
    /// Bytes of virtio-rng.
    1 [Node] Entropy,
    /// Seed of the guest kernel's random generator, which the kernel receives at boot as `setup_data`.
    2 [Node] KernelSeed,
    /// VM generation IDs.
    3 [Node] Generation,
    /// Bytes with which the agent seeds the guest's kernel.
    4 [Node] AgentEntropy,
    /// Instructions at which a stall begins, and the lengths of stalls.
    5 [Node] Stalls,
    /// Priorities of threads, and the times at which they change.
    6 [Node] Priorities,
    /// Failures of requests to a disk.
    7 [Node] DiskErrors {
        /// Index of the disk in the machine's configuration.
        disk: u8
    },
    /// Additional latencies of requests to a disk.
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
        /// The quantity that is drawn.
        draw: LinkDraw
    },
    /// Seed from which Everett's TCP/IP stack draws sequence numbers and identifiers.
    10 [Endpoint] EndpointStack,
    /// First local port of Everett's endpoint.
    11 [Endpoint] EndpointPort,
    /// Choice of the writes that survive a loss of power.
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
    /// Positions of the bits of a disk that flip.
    14 [Faults] Rot {
        /// Number of the node.
        node: u16,
        /// Index of the disk in the machine's configuration.
        disk: u8
    },
    /// Boot seed of a node's machine when it starts again.
    15 [Faults] Restart {
        /// Number of the node.
        node: u16
    },
    /// Choice of test commands, and the times at which they run.
    16 [Composer] Commands,
    /// Choice of the fault kinds that a timeline has.
    17 [Fates] Swarm,
    /// Choice of the branches that are followed by checks.
    18 [Fates] Checks,
    /// Random priorities of nodes.
    19 [Fates] Priority,
    /// Start times and values of faults of one kind.
    20 [Fates Plan] Fault {
        /// Kind of the faults.
        kind: FaultKind
    },
    /// Choice of the moment that a branch extends.
    21 [Search] Choice {
        /// Number of the branch, in the order of choices.
        number: u64
    },
}

/// Quantity that is drawn for a frame in one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum LinkDraw {
    /// The link's own latency.
    Base = 1,
    /// Extra latency.
    Latency = 2,
    /// Loss of the frame.
    Loss = 3,
    /// Duplication of the frame.
    Duplicate = 4,
    /// Whether the frame is held back, and for how long.
    Reorder = 5,
    /// Corruption of the frame, and the position of the flipped bit.
    Corrupt = 6,
    /// Latency, reordering and corruption of a duplicate.
    Copy = 7,
}

/// A parameter of a purpose.
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
