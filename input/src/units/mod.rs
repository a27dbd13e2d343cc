//! Parsing and formatting of durations and sizes.
//!
//! - `read`: parses text to nanoseconds or bytes, for world files and the command line
//! - `show`: formats nanoseconds and bytes as text

mod read;
mod show;

pub use read::{
    Size, UnitError, bare_duration, bare_size, deserialize_duration_ns, parse_duration_ns, parse_size_bytes,
    write_duration_ns,
};
pub use show::{Vtime, show_bytes, show_duration_ns};
