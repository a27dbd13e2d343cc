//! Rules for this repository that the compiler does not check. The tests apply them to the tree.
//!
//! - [`modules`]: the module tree of a crate, and the imports of its files
//! - [`circles`]: files and folders that import each other
//! - [`bounds`]: named bounds, and the page that lists them
//! - [`order`]: the order of the parts of a folder, which its documentation states
//! - [`errors`]: texts of errors that repeat their cause
//! - [`figures`]: sections of the documentation that state measured figures, and the machine version beside them
//! - [`pointers`]: pointers of the documentation that point nowhere
//! - [`files`]: the files of the repository
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
