//! Debugging of recorded timelines.
//!
//! - [`cursor`]: a timeline of a branch that moves to any instant, forwards and backwards
//! - [`calls`]: system calls as text
//! - [`questions`]: questions about everything that happened in a span of a timeline
//! - [`origin`]: who wrote bytes, and where that program had them from
//! - [`probes`]: values that recorded branches print after the fact
//! - [`debugger`]: a session over the whole world: moves by what happened, breakpoints, comparison

pub mod calls;
pub mod cursor;
pub mod debugger;
pub mod origin;
pub mod probes;
pub mod questions;
