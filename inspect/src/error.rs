//! Reasons why a guest cannot be read.

use everett_symbols::kernel::btf::BtfError;

/// Reason why a kernel or a guest cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The kernel's file is damaged.
    #[error("the kernel cannot be read")]
    Elf(#[from] everett_elf::Error),
    /// The kernel has no types, because it was built without `CONFIG_DEBUG_INFO_BTF`.
    #[error("the kernel has no types (it was built without CONFIG_DEBUG_INFO_BTF)")]
    NoTypes,
    /// The kernel's types are damaged.
    #[error("the kernel's types cannot be read")]
    Types(#[from] BtfError),
    /// The kernel has no symbol of this name.
    #[error("the kernel has no symbol {0}")]
    Symbol(&'static str),
    /// The kernel has no field of this name.
    #[error("the kernel has no field {0}")]
    Field(&'static str),
    /// The kernel in RAM is not the kernel of the file.
    #[error("the guest does not run the kernel that it was started with, or has not started yet")]
    OtherKernel,
    /// No page is mapped at this linear address.
    #[error("{0:#x} is unmapped")]
    Unmapped(u64),
    /// The kernel says that it maps RAM at this linear address, and its page tables do not.
    #[error("RAM is not mapped at {0:#x}, where the kernel says")]
    DirectMap(u64),
    /// A structure of the kernel could not be read.
    #[error("{what} cannot be read")]
    Structure {
        /// The structure.
        what: &'static str,
        /// The reason.
        #[source]
        source: Box<Error>,
    },
    /// The top of a thread's kernel stack does not hold the registers of a program.
    #[error("its program's registers are not at the top of its kernel stack")]
    NoUserRegisters,
    /// A node of the tree of mappings has an unknown kind.
    #[error("the tree of a process's mappings has a node of the unknown kind {0}")]
    Tree(u64),
    /// A list in the kernel leads back to an entry that was read before.
    #[error("a list of {0} leads back to itself")]
    Loop(&'static str),
    /// A socket has an unknown state.
    #[error("it has the unknown state {0}")]
    SocketState(u64),
    /// A socket has an unknown address family.
    #[error("it has the unknown address family {0}")]
    SocketFamily(u64),
    /// A list in the kernel is longer than Everett reads.
    #[error("there are more than {max} {what}")]
    TooMany {
        /// The entries of the list.
        what: &'static str,
        /// Maximum number of entries.
        max: usize,
    },
}

impl Error {
    /// Returns a function that adds the name of a structure to an error.
    pub(crate) fn reading(what: &'static str) -> impl Fn(Error) -> Error {
        move |source| Error::Structure { what, source: Box::new(source) }
    }
}
