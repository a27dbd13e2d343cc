//! The owners of streams.

use super::encode::Encoder;

/// Declares [`OwnerKind`] from one list, so that the enum, its identifiers and `ALL` cannot differ.
macro_rules! owners {
    ($($(#[$doc:meta])* $id:literal $kind:ident,)*) => {
        /// The kinds of owners. A kind is part of the machine version: another identifier moves every trail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum OwnerKind { $($(#[$doc])* $kind,)* }

        impl OwnerKind {
            /// All kinds.
            pub const ALL: &'static [OwnerKind] = &[$(OwnerKind::$kind,)*];

            /// The kind's identifier in the derivation of keys. An identifier is never used again.
            #[must_use]
            pub const fn id(self) -> u16 {
                match self { $(OwnerKind::$kind => $id,)* }
            }
        }
    };
}

owners! {
    /// A node's machine.
    1 Node,
    /// The wire of a world.
    2 Wire,
    /// The host's own endpoint on the wire.
    3 Host,
    /// The part of a session that carries out fault plans.
    4 Faults,
    /// The part of a session that starts the commands of a test template.
    5 Composer,
    /// The explorer's function from paths to fault plans and checks.
    6 Fates,
    /// The command `everett plan`.
    7 Plan,
    /// The explorer's choices of the next branch.
    8 Search,
}

/// An owner of streams. Two owners never have the same key, whatever nodes are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'n> {
    /// The machine of the node of this name.
    Node(&'n str),
    /// The wire.
    Wire,
    /// The host's endpoint.
    Host,
    /// Fault plans.
    Faults,
    /// Test templates.
    Composer,
    /// Fates of paths.
    Fates,
    /// `everett plan`.
    Plan,
    /// Choices of branches.
    Search,
}

impl Owner<'_> {
    /// The owner's kind.
    #[must_use]
    pub const fn kind(self) -> OwnerKind {
        match self {
            Owner::Node(_) => OwnerKind::Node,
            Owner::Wire => OwnerKind::Wire,
            Owner::Host => OwnerKind::Host,
            Owner::Faults => OwnerKind::Faults,
            Owner::Composer => OwnerKind::Composer,
            Owner::Fates => OwnerKind::Fates,
            Owner::Plan => OwnerKind::Plan,
            Owner::Search => OwnerKind::Search,
        }
    }

    pub(super) fn encode(self, encoder: &mut Encoder) {
        encoder.part(&self.kind().id().to_le_bytes());
        if let Owner::Node(name) = self {
            encoder.part(name.as_bytes());
        }
    }
}
