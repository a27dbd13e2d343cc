//! Lines that programs send through the SDK, a library with which they report assertions and other events.
//!
//! - `limits`: bounds
//! - `error`: errors
//! - `line`: the kinds of lines, and their parser
//! - `assertion`: assertions and their kinds
//! - `guidance`: values that steer the search
//!
//! Not here: the transport of lines, and Everett's reactions when a program reports that its setup is complete or asks
//! for a period without faults (`everett-session`).
//!
//! **Invariant.** Lines are untrusted. The parser turns any text into a line or an error, in time and memory linear in
//! the text's length.

mod assertion;
mod error;
mod guidance;
pub mod limits;
mod line;

pub use assertion::{Assertion, AssertionKind, Location};
pub use error::Problem;
pub use guidance::{Guidance, Value};
pub use line::{SdkLine, parse};

#[cfg(test)]
mod tests;
