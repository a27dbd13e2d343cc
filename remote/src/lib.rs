//! The interface to other hosts: requests over http and https, and the check of signed texts.
//!
//! - [`Access`] is the interface. [`http`] contains requests and answers, [`signed`] contains signed texts.
//! - [`Offline`] is the implementation for a program without the feature `online`. It sends no request and checks no
//!   signature.
//!
//! The implementation with TLS and OpenPGP is in another crate (`everett-remote-client`), because two fifths
//! of the crates on which Everett depends serve only TLS and OpenPGP. A program without them compiles faster. Crates
//! that use the interface are the same with and without the feature `online`, and are compiled only once.
//!
//! **Invariants.** Answers and signed texts are untrusted. An error is a reason in plain words. It may contain text
//! from another host, so callers show it through `everett_input::text`.
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
    /// Returns a client that follows these rules. The client uses the proxy in the environment variables `all_proxy`,
    /// `https_proxy`, `http_proxy` and `no_proxy`.
    fn client(&self, rules: Rules) -> Box<dyn Client>;

    /// True if requests to this address go through a proxy.
    fn is_proxied(&self, address: &str) -> bool;

    /// Parses a text in OpenPGP's cleartext signature framework (RFC 9580, 7). Does not verify the signatures.
    ///
    /// # Errors
    /// Returns the reason why the bytes are not a signed text.
    fn signed(&self, message: &[u8]) -> Result<Box<dyn Signed>, String>;

    /// Returns the number of certificates in a file. With `only`, counts the certificates whose primary keys have these
    /// fingerprints, in lower-case hexadecimal.
    ///
    /// # Errors
    /// Returns the reason why the file has no OpenPGP certificates.
    fn count_certificates(&self, file: &[u8], only: Option<&[&str]>) -> Result<usize, String>;
}
