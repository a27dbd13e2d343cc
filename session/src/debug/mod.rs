//! Debugging of recorded timelines.
//!
//! - [`cursor`]: a timeline of a branch that moves to any instant, forwards and backwards
//! - [`calls`]: system calls as text
//! - [`questions`]: questions about everything that happened in a span of a timeline

pub mod calls;
pub mod cursor;
pub mod questions;
