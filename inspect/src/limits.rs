//! Bounds on what is read from a guest.

/// Maximum number of processes of a guest.
pub const PROCESSES_MAX: usize = 32_768;
/// Maximum number of threads of all processes of a guest.
pub const THREADS_MAX: usize = 131_072;
/// Maximum number of mappings of a process. The kernel's own limit is 65,530 by default.
pub const MAPPINGS_MAX: usize = 131_072;
/// Maximum depth of the tree in which the kernel keeps a process's mappings. A tree of this depth has room for more
/// mappings than [`MAPPINGS_MAX`].
pub const TREE_DEPTH_MAX: usize = 16;
/// Maximum number of nodes in this tree. Each node of a tree that the kernel builds leads to a mapping.
pub const TREE_NODES_MAX: usize = MAPPINGS_MAX;
/// Maximum length of a command line, in bytes. Longer ones are cut off.
pub const COMMAND_BYTES_MAX: usize = 4_096;
/// Maximum number of arguments of a command line that are read. Others are left out.
pub const ARGUMENTS_MAX: usize = 512;
/// Maximum length of a path, in bytes: the kernel's `PATH_MAX`.
pub const PATH_BYTES_MAX: usize = 4_096;
/// Maximum length of a file's name, in bytes: the kernel's `NAME_MAX`.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum number of folders and mounts on the way from a file to the root.
pub const PATH_STEPS_MAX: usize = 4_096;
/// Maximum number of libraries of a process that are read.
pub const LIBRARIES_MAX: usize = 4_096;
/// Maximum number of entries of page tables that are read for the memory of a process: those of 64 GiB.
pub const PAGE_ENTRIES_MAX: usize = 1 << 24;
/// Maximum number of parts of memory in a core file. More do not fit into the header's field of 16 bits.
pub const CORE_PARTS_MAX: usize = 65_000;
/// Maximum length of the memory in a core file, in bytes.
pub const CORE_BYTES_MAX: u64 = 64 << 30;
/// Maximum number of folders and mounts on the ways from all mapped files of a process to the root.
pub const PATH_STEPS_OF_PROCESS_MAX: usize = 1 << 20;
/// Maximum number of loadable modules of a kernel.
pub const MODULES_MAX: usize = 4_096;
/// Maximum length of the names of a kernel's loadable modules, in bytes: the kernel's `MODULE_NAME_LEN`, rounded up.
pub const MODULE_NAME_BYTES_MAX: usize = 64;
/// Maximum number of areas of memory of a loadable module. Linux has at most 7.
pub const MODULE_AREAS_MAX: usize = 16;
/// Maximum length of an area of memory of a loadable module, in bytes.
pub const MODULE_AREA_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of rows of unwind tables of all loadable modules. A module that exceeds it has no tables here.
pub const MODULE_ROWS_MAX: usize = 4 << 20;
/// Maximum number of symbols of all loadable modules. A module that exceeds it has no names here.
pub const MODULE_SYMBOLS_MAX: usize = 1 << 20;
/// Maximum length of the names of all loadable modules' symbols, in bytes. A module that exceeds it has no names here.
pub const MODULE_SYMBOL_BYTES_MAX: usize = 64 << 20;
/// Maximum length of the name of a loadable module's symbol, in bytes: the kernel's `KSYM_NAME_LEN`.
pub const SYMBOL_NAME_BYTES_MAX: usize = 512;
/// Maximum length of the text `VMCOREINFO` of a kernel, in bytes. Linux has a page.
pub const VMCOREINFO_BYTES_MAX: usize = 64 << 10;
/// Maximum length of the RAM in a core file of the kernel, in bytes.
pub const VMCORE_BYTES_MAX: u64 = 64 << 30;
/// Maximum number of open files of a process. The kernel's own limit (`fs.nr_open`) is 1,048,576 by default.
pub const FILES_MAX: usize = 1 << 20;
/// Maximum number of open files of all processes of a guest.
pub const FILES_OF_GUEST_MAX: usize = 1 << 21;
/// Maximum number of files that an epoll instance watches, and of nodes in the tree in which the kernel keeps them.
pub const WATCHES_MAX: usize = 65_536;
/// Maximum number of buffers of a pipe.
pub const PIPE_BUFFERS_MAX: u64 = 65_536;
/// Maximum number of network namespaces of a guest.
pub const NAMESPACES_MAX: usize = 4_096;
/// Maximum number of buckets of one of the kernel's hash tables of sockets. The kernel's largest table has 524,288 by
/// default.
pub const BUCKETS_MAX: u64 = 1 << 20;
/// Maximum number of buckets of all hash tables of sockets. Each network namespace can have tables of its own.
pub const BUCKETS_OF_GUEST_MAX: u64 = 1 << 22;
/// Maximum number of sockets of a guest.
pub const SOCKETS_MAX: usize = 1 << 18;
/// Maximum number of packets in the receive queues of all Unix sockets of a guest.
pub const PACKETS_MAX: usize = 1 << 20;
/// Maximum length of the name of a Unix socket, in bytes, with the two bytes in front of it.
pub const UNIX_NAME_BYTES_MAX: u64 = 110;
/// Maximum number of buffers of a system call: the kernel's `UIO_MAXIOV`.
pub const BUFFERS_MAX: u64 = 1_024;
