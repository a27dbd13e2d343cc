//! The purposes of streams.

use everett_fault::FaultKind;
use serde::{Deserialize, Serialize};

use super::OwnerKind;
use super::encode::Encoder;

/// Declares [`Purpose`] from one list, so that the enum, its identifiers, owners and encoding cannot differ.
macro_rules! purposes {
    ($($(#[$doc:meta])* $id:literal [$($owner:ident)+] $name:ident $({ $($(#[$about:meta])* $field:ident: $type:ty),+ })?,)*) => {
        /// What a stream is for. A purpose is part of the machine version: another identifier or parameter moves every trail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Purpose { $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),+ })?,)* }

        impl Purpose {
            /// One purpose of each variant, with the first value of each parameter.
            #[must_use]
            pub fn each() -> Vec<Purpose> {
                vec![$(Purpose::$name $({ $($field: <$type as Parameter>::FIRST),+ })?,)*]
            }

            /// The variant's identifier in the derivation of keys. An identifier is never used again.
            #[must_use]
            pub const fn id(self) -> u16 {
                match self { $(Purpose::$name $({ $($field: _),+ })? => $id,)* }
            }

            /// The kinds of owners that draw for the purpose.
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
    /// The seed that the kernel gets at boot, as `setup_data`.
    2 [Node] BootSeed,
    /// VM generation IDs.
    3 [Node] Generation,
    /// Bytes with which the agent seeds the guest's kernel.
    4 [Node] AgentEntropy,
    /// Instructions at which the CPU is stolen, and for how long.
    5 [Node] Stalls,
    /// Priorities of threads, and when they change.
    6 [Node] Priorities,
    /// Requests to a disk that fail.
    7 [Node] DiskErrors {
        /// The disk's place in the machine's configuration.
        disk: u8
    },
    /// How much longer requests to a disk take.
    8 [Node] DiskLatency {
        /// The disk's place in the machine's configuration.
        disk: u8
    },
    /// What becomes of frames on one direction of a link.
    9 [Wire] Link {
        /// The port of the sender.
        from: u8,
        /// The port of the receiver.
        to: u8,
        /// What is drawn.
        draw: LinkDraw
    },
    /// The seed of the host's TCP/IP stack: its sequence numbers and identifiers.
    10 [Host] HostStack,
    /// The host's first local port.
    11 [Host] HostPort,
    /// Which writes survive a loss of power.
    12 [Faults] PowerLoss {
        /// The node's number.
        node: u16,
        /// The disk's place in the machine's configuration.
        disk: u8
    },
    /// Which requests in flight land when a node is reset.
    13 [Faults] Reset {
        /// The node's number.
        node: u16,
        /// The disk's place in the machine's configuration.
        disk: u8
    },
    /// Which bits of a disk flip.
    14 [Faults] Rot {
        /// The node's number.
        node: u16,
        /// The disk's place in the machine's configuration.
        disk: u8
    },
    /// The seed of a node's machine when it starts again.
    15 [Faults] Restart {
        /// The node's number.
        node: u16
    },
    /// Which test commands run, and when.
    16 [Composer] Commands,
    /// Which kinds of faults a timeline has.
    17 [Fates] Swarm,
    /// Which branches are followed by checks.
    18 [Fates] Checks,
    /// Random priorities of nodes.
    19 [Fates] Priority,
    /// When faults of a kind begin, and their values.
    20 [Fates Plan] Fault {
        /// The kind.
        kind: FaultKind
    },
    /// From where a branch goes on.
    21 [Search] Choice {
        /// The branch's number, in the order of choices.
        number: u64
    },
}

/// What is drawn for a frame on one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum LinkDraw {
    /// The link's own latency.
    Base = 1,
    /// Extra latency.
    Latency = 2,
    /// Whether the frame is lost.
    Loss = 3,
    /// Whether there is a copy of it.
    Duplicate = 4,
    /// Whether the frame is held back, and for how long.
    Reorder = 5,
    /// Whether a bit flips, and which.
    Corrupt = 6,
    /// What becomes of copies.
    Copy = 7,
}

/// A parameter of a purpose.
trait Parameter: Copy {
    /// The value that [`Purpose::each`] has.
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
