//! Debugging of recorded timelines.
//!
//! - [`cursor`]: a timeline of a branch that moves to any instant, forwards and backwards

pub mod cursor;
