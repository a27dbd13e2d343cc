//! Pages and images of guest memory and disks as persistent maps, a store of moments under a budget, and their files.
//!
//! Each module uses only modules above it:
//! - [`page`]: immutable 4 KiB pages, each content stored once ([`Pool`])
//! - [`tree`]: a persistent map from page number to page; changes copy the path to the changed node
//! - [`file`](mod@file): files of pages, checked, written atomically; bases on disk
//! - [`base`](mod@base): the initial content of an image: zeroes or a mapped file
//! - [`image`]: a base under a tree: a whole memory or disk, cheap to fork and to compare
//! - [`store`]: values that can be derived again from their parents, kept within a budget of bytes
//! - [`moment`]: moments on disk
//!
//! Not here: registers and devices (a moment's state is opaque bytes), the source of dirty pages, and the choice of
//! what to keep.
//!
//! **Invariants.**
//! - Content is a function of the calls: no host time, no unordered iteration, no randomness. The time at which a
//!   page is freed, sharing between images, and evictions from the store never affect any content.
//! - A page of zeroes is never stored and has no hash. Equal hashes (blake3) mean equal pages.
//! - All types are `Send` and `Sync`.
//! - Files are hostile until they are verified: damage ends in an error that names the file, never in a panic.

pub mod base;
pub mod file;
pub mod image;
pub mod moment;
pub mod page;
pub mod store;
pub mod tree;

pub use base::Base;
pub use file::{BaseFile, FileError};
pub use image::PageImage;
pub use moment::MomentFile;
pub use page::{PAGE, PageBytes, PageHash, PageRef, Pool, PoolStats};
pub use store::{Layered, Store, StoreError};
pub use tree::{Entry, Tree};

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<PageImage>();
    shared::<Pool>();
    shared::<PageRef>();
    shared::<Tree>();
    shared::<Store<u64, PageImage>>();
    shared::<MomentFile>();
};
