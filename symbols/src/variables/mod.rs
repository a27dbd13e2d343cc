//! Variables of a program, their places and types: debug information (DWARF 2 to 5).
//!
//! The library `gimli` reads the format. What decides how far to read is ours, because a hostile file must not decide how
//! much time or memory it takes.
//!
//! - `entry`: entries, and references between them
//! - [`shape`](Shape): what the bytes of a type are
//! - `search`: the variable with a name at an address
//! - `place`: the place of a variable

mod entry;
mod place;
mod search;
mod shape;

pub use entry::TypeAt;
pub use place::{Bytes, Frame, Missing};
pub use search::Variable;
pub use shape::{Member, Shape};
