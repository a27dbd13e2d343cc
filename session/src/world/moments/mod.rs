//! Stored moments: files, each with the state of a stopped world. A file also contains the session, i.e. the state of
//! everything outside the world that decides how the timeline continues. A *stored boot* contains the moment at which
//! the services were ready. A *saved moment* is a moment that the operator saved later.
//!
//! - `stored`: a stored moment and its file
//! - `recorded`: events and console output before a moment
//! - `folder`: the folder of the cache with a stored boot and saved moments
//! - `restart`: file with the restart points, from which nodes start again after a power loss
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
