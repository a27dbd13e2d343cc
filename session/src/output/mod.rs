//! Output of a run: events as lines, text styles, progress reports and the run folder.
//!
//! - [`show`]: formats an event as a line; [`style`]: its colours
//! - [`progress`]: the interface through which long work reports to its caller
//! - [`run_folder`]: the output folder of `everett run -o DIR`
//!
//! Not here: terminals (`everett`), reports of explorations (`everett-report`).

pub mod progress;
pub mod run_folder;
pub mod show;
pub mod style;
