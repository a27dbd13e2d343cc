//! Path of the program that supervises services of compose files in guests (`init/`). The program is in
//! `everett-guest-programs`.

/// Path at which Everett puts the supervisor into guests: in a filesystem that is new at each boot.
pub const INIT_PATH: &str = "/run/everett/init";
