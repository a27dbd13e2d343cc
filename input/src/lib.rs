//! Input that Everett does not trust: files that users name, the quantities in them, and text that guests wrote.
//!
//! - [`causes`]: errors with their causes, as one text.
//! - [`file`](mod@file): reads a regular file up to a bound. Devices, FIFOs, sockets and folders are refused before
//!   they can block.
//! - [`text`]: the one place that makes foreign text safe to show on a terminal, in JSON and in a report.
//! - [`signal`]: names and numbers of signals.
//! - [`units`]: durations and sizes, read and shown.
//!
//! Not here: the formats of these files. Each is parsed by the module that uses it.

pub mod causes;
pub mod file;
pub mod signal;
pub mod text;
pub mod units;
