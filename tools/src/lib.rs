//! The `everett` command line.
//!
//! * [`cli`] says what the arguments are; [`commands`] does what they ask, one module a command.
//! * [`identity`] names what a timeline is a function of.
//! * [`session`] runs a world: a machine, its agent, the workload.
//! * [`moments`] stores booted and saved machines.
//! * [`cache`] lists and removes what images and boots left on disk.
//! * [`run_folder`] writes what a run leaves behind; [`bound`] says what clean runs prove.
//! * [`world_file`] reads world files; [`units`] reads durations and sizes.
//! * [`symbols`] names a guest kernel's addresses; [`edges`] names what was executed of it and of programs.
//! * [`doctor`] looks at the host; [`engines`] chooses what executes guests on it; [`ui`] writes text, JSON lines and bars; [`host_time`] is the one place that reads
//!   the host's clock, for progress and figures about speed.
//!
//! Not here: machines (`everett-vmm`), the CPU (`everett-cpu`), images and the guest's agent (`everett-guest-image`).

pub mod bound;
pub mod cache;
pub mod cli;
pub mod commands;
pub mod doctor;
pub mod edges;
pub mod engines;
pub mod explore;
pub mod host_time;
pub mod identity;
pub mod images;
pub mod interrupt;
pub mod moments;
pub mod run_folder;
pub mod session;
pub mod symbols;
pub mod ui;
pub mod units;
pub mod verify;
pub mod worker;
pub mod world_file;
