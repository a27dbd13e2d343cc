//! Paths of the SDK's files in guests. The files are in `everett-guest-programs`.

/// Path of the library that programs load. The SDKs look for it there.
pub const LIBRARY_PATH: &str = "/usr/lib/libvoidstar.so";

/// Path of the program that collects lines and asks for quiet periods. Workloads call it by this name.
pub const COLLECTOR_PATH: &str = "/usr/bin/ANTITHESIS_STOP_FAULTS";
