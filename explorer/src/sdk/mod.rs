//! Lines that programs send through the SDK.
//!
//! - `limits`: bounds; `problem`: errors
//! - `line`: the kinds of lines, and their parser
//! - `assertion`: assertions and their kinds; `guidance`: values that lead the search
//!
//! Not here: the transport of lines, and the effect of a complete setup and of quiet periods (`everett-session`).
//!
//! **Invariant.** Lines are untrusted. Any text is parsed to a line or to an error, in time and memory that are linear
//! in its length.

mod assertion;
mod error;
mod guidance;
pub mod limits;
mod line;

pub use assertion::{Assertion, AssertionKind, Location};
pub use error::Problem;
pub use guidance::{Guidance, Value};
pub use line::{Line, parse};

#[cfg(test)]
mod tests;
