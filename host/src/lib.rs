//! The host on which Everett runs: checks of its capabilities, its clock, and signals.
//!
//! - [`doctor`]: checks cores, memory and tools, and probes `/dev/kvm` with small guests
//! - [`time`]: reads the host's clock, to show progress and to measure speed; no other module reads it
//! - [`interrupt`]: handles Ctrl-C; [`signals`]: passes signals to a full-screen display
//!
//! Not here: the choice of an engine based on these checks (`everett-session`).

pub mod doctor;
pub mod interrupt;
pub mod signals;
pub mod time;
