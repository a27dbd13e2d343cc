//! The `everett` command line.
//!
//! Each module uses only modules above it:
//! - [`features`]: optional parts of the program
//! - [`cache`]: lists and removes cached files
//! - [`ui`]: writes text, JSON lines and progress bars
//! - [`serve`]: shows a report in a browser
//! - [`commands`]: commands and their arguments
//!
//! Not here: worlds and their execution (`everett-session`), the host (`everett-host`).

mod cache;
pub mod commands;
mod features;
pub mod serve;
mod ui;
