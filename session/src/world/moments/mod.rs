//! Stored moments: worlds at a stop, with their sessions, in files.
//!
//! - `stored`: one stored moment, and its file
//! - `recorded`: the events and console output before a moment
//! - `folder`: a stored boot and the moments saved on it, under a key of everything that the boot depends on
//! - `restart`: restart points in files; `machine_parts`: a machine in the file of a moment or restart point
//!
//! Not here: the moment of a machine (`everett_vmm`), the storage of pages and the file format (`everett-snapshot`).
//!
//! **Invariants.** A stored boot is a cache: if it is missing, damaged or of another version, the world is booted anew.
//! A boot that cannot be stored is used without storing it. A damaged saved moment is refused. Files are never
//! overwritten in place.

mod folder;
mod machine_parts;
mod recorded;
mod restart;
mod stored;

pub use folder::{MomentFolder, Summary, check_name};
pub use recorded::{Recorded, TooMuch};
pub use stored::Stored;
