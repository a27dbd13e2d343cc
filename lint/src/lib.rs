//! Rules for this repository that the compiler does not check. The tests apply them to the source tree.
//!
//! - [`bounds`]: named bounds, and the page that lists them
//! - [`circles`]: files and folders that import each other
//! - [`errors`]: texts of errors that repeat their cause
//! - [`figures`]: sections of the documentation with measured numbers, which must name a machine version
//! - [`files`]: lists of the repository's files and crates
//! - [`modules`]: module tree of a crate, and imports of its files
//! - [`order`]: the order in which the parts of a folder may use each other
//! - [`pointers`]: paths and names of items in the documentation, which must exist
//!
//! Not here: circles between crates, which cargo refuses, and rules about single lines, which clippy checks.

pub mod bounds;
pub mod circles;
pub mod errors;
pub mod figures;
pub mod files;
pub mod modules;
pub mod order;
pub mod pointers;
