//! Decoding of guest bytes to blocks of operations, and the block cache.
//!
//! - [`lower`]: the choice of a handler, i.e. of the function that executes an instruction
//! - [`block`]: decoding of a straight run of instructions within one page
//! - [`contents`]: numbers that identify the contents of pages
//! - [`cache`]: the cache of decoded blocks, which finds a block by the contents of its page and its offset in the page

pub(crate) mod block;
pub(crate) mod cache;
mod contents;
pub(crate) mod lower;
