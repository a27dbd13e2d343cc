//! The interface to other hosts: requests over http and https, and the check of what other hosts have signed.
//!
//! - [`Access`] is the interface. [`http`] has requests and answers, [`signed`] signed texts.
//! - [`Offline`] is the implementation for a program without the feature `online`: no request is sent and no signature is
//!   checked.
//!
//! The interface is apart from the implementation (`everett-remote-client`), because TLS and OpenPGP are two fifths of the crates
//! that Everett depends on. A program without them is compiled in less time, and the crates that use the interface are compiled once
//! for both programs.
//!
//! **Invariants.** An answer and a signed text are untrusted. An error is a reason in words, for a person; it may contain text of
//! another host, so callers show it through `everett_input::text`.
//!
//! Not here: registries and mirrors (`everett-guest-image`).

pub mod http;
mod offline;
pub mod signed;

pub use offline::Offline;

use http::{Client, Rules};
use signed::Signed;

/// Access to other hosts.
pub trait Access {
    /// Returns a client that follows these rules. It uses the proxy that the environment names (`all_proxy`, `https_proxy`,
    /// `http_proxy`, `no_proxy`).
    fn client(&self, rules: Rules) -> Box<dyn Client>;

    /// True if requests to this address go through a proxy.
    fn is_proxied(&self, address: &str) -> bool;

    /// Reads a text in OpenPGP's cleartext signature framework (RFC 9580, 7); verifies nothing.
    ///
    /// # Errors
    /// Returns the reason why this is no such text.
    fn signed(&self, message: &[u8]) -> Result<Box<dyn Signed>, String>;

    /// Returns the number of certificates in a file that [`Signed::verify`] would use.
    ///
    /// # Errors
    /// Returns the reason why this is no file of OpenPGP certificates.
    fn count_certificates(&self, file: &[u8], only: Option<&[&str]>) -> Result<usize, String>;
}
