//! The `everett` command line.
//!
//! - [`cli`] says what the arguments are; [`commands`] does what they ask, one module a command
//! - [`cache`] lists and removes what images and boots left on disk
//! - [`ui`] writes text, JSON lines and bars
//!
//! Not here: worlds and how they run (`everett-session`), the host (`everett-host`).

pub mod cache;
pub mod cli;
pub mod commands;
pub mod ui;
