//! Path at which guests find the supervisor, a program that supervises services of compose files (`guest-image/init/`).
//! The crate `everett-guest-programs` includes the program.

/// Path at which Everett puts the supervisor into a guest. The path is on a filesystem that is new at each boot.
pub const INIT_PATH: &str = "/run/everett/init";
