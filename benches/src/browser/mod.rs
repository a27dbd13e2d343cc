//! Headless Chromium from Debian, and axe-core from npm, for tests and measurements of the report's page.
//!
//! - [`Browser`]: the browser, controlled through the DevTools protocol
//! - [`fetch`]: downloads both into the operator's cache
//!
//! The browser runs in its own root directory, without a network unless a test asks for the host's. It needs only the
//! host's `unshare` and `chroot`.

mod client;
pub mod fetch;

pub use client::{Browser, Failure};
