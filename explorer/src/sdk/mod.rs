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
mod guidance;
pub mod limits;
mod line;
mod problem;

pub use assertion::{Assertion, AssertionKind, Location};
pub use guidance::{Guidance, Value};
pub use line::{SdkLine, parse};
pub use problem::Problem;

#[cfg(test)]
mod tests;
