//! The program that supervises services of compose files in guests (`init/`).

/// The program, a static ELF program.
pub const INIT: &[u8] = include_bytes!(env!("EVERETT_INIT"));

/// Path at which Everett puts it into guests: in a filesystem that is new at each boot.
pub const INIT_PATH: &str = "/run/everett/init";
