//! Stored moments: worlds at a stop, with their sessions, in files.
//!
//! - `stored`: one of them: what is in its file, written and read
//! - `told`: what is told on the way to one
//! - `shelf`: where the moments of one world lie, under a key of everything that a boot depends on
//! - `restart`: where a node starts again; `machine_parts`: a machine in the file of either
//! - `booted`: the restart points and *ready* of a world: from the shelf, or by booting
//!
//! Not here: what a moment of a machine is (`everett_vmm`), how pages are kept and files look (`everett-snapshot`).
//!
//! **Invariants.** A stored boot is a cache: one that is missing, damaged or of another version is made anew, never used, and
//! one that cannot be stored is used all the same. A saved moment that is damaged is refused. Files are never written in place.

mod booted;
mod machine_parts;
mod restart;
mod shelf;
mod stored;
mod told;

pub use booted::{Booted, Wanted, get, named, waiting};
pub use restart::RestartPoint;
pub use shelf::{Shelf, Summary, check_name};
pub use stored::Stored;
pub use told::{Told, TooMuch};
