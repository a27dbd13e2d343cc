//! Decoding of guest bytes to blocks of operations, and the block cache.
//!
//! - [`lower`]: the choice of a handler for an instruction
//! - [`block`]: decoding of a straight run of instructions within one page
//! - [`contents`]: numbers that identify the contents of pages
//! - [`cache`]: blocks, indexed by the content number of their page and their offset in it

pub(crate) mod block;
pub(crate) mod cache;
mod contents;
pub(crate) mod lower;
