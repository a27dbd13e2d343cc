//! Path at which throw-away forks have the program for shells and files (`guest-image/inside/`). The crate
//! `everett-guest-programs` includes the program.

/// Path at which Everett puts the program into a fork. The path is on a filesystem that is new at each boot.
pub const INSIDE_PATH: &str = "/run/everett/inside";
