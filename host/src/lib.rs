//! The host that Everett runs on.
//!
//! - [`doctor`]: its cores, memory and tools, and what small guests show about its `/dev/kvm`
//! - [`time`]: the one place that reads the host's clock, for progress and figures about speed
//! - [`interrupt`]: Ctrl-C
//!
//! Not here: which engine follows from what the host can do (`everett-session`).

pub mod doctor;
pub mod interrupt;
pub mod time;
