//! Names of flags and constants (Linux, `include/uapi`, for x86-64).

/// A named value of some bits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag {
    /// The bits.
    mask: u64,
    /// Their value.
    value: u64,
    name: &'static str,
}

/// Returns the names of a number's flags. Bits without a name are a number behind them.
pub(super) fn names(flags: &[Flag], number: u64) -> String {
    let mut rest = number;
    let mut found = Vec::new();
    for flag in flags {
        let is_set = if flag.value == 0 { number & flag.mask == 0 } else { rest & flag.mask == flag.value };
        if is_set {
            found.push(flag.name.to_owned());
            rest &= !flag.mask;
        }
    }
    if rest != 0 || found.is_empty() {
        found.push(if rest == 0 { "0".to_owned() } else { format!("{rest:#x}") });
    }
    found.join("|")
}

/// Declares tables of flags: bits that are set on their own.
macro_rules! bits {
    ($($(#[$doc:meta])* $table:ident { $($name:ident = $value:expr;)* })*) => {
        $($(#[$doc])* pub(super) static $table: &[Flag] =
            &[$(Flag { mask: $value, value: $value, name: stringify!($name) },)*];)*
    };
}

/// Declares tables of constants, which are values of all bits.
macro_rules! constants {
    ($($(#[$doc:meta])* $table:ident { $($name:ident = $value:expr;)* })*) => {
        $($(#[$doc])* pub(super) static $table: &[Flag] =
            &[$(Flag { mask: 0xffff_ffff, value: $value, name: stringify!($name) },)*];)*
    };
}

/// Flags of `open`. The low two bits are one number.
pub(super) static OPEN: &[Flag] = &[
    Flag { mask: 3, value: 0, name: "O_RDONLY" },
    Flag { mask: 3, value: 1, name: "O_WRONLY" },
    Flag { mask: 3, value: 2, name: "O_RDWR" },
    Flag { mask: 0o100, value: 0o100, name: "O_CREAT" },
    Flag { mask: 0o200, value: 0o200, name: "O_EXCL" },
    Flag { mask: 0o400, value: 0o400, name: "O_NOCTTY" },
    Flag { mask: 0o1000, value: 0o1000, name: "O_TRUNC" },
    Flag { mask: 0o2000, value: 0o2000, name: "O_APPEND" },
    Flag { mask: 0o4000, value: 0o4000, name: "O_NONBLOCK" },
    Flag { mask: 0o4_010_000, value: 0o4_010_000, name: "O_SYNC" },
    Flag { mask: 0o10_000, value: 0o10_000, name: "O_DSYNC" },
    Flag { mask: 0o40_000, value: 0o40_000, name: "O_DIRECT" },
    Flag { mask: 0o100_000, value: 0o100_000, name: "O_LARGEFILE" },
    Flag { mask: 0o20_200_000, value: 0o20_200_000, name: "O_TMPFILE" },
    Flag { mask: 0o200_000, value: 0o200_000, name: "O_DIRECTORY" },
    Flag { mask: 0o400_000, value: 0o400_000, name: "O_NOFOLLOW" },
    Flag { mask: 0o1_000_000, value: 0o1_000_000, name: "O_NOATIME" },
    Flag { mask: 0o2_000_000, value: 0o2_000_000, name: "O_CLOEXEC" },
    Flag { mask: 0o10_000_000, value: 0o10_000_000, name: "O_PATH" },
];

/// Type of a socket, with its flags.
pub(super) static SOCKET_TYPE: &[Flag] = &[
    Flag { mask: 0xf, value: 1, name: "SOCK_STREAM" },
    Flag { mask: 0xf, value: 2, name: "SOCK_DGRAM" },
    Flag { mask: 0xf, value: 3, name: "SOCK_RAW" },
    Flag { mask: 0xf, value: 5, name: "SOCK_SEQPACKET" },
    Flag { mask: 0o2_000_000, value: 0o2_000_000, name: "SOCK_CLOEXEC" },
    Flag { mask: 0o4000, value: 0o4000, name: "SOCK_NONBLOCK" },
];

/// Flags of `mmap`. The low four bits are one number.
pub(super) static MAP: &[Flag] = &[
    Flag { mask: 0xf, value: 1, name: "MAP_SHARED" },
    Flag { mask: 0xf, value: 2, name: "MAP_PRIVATE" },
    Flag { mask: 0xf, value: 3, name: "MAP_SHARED_VALIDATE" },
    Flag { mask: 0x10, value: 0x10, name: "MAP_FIXED" },
    Flag { mask: 0x20, value: 0x20, name: "MAP_ANONYMOUS" },
    Flag { mask: 0x100, value: 0x100, name: "MAP_GROWSDOWN" },
    Flag { mask: 0x800, value: 0x800, name: "MAP_DENYWRITE" },
    Flag { mask: 0x2000, value: 0x2000, name: "MAP_LOCKED" },
    Flag { mask: 0x4000, value: 0x4000, name: "MAP_NORESERVE" },
    Flag { mask: 0x8000, value: 0x8000, name: "MAP_POPULATE" },
    Flag { mask: 0x20_000, value: 0x20_000, name: "MAP_STACK" },
    Flag { mask: 0x40_000, value: 0x40_000, name: "MAP_HUGETLB" },
    Flag { mask: 0x10_0000, value: 0x10_0000, name: "MAP_FIXED_NOREPLACE" },
];

/// Protection of memory. No bits mean that it cannot be accessed.
pub(super) static PROTECTION: &[Flag] = &[
    Flag { mask: 0xffff_ffff, value: 0, name: "PROT_NONE" },
    Flag { mask: 1, value: 1, name: "PROT_READ" },
    Flag { mask: 2, value: 2, name: "PROT_WRITE" },
    Flag { mask: 4, value: 4, name: "PROT_EXEC" },
];

/// Operation of `futex`, with its flags.
pub(super) static FUTEX: &[Flag] = &[
    Flag { mask: 0x7f, value: 0, name: "FUTEX_WAIT" },
    Flag { mask: 0x7f, value: 1, name: "FUTEX_WAKE" },
    Flag { mask: 0x7f, value: 3, name: "FUTEX_REQUEUE" },
    Flag { mask: 0x7f, value: 4, name: "FUTEX_CMP_REQUEUE" },
    Flag { mask: 0x7f, value: 5, name: "FUTEX_WAKE_OP" },
    Flag { mask: 0x7f, value: 6, name: "FUTEX_LOCK_PI" },
    Flag { mask: 0x7f, value: 7, name: "FUTEX_UNLOCK_PI" },
    Flag { mask: 0x7f, value: 8, name: "FUTEX_TRYLOCK_PI" },
    Flag { mask: 0x7f, value: 9, name: "FUTEX_WAIT_BITSET" },
    Flag { mask: 0x7f, value: 10, name: "FUTEX_WAKE_BITSET" },
    Flag { mask: 0x7f, value: 11, name: "FUTEX_WAIT_REQUEUE_PI" },
    Flag { mask: 0x7f, value: 12, name: "FUTEX_CMP_REQUEUE_PI" },
    Flag { mask: 0x7f, value: 13, name: "FUTEX_LOCK_PI2" },
    Flag { mask: 0x80, value: 0x80, name: "FUTEX_PRIVATE_FLAG" },
    Flag { mask: 0x100, value: 0x100, name: "FUTEX_CLOCK_REALTIME" },
];

/// Flags of `clone`. The low eight bits are the signal at the end.
pub(super) static CLONE: &[Flag] = &[
    Flag { mask: 0x100, value: 0x100, name: "CLONE_VM" },
    Flag { mask: 0x200, value: 0x200, name: "CLONE_FS" },
    Flag { mask: 0x400, value: 0x400, name: "CLONE_FILES" },
    Flag { mask: 0x800, value: 0x800, name: "CLONE_SIGHAND" },
    Flag { mask: 0x2000, value: 0x2000, name: "CLONE_PTRACE" },
    Flag { mask: 0x4000, value: 0x4000, name: "CLONE_VFORK" },
    Flag { mask: 0x8000, value: 0x8000, name: "CLONE_PARENT" },
    Flag { mask: 0x10_000, value: 0x10_000, name: "CLONE_THREAD" },
    Flag { mask: 0x20_000, value: 0x20_000, name: "CLONE_NEWNS" },
    Flag { mask: 0x40_000, value: 0x40_000, name: "CLONE_SYSVSEM" },
    Flag { mask: 0x80_000, value: 0x80_000, name: "CLONE_SETTLS" },
    Flag { mask: 0x10_0000, value: 0x10_0000, name: "CLONE_PARENT_SETTID" },
    Flag { mask: 0x20_0000, value: 0x20_0000, name: "CLONE_CHILD_CLEARTID" },
    Flag { mask: 0x40_0000, value: 0x40_0000, name: "CLONE_DETACHED" },
    Flag { mask: 0x100_0000, value: 0x100_0000, name: "CLONE_CHILD_SETTID" },
    Flag { mask: 0xff, value: 17, name: "SIGCHLD" },
];

bits! {
    /// Flags of `openat`-like calls (`AT_…`).
    AT {
        AT_SYMLINK_NOFOLLOW = 0x100;
        AT_REMOVEDIR = 0x200;
        AT_SYMLINK_FOLLOW = 0x400;
        AT_NO_AUTOMOUNT = 0x800;
        AT_EMPTY_PATH = 0x1000;
    }
    /// Flags of `unlinkat`.
    UNLINK { AT_REMOVEDIR = 0x200; }
    /// Flags of `faccessat2`.
    FACCESS { AT_SYMLINK_NOFOLLOW = 0x100; AT_EACCESS = 0x200; AT_EMPTY_PATH = 0x1000; }
    /// Flags of `accept4` and `socketpair`.
    SOCKET_FLAGS { SOCK_CLOEXEC = 0o2_000_000; SOCK_NONBLOCK = 0o4000; }
    /// Flags of `pipe2`, `dup3`, `epoll_create1`, `eventfd2` and others.
    DESCRIPTOR { O_CLOEXEC = 0o2_000_000; O_DIRECT = 0o40_000; O_NONBLOCK = 0o4000; EFD_SEMAPHORE = 1; }
    /// Flags of messages on sockets.
    MESSAGE {
        MSG_OOB = 1;
        MSG_PEEK = 2;
        MSG_DONTROUTE = 4;
        MSG_CTRUNC = 8;
        MSG_TRUNC = 0x20;
        MSG_DONTWAIT = 0x40;
        MSG_EOR = 0x80;
        MSG_WAITALL = 0x100;
        MSG_ERRQUEUE = 0x2000;
        MSG_NOSIGNAL = 0x4000;
        MSG_MORE = 0x8000;
        MSG_WAITFORONE = 0x10_000;
        MSG_CMSG_CLOEXEC = 0x4000_0000;
    }
    /// Events of `epoll`.
    EPOLL_EVENTS {
        EPOLLIN = 1;
        EPOLLPRI = 2;
        EPOLLOUT = 4;
        EPOLLERR = 8;
        EPOLLHUP = 0x10;
        EPOLLRDNORM = 0x40;
        EPOLLRDBAND = 0x80;
        EPOLLWRNORM = 0x100;
        EPOLLWRBAND = 0x200;
        EPOLLRDHUP = 0x2000;
        EPOLLEXCLUSIVE = 1 << 28;
        EPOLLWAKEUP = 1 << 29;
        EPOLLONESHOT = 1 << 30;
        EPOLLET = 1 << 31;
    }
    /// Events of `poll`.
    POLL_EVENTS {
        POLLIN = 1;
        POLLPRI = 2;
        POLLOUT = 4;
        POLLERR = 8;
        POLLHUP = 0x10;
        POLLNVAL = 0x20;
        POLLRDNORM = 0x40;
        POLLRDBAND = 0x80;
        POLLWRNORM = 0x100;
        POLLWRBAND = 0x200;
        POLLRDHUP = 0x2000;
    }
    /// Options of `wait4`.
    WAIT { WNOHANG = 1; WUNTRACED = 2; WEXITED = 4; WCONTINUED = 8; WNOWAIT = 0x100_0000; }
    /// Modes of `access`.
    ACCESS { R_OK = 4; W_OK = 2; X_OK = 1; }
    /// Flags of `sync_file_range`.
    SYNC_RANGE { SYNC_FILE_RANGE_WAIT_BEFORE = 1; SYNC_FILE_RANGE_WRITE = 2; SYNC_FILE_RANGE_WAIT_AFTER = 4; }
    /// Flags of `fallocate`.
    ALLOCATE { FALLOC_FL_KEEP_SIZE = 1; FALLOC_FL_PUNCH_HOLE = 2; FALLOC_FL_COLLAPSE_RANGE = 8; FALLOC_FL_ZERO_RANGE = 0x10; }
    /// Flags of `renameat2`.
    RENAME { RENAME_NOREPLACE = 1; RENAME_EXCHANGE = 2; RENAME_WHITEOUT = 4; }
    /// Flags of `msync`.
    MSYNC { MS_ASYNC = 1; MS_INVALIDATE = 2; MS_SYNC = 4; }
    /// Flags of `getrandom`.
    RANDOM { GRND_NONBLOCK = 1; GRND_RANDOM = 2; GRND_INSECURE = 4; }
    /// Flags of `clock_nanosleep` and `timerfd_settime`.
    TIMER { TIMER_ABSTIME = 1; }
    /// Flags of `mremap`.
    REMAP { MREMAP_MAYMOVE = 1; MREMAP_FIXED = 2; MREMAP_DONTUNMAP = 4; }
}

constants! {
    /// Operations of `epoll_ctl`.
    EPOLL { EPOLL_CTL_ADD = 1; EPOLL_CTL_DEL = 2; EPOLL_CTL_MOD = 3; }
    /// Origins of `lseek`.
    WHENCE { SEEK_SET = 0; SEEK_CUR = 1; SEEK_END = 2; SEEK_DATA = 3; SEEK_HOLE = 4; }
    /// Address families of sockets.
    FAMILY {
        AF_UNSPEC = 0;
        AF_UNIX = 1;
        AF_INET = 2;
        AF_INET6 = 10;
        AF_NETLINK = 16;
        AF_PACKET = 17;
        AF_VSOCK = 40;
    }
    /// Levels of options of sockets.
    LEVEL { SOL_IP = 0; SOL_SOCKET = 1; SOL_TCP = 6; SOL_UDP = 17; SOL_IPV6 = 41; }
    /// Ends of a connection for `shutdown`.
    SHUTDOWN { SHUT_RD = 0; SHUT_WR = 1; SHUT_RDWR = 2; }
    /// Clocks.
    CLOCK {
        CLOCK_REALTIME = 0;
        CLOCK_MONOTONIC = 1;
        CLOCK_PROCESS_CPUTIME_ID = 2;
        CLOCK_THREAD_CPUTIME_ID = 3;
        CLOCK_MONOTONIC_RAW = 4;
        CLOCK_REALTIME_COARSE = 5;
        CLOCK_MONOTONIC_COARSE = 6;
        CLOCK_BOOTTIME = 7;
    }
    /// Commands of `fcntl`.
    FCNTL {
        F_DUPFD = 0;
        F_GETFD = 1;
        F_SETFD = 2;
        F_GETFL = 3;
        F_SETFL = 4;
        F_GETLK = 5;
        F_SETLK = 6;
        F_SETLKW = 7;
        F_SETOWN = 8;
        F_GETOWN = 9;
        F_OFD_GETLK = 36;
        F_OFD_SETLK = 37;
        F_OFD_SETLKW = 38;
        F_SETLEASE = 1024;
        F_DUPFD_CLOEXEC = 1030;
        F_SETPIPE_SZ = 1031;
        F_GETPIPE_SZ = 1032;
        F_ADD_SEALS = 1033;
    }
    /// Operations of `rt_sigprocmask`.
    MASK { SIG_BLOCK = 0; SIG_UNBLOCK = 1; SIG_SETMASK = 2; }
    /// Advice of `madvise`.
    ADVICE {
        MADV_NORMAL = 0;
        MADV_RANDOM = 1;
        MADV_SEQUENTIAL = 2;
        MADV_WILLNEED = 3;
        MADV_DONTNEED = 4;
        MADV_FREE = 8;
        MADV_DONTFORK = 10;
        MADV_HUGEPAGE = 14;
        MADV_NOHUGEPAGE = 15;
        MADV_DONTDUMP = 16;
    }
    /// Signals.
    SIGNAL {
        SIGHUP = 1;
        SIGINT = 2;
        SIGQUIT = 3;
        SIGILL = 4;
        SIGTRAP = 5;
        SIGABRT = 6;
        SIGBUS = 7;
        SIGFPE = 8;
        SIGKILL = 9;
        SIGUSR1 = 10;
        SIGSEGV = 11;
        SIGUSR2 = 12;
        SIGPIPE = 13;
        SIGALRM = 14;
        SIGTERM = 15;
        SIGSTKFLT = 16;
        SIGCHLD = 17;
        SIGCONT = 18;
        SIGSTOP = 19;
        SIGTSTP = 20;
        SIGTTIN = 21;
        SIGTTOU = 22;
        SIGURG = 23;
        SIGXCPU = 24;
        SIGXFSZ = 25;
        SIGVTALRM = 26;
        SIGPROF = 27;
        SIGWINCH = 28;
        SIGIO = 29;
        SIGPWR = 30;
        SIGSYS = 31;
    }
    /// Operations of `flock`.
    LOCK { LOCK_SH = 1; LOCK_EX = 2; LOCK_UN = 8; }
    /// Resources of `prlimit64`.
    RESOURCE {
        RLIMIT_CPU = 0;
        RLIMIT_FSIZE = 1;
        RLIMIT_DATA = 2;
        RLIMIT_STACK = 3;
        RLIMIT_CORE = 4;
        RLIMIT_RSS = 5;
        RLIMIT_NPROC = 6;
        RLIMIT_NOFILE = 7;
        RLIMIT_MEMLOCK = 8;
        RLIMIT_AS = 9;
    }
    /// Codes of `arch_prctl`.
    ARCH { ARCH_SET_GS = 0x1001; ARCH_SET_FS = 0x1002; ARCH_GET_FS = 0x1003; ARCH_GET_GS = 0x1004; }
}
