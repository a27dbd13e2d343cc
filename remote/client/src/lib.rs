//! Implements `everett-remote` with the crate `ureq` for requests and the crate `pgp` for signatures.
//!
//! - [`Online`] implements the interface. `http` sends requests. `certificates` decides which signatures are accepted.

mod certificates;
mod http;

use certificates::{Certificates, SignedText};
use everett_remote::Access;
use everett_remote::http::{Client, Rules};
use everett_remote::signed::Signed;

/// Access to other hosts through the host's network.
#[derive(Debug, Clone, Copy, Default)]
pub struct Online;

impl Access for Online {
    fn client(&self, rules: Rules) -> Box<dyn Client> {
        Box::new(http::client(rules))
    }

    fn is_proxied(&self, address: &str) -> bool {
        http::is_proxied(address)
    }

    fn signed(&self, message: &[u8]) -> Result<Box<dyn Signed>, String> {
        Ok(Box::new(SignedText::parse(message)?))
    }

    fn count_certificates(&self, file: &[u8], only: Option<&[&str]>) -> Result<usize, String> {
        Ok(Certificates::parse(file, only)?.count())
    }
}
