//! Images of guest memory and disks as persistent maps from page numbers to pages (versions of a map share all
//! unchanged parts), a store of moments with a memory budget, and files for images and moments.
//!
//! Each module uses only modules above it:
//! - [`page`]: immutable 4 KiB pages; a [`Pool`] stores each content once
//! - [`tree`]: a persistent map from page numbers to pages; a change copies the path to the changed node
//! - [`file`](mod@file): files of pages, e.g. with the initial content of an image, verified and written atomically
//! - [`base`](mod@base): the initial content of an image, which is zeroes or a mapped file
//! - [`image`]: a whole memory or disk, stored as a base and a tree of the pages that differ from the base; cheap to
//!   fork and to compare
//! - [`store`]: a cache of moments or other values; an evicted value can be derived again from its parent
//! - [`moment`]: files that each store a moment
//!
//! Elsewhere: registers and devices (this crate stores them as bytes), the tracking of written pages, and the choice of
//! the moments to keep.
//!
//! **Invariants.**
//! - Content depends only on the calls that created it, not on host time, iteration order or randomness. It never
//!   depends on when a page is freed, which images share pages, or what the store evicts.
//! - A page of zeroes is never stored and has no hash. Equal hashes (BLAKE3) mean equal pages.
//! - All types are `Send` and `Sync`.
//! - Files are hostile until they are verified. Damage ends in an error that names the file, never in a panic.

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
