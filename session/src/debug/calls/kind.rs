//! Kinds of arguments of system calls.

use super::flags::Flag;

/// Kind of an argument. Numbers in it are indices of other arguments of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Descriptor.
    File,
    /// Descriptor of a folder, or `AT_FDCWD`.
    Folder,
    /// Number of 32 bits with a sign.
    Int,
    /// Number of 64 bits with a sign.
    Long,
    /// Number without a sign.
    Size,
    /// Address, or a number that is shown as one.
    Address,
    /// Permissions of a file.
    Mode,
    /// Text that ends with a zero byte.
    Path,
    /// List of texts, such as arguments of a program. It ends with a null pointer.
    Paths,
    /// Bytes that the program passes. Argument with their number.
    Bytes(usize),
    /// Bytes that the kernel stores. The result is their number.
    Filled,
    /// Text that the kernel stores, which ends with a zero byte.
    FilledPath,
    /// Parts of a message that the program passes (`struct iovec`). Argument with their number.
    Parts(usize),
    /// Parts of a message that the kernel fills. Argument with their number.
    FilledParts(usize),
    /// Address of a socket that the program passes. Argument with its length.
    Socket(usize),
    /// Address of a socket that the kernel stores. Argument with the address of its length.
    FilledSocket(usize),
    /// Message that the program passes (`struct msghdr`).
    Message,
    /// Message that the kernel fills.
    FilledMessage,
    /// Event that the program passes (`struct epoll_event`).
    Event,
    /// Events that the kernel stores. The result is their number.
    FilledEvents,
    /// Files that are polled (`struct pollfd`). Argument with their number.
    Polled(usize),
    /// Time (`struct timespec`) that the program passes.
    Time,
    /// Time that the kernel stores.
    FilledTime,
    /// Number of 32 bits that the kernel stores.
    FilledInt,
    /// Two descriptors that the kernel stores.
    FilledPair,
    /// Flags.
    Flags(&'static [Flag]),
}
