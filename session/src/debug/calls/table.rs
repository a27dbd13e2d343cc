//! Arguments of each system call.

use super::ARGUMENTS;
use super::flags::{self, *};
use super::kind::Kind::{self, *};

/// Calls with known arguments.
static CALLS: &[(&str, &[Kind])] = &[
    ("read", &[File, Filled, Size]),
    ("write", &[File, Bytes(2), Size]),
    ("pread64", &[File, Filled, Size, Long]),
    ("pwrite64", &[File, Bytes(2), Size, Long]),
    ("readv", &[File, FilledParts(2), Int]),
    ("writev", &[File, Parts(2), Int]),
    ("preadv", &[File, FilledParts(2), Int, Long]),
    ("pwritev", &[File, Parts(2), Int, Long]),
    ("open", &[Path, Flags(OPEN), Mode]),
    ("openat", &[Folder, Path, Flags(OPEN), Mode]),
    ("creat", &[Path, Mode]),
    ("close", &[File]),
    ("lseek", &[File, Long, Flags(WHENCE)]),
    ("fsync", &[File]),
    ("fdatasync", &[File]),
    ("sync_file_range", &[File, Long, Long, Flags(SYNC_RANGE)]),
    ("syncfs", &[File]),
    ("ftruncate", &[File, Long]),
    ("truncate", &[Path, Long]),
    ("fallocate", &[File, Flags(ALLOCATE), Long, Long]),
    ("stat", &[Path, Address]),
    ("lstat", &[Path, Address]),
    ("fstat", &[File, Address]),
    ("newfstatat", &[Folder, Path, Address, Flags(AT)]),
    ("statx", &[Folder, Path, Flags(AT), Address, Address]),
    ("statfs", &[Path, Address]),
    ("fstatfs", &[File, Address]),
    ("access", &[Path, Flags(ACCESS)]),
    ("faccessat", &[Folder, Path, Flags(ACCESS)]),
    ("faccessat2", &[Folder, Path, Flags(ACCESS), Flags(FACCESS)]),
    ("readlink", &[Path, Filled, Size]),
    ("readlinkat", &[Folder, Path, Filled, Size]),
    ("getdents64", &[File, Address, Size]),
    ("getcwd", &[FilledPath, Size]),
    ("chdir", &[Path]),
    ("mkdir", &[Path, Mode]),
    ("mkdirat", &[Folder, Path, Mode]),
    ("rmdir", &[Path]),
    ("unlink", &[Path]),
    ("unlinkat", &[Folder, Path, Flags(UNLINK)]),
    ("rename", &[Path, Path]),
    ("renameat", &[Folder, Path, Folder, Path]),
    ("renameat2", &[Folder, Path, Folder, Path, Flags(RENAME)]),
    ("link", &[Path, Path]),
    ("symlink", &[Path, Path]),
    ("chmod", &[Path, Mode]),
    ("fchmod", &[File, Mode]),
    ("chown", &[Path, Int, Int]),
    ("fchown", &[File, Int, Int]),
    ("umask", &[Mode]),
    ("flock", &[File, Flags(LOCK)]),
    ("dup", &[File]),
    ("dup2", &[File, Int]),
    ("dup3", &[File, Int, Flags(DESCRIPTOR)]),
    ("pipe", &[FilledPair]),
    ("pipe2", &[FilledPair, Flags(DESCRIPTOR)]),
    ("fcntl", &[File, Flags(FCNTL), Address]),
    ("ioctl", &[File, Address, Address]),
    ("sendfile", &[File, File, Address, Size]),
    ("copy_file_range", &[File, Address, File, Address, Size, Address]),
    ("socket", &[Flags(FAMILY), Flags(SOCKET_TYPE), Int]),
    ("socketpair", &[Flags(FAMILY), Flags(SOCKET_TYPE), Int, FilledPair]),
    ("bind", &[File, Socket(2), Size]),
    ("listen", &[File, Int]),
    ("accept", &[File, FilledSocket(2), FilledInt]),
    ("accept4", &[File, FilledSocket(2), FilledInt, Flags(SOCKET_FLAGS)]),
    ("connect", &[File, Socket(2), Size]),
    ("getsockname", &[File, FilledSocket(2), FilledInt]),
    ("getpeername", &[File, FilledSocket(2), FilledInt]),
    ("sendto", &[File, Bytes(2), Size, Flags(MESSAGE), Socket(5), Size]),
    ("recvfrom", &[File, Filled, Size, Flags(MESSAGE), FilledSocket(5), FilledInt]),
    ("sendmsg", &[File, Message, Flags(MESSAGE)]),
    ("recvmsg", &[File, FilledMessage, Flags(MESSAGE)]),
    ("shutdown", &[File, Flags(SHUTDOWN)]),
    ("setsockopt", &[File, Flags(LEVEL), Int, Bytes(4), Size]),
    ("getsockopt", &[File, Flags(LEVEL), Int, Address, FilledInt]),
    ("epoll_create", &[Int]),
    ("epoll_create1", &[Flags(DESCRIPTOR)]),
    ("epoll_ctl", &[File, Flags(EPOLL), File, Event]),
    ("epoll_wait", &[File, FilledEvents, Int, Int]),
    ("epoll_pwait", &[File, FilledEvents, Int, Int, Address, Size]),
    ("epoll_pwait2", &[File, FilledEvents, Int, Time, Address, Size]),
    ("poll", &[Polled(1), Size, Int]),
    ("ppoll", &[Polled(1), Size, Time, Address, Size]),
    ("select", &[Int, Address, Address, Address, Address]),
    ("pselect6", &[Int, Address, Address, Address, Time, Address]),
    ("eventfd2", &[Size, Flags(DESCRIPTOR)]),
    ("timerfd_create", &[Flags(CLOCK), Flags(DESCRIPTOR)]),
    ("timerfd_settime", &[File, Flags(TIMER), Address, Address]),
    ("mmap", &[Address, Size, Flags(PROTECTION), Flags(MAP), File, Address]),
    ("munmap", &[Address, Size]),
    ("mremap", &[Address, Size, Size, Flags(REMAP), Address]),
    ("mprotect", &[Address, Size, Flags(PROTECTION)]),
    ("madvise", &[Address, Size, Flags(ADVICE)]),
    ("msync", &[Address, Size, Flags(MSYNC)]),
    ("brk", &[Address]),
    ("clone", &[Flags(CLONE), Address, Address, Address, Address]),
    ("clone3", &[Address, Size]),
    ("fork", &[]),
    ("vfork", &[]),
    ("execve", &[Path, Paths, Address]),
    ("exit", &[Int]),
    ("exit_group", &[Int]),
    ("wait4", &[Int, FilledInt, Flags(WAIT), Address]),
    ("kill", &[Int, Flags(SIGNAL)]),
    ("tkill", &[Int, Flags(SIGNAL)]),
    ("tgkill", &[Int, Int, Flags(SIGNAL)]),
    ("rt_sigaction", &[Flags(SIGNAL), Address, Address, Size]),
    ("rt_sigprocmask", &[Flags(MASK), Address, Address, Size]),
    ("rt_sigreturn", &[]),
    ("sigaltstack", &[Address, Address]),
    ("pause", &[]),
    ("nanosleep", &[Time, Address]),
    ("clock_nanosleep", &[Flags(CLOCK), Flags(TIMER), Time, Address]),
    ("clock_gettime", &[Flags(CLOCK), FilledTime]),
    ("sched_yield", &[]),
    ("getpid", &[]),
    ("getppid", &[]),
    ("gettid", &[]),
    ("getuid", &[]),
    ("geteuid", &[]),
    ("getgid", &[]),
    ("getegid", &[]),
    ("set_tid_address", &[Address]),
    ("set_robust_list", &[Address, Size]),
    ("arch_prctl", &[Flags(ARCH), Address]),
    ("prlimit64", &[Int, Flags(RESOURCE), Address, Address]),
    ("getrandom", &[Address, Size, Flags(RANDOM)]),
    ("uname", &[Address]),
    ("sync", &[]),
];

/// Calls whose result is a descriptor.
const OPENING: [&str; 17] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "accept",
    "accept4",
    "socket",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "eventfd2",
    "timerfd_create",
    "memfd_create",
    "pidfd_open",
];

/// Returns the kinds of a call's arguments.
pub(super) fn kinds(name: &str, values: &[u64; ARGUMENTS]) -> Vec<Kind> {
    if name == "futex" {
        return futex(values[1]);
    }
    let Some((_, kinds)) = CALLS.iter().find(|(known, _)| *known == name) else {
        return vec![Address; ARGUMENTS];
    };
    let mut kinds = kinds.to_vec();
    // The permissions count only if a file is created.
    let creates = |flags: u64| flags & 0o20_000_100 != 0;
    if name == "open" && !creates(values[1]) || name == "openat" && !creates(values[2]) {
        kinds.pop();
    }
    const ASKING: [u64; 4] = [1, 3, 9, 1032];
    if name == "fcntl" && ASKING.contains(&values[1]) {
        kinds.pop();
    }
    if name == "fcntl" && values[1] == 4 {
        kinds[2] = Flags(OPEN);
    }
    kinds
}

/// Returns the arguments that an operation of `futex` has.
fn futex(operation: u64) -> Vec<Kind> {
    let operation_kind = Flags(flags::FUTEX);
    match operation & 0x7f {
        0 => vec![Address, operation_kind, Int, Time],
        1 => vec![Address, operation_kind, Int],
        3 => vec![Address, operation_kind, Int, Int, Address],
        4 | 12 => vec![Address, operation_kind, Int, Int, Address, Int],
        5 => vec![Address, operation_kind, Int, Int, Address, Address],
        6 | 13 => vec![Address, operation_kind, Int, Time],
        7 | 8 => vec![Address, operation_kind],
        9 => vec![Address, operation_kind, Int, Time, Address, Address],
        10 => vec![Address, operation_kind, Int, Address, Address, Address],
        _ => vec![Address, operation_kind, Int, Address, Address, Int],
    }
}

/// True if the result of a call is a descriptor.
pub(super) fn returns_descriptor(name: &str, values: &[u64; ARGUMENTS]) -> bool {
    OPENING.contains(&name) || name == "fcntl" && [0, 1030].contains(&values[1])
}

/// True if the result of a call is an address.
pub(super) fn returns_address(name: &str) -> bool {
    ["mmap", "mremap", "brk"].contains(&name)
}
