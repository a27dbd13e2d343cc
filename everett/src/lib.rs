//! The `everett` command line.
//!
//! - [`cache`]: lists and removes cached files
//! - [`commands`]: commands and their arguments
//! - [`features`]: optional parts of the program
//! - [`serve`]: shows a report in a browser
//! - [`ui`]: writes text, JSON lines and progress bars
//!
//! Not here: worlds and their execution (`everett-session`), the host (`everett-host`).

pub mod cache;
pub mod commands;
pub mod features;
pub mod serve;
pub mod ui;
