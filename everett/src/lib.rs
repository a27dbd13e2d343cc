//! The `everett` command line.
//!
//! Each module uses only modules above it:
//! - [`features`]: the optional parts of the program that this build has
//! - [`cache`]: files that images and boots left on disk: a list, and their removal
//! - [`ui`]: text, JSON lines and progress bars
//! - [`serve`]: a report in a browser
//! - [`commands`]: the commands, one module each, with their arguments
//!
//! Not here: worlds and their execution (`everett-session`), the host (`everett-host`).

pub mod cache;
pub mod commands;
pub mod features;
pub mod serve;
pub mod ui;
