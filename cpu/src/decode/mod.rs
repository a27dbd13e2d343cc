//! Decoding: from guest bytes to blocks of operations, and the cache of blocks.
//!
//! - [`lower`]: the choice of a handler
//! - [`block`]: a straight run of instructions inside one page
//! - [`contents`]: numbers for what pages hold
//! - [`cache`]: blocks by the number of their page, and where they lie in it

pub(crate) mod block;
pub(crate) mod cache;
mod contents;
pub(crate) mod lower;
