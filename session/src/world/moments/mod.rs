//! Stored moments: worlds at a stop, in files. With each world, its file has the session, i.e. the state of everything
//! outside the world that decides how the timeline continues.
//!
//! - `stored`: a stored moment and its file
//! - `recorded`: events and console output before a moment
//! - `folder`: folder with a stored boot and saved moments
//! - `restart`: restart points in a file
//! - `machine_parts`: parts of a machine in a file
//!
//! Not here: moments of single machines (`everett_vmm`), page storage and the file format (`everett-snapshot`).
//!
//! **Invariants.** A stored boot is a cache: if it is missing, damaged or of another version, Everett boots the world
//! again. If a boot cannot be stored, Everett uses it without storing it. Everett refuses a damaged saved moment. No
//! file is overwritten in place.

mod folder;
mod machine_parts;
mod recorded;
mod restart;
mod stored;

pub use folder::{MomentFolder, Summary, check_name};
pub use recorded::{Recorded, TooMuch};
pub use stored::Stored;
