//! Paths of the SDK's files in guests. `everett-guest-programs` includes the files.

/// Path of the library that workloads load. The SDKs of all languages look for the library there.
pub const LIBRARY_PATH: &str = "/usr/lib/libvoidstar.so";

/// Path of the program that collects the lines that a workload writes through the SDK. The program can also ask
/// Everett for a period without faults. Workloads find this path in the variable `ANTITHESIS_STOP_FAULTS`.
pub const COLLECTOR_PATH: &str = "/usr/bin/ANTITHESIS_STOP_FAULTS";
