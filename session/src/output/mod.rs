//! Output of a run: events as lines, text styles, progress reports and the run folder.
//!
//! - [`show`]: events as lines of text
//! - [`style`]: text styles
//! - [`progress`]: progress reports to the caller
//! - [`replace`]: replaces a file so that a power loss leaves the old or the new content
//! - [`run_folder`]: output folder of `everett run -o DIR`
//! - [`wire_line`]: fates of frames as JSON
//!
//! Not here: terminals (`everett`), reports of explorations (`everett-report`).

pub mod progress;
pub mod replace;
pub mod run_folder;
pub mod show;
pub mod style;
pub mod wire_line;
