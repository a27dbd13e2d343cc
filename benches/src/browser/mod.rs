//! Headless Chromium from Debian, and axe-core from npm, for tests and measurements of the report's page.
//!
//! - [`fetch`]: fetches both into the operator's cache
//! - [`Browser`]: the browser, driven over the DevTools protocol
//!
//! The browser runs in a root directory of its own, so it needs no package of the host besides `unshare` and `chroot`,
//! and has no network.

mod client;
pub mod fetch;

pub use client::{Browser, Failure};
