//! Functions for untrusted input: files that users name, the quantities in them, and text that guests wrote.
//!
//! - [`causes`]: errors with their causes, as one text.
//! - [`file`](mod@file): reads a regular file up to a bound. Refuses devices, FIFOs, sockets and folders before they
//!   can block. Also finds the folder of a path.
//! - [`text`]: makes foreign text safe to show on a terminal, in JSON and in a report. No other module does this.
//! - [`signal`]: names and numbers of signals.
//! - [`units`]: parsing and formatting of durations and sizes.
//!
//! Not here: the formats of files. The module that uses a file parses it.

pub mod causes;
pub mod file;
pub mod signal;
pub mod text;
pub mod units;
