//! The `everett` command line.
//!
//! - [`commands`] has the commands, one module each, with their arguments
//! - [`cache`] lists and removes files that images and boots left on disk
//! - [`features`] lists the optional parts of the program that this build has
//! - [`serve`] shows a report in a browser
//! - [`ui`] writes text, JSON lines and progress bars
//!
//! Not here: worlds and their execution (`everett-session`), the host (`everett-host`).

pub mod cache;
pub mod commands;
pub mod features;
pub mod serve;
pub mod ui;
