//! The host that Everett runs on.
//!
//! - [`doctor`]: checks cores, memory and tools, and probes `/dev/kvm` with small guests
//! - [`time`]: the one place that reads the host's clock, for progress and figures about speed
//! - [`interrupt`]: handles Ctrl-C; [`signals`]: hands signals to a display that has the whole screen
//!
//! Not here: the choice of an engine based on what the host can do (`everett-session`).

pub mod doctor;
pub mod interrupt;
pub mod signals;
pub mod time;
