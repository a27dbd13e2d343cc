//! The owners of streams of random numbers, such as a node or the wire.

use super::encode::Encoder;

/// Declares [`OwnerKind`] from one list, so that the enum, its identifiers and `ALL` cannot disagree.
macro_rules! owners {
    ($($(#[$doc:meta])* $id:literal $kind:ident,)*) => {
        /// Kind of an owner. A changed identifier changes every trail, so it requires a new machine version.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum OwnerKind { $($(#[$doc])* $kind,)* }

        impl OwnerKind {
            /// All kinds.
            pub const ALL: &'static [OwnerKind] = &[$(OwnerKind::$kind,)*];

            /// Returns the identifier from which the keys of streams are derived. Identifiers are never reused.
            #[must_use]
            pub const fn id(self) -> u16 {
                match self { $(OwnerKind::$kind => $id,)* }
            }
        }
    };
}

owners! {
    /// The machine of a node.
    1 Node,
    /// The wire of a world.
    2 Wire,
    /// Everett's own TCP/IP stack on the wire.
    3 Endpoint,
    /// The part of Everett that executes fault plans.
    4 Faults,
    /// The part of Everett that starts the commands of a test template. Commands are programs in guests, and each
    /// command's name says when it may run.
    5 Composer,
    /// The part of the explorer that decides, by a branch's path, which fault plan the branch has, and whether checks
    /// run after the branch.
    6 Fates,
    /// The command `everett plan`.
    7 Plan,
    /// The part of the explorer that chooses the next branch.
    8 Search,
}

/// An owner of streams. Two owners never have the same key, whatever the names of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'n> {
    /// The machine of the node with this name.
    Node(&'n str),
    /// The wire of a world.
    Wire,
    /// Everett's own TCP/IP stack on the wire.
    Endpoint,
    /// The part of Everett that executes fault plans.
    Faults,
    /// The part of Everett that starts the commands of a test template. Commands are programs in guests, and each
    /// command's name says when it may run.
    Composer,
    /// The part of the explorer that decides, by a branch's path, which fault plan the branch has, and whether checks
    /// run after the branch.
    Fates,
    /// The command `everett plan`.
    Plan,
    /// The part of the explorer that chooses the next branch.
    Search,
}

impl Owner<'_> {
    #[must_use]
    /// Returns the owner's kind.
    pub const fn kind(self) -> OwnerKind {
        match self {
            Owner::Node(_) => OwnerKind::Node,
            Owner::Wire => OwnerKind::Wire,
            Owner::Endpoint => OwnerKind::Endpoint,
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
