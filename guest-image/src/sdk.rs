//! Paths of the SDK's files in guests. `everett-guest-programs` includes the files.

/// Path of the library that workloads load. The SDKs of all languages look for the library there.
pub const LIBRARY_PATH: &str = "/usr/lib/libvoidstar.so";

/// Path of the program that collects a workload's SDK lines and asks for quiet periods without faults. Workloads call
/// the program by this name.
pub const COLLECTOR_PATH: &str = "/usr/bin/ANTITHESIS_STOP_FAULTS";
