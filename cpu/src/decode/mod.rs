//! Decoding: from guest bytes to blocks of operations, and the cache of blocks.
//!
//! - [`operand`]: registers and addresses
//! - [`lower`]: the choice of a handler
//! - [`block`]: a straight run of instructions inside one page
//! - [`cache`]: blocks by guest-physical address, valid as long as their bytes are unchanged

pub(crate) mod block;
pub(crate) mod cache;
pub(crate) mod lower;
pub(crate) mod operand;
