//! Functions of the host on which Everett runs.
//!
//! - [`doctor`]: checks cores, memory and tools, and probes `/dev/kvm` with small guests
//! - [`time`]: reads the host's clock, for progress and for figures about speed; no other module reads it
//! - [`interrupt`]: handles Ctrl-C; [`signals`]: passes signals to a full-screen display
//!
//! Not here: the choice of an engine based on these checks (`everett-session`).

pub mod doctor;
pub mod interrupt;
pub mod signals;
pub mod time;
