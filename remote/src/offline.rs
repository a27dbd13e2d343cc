//! Implementation of the trait [`Access`] for a program that cannot reach other hosts.

use super::Access;
use super::http::{Answer, Client, Request, Rules};
use super::signed::Signed;

/// Error of every request.
const NO_REQUESTS: &str = "this build of everett cannot reach registries and mirrors; build it with the feature online (cargo build --release)";
/// Error of every check of a signature.
const NO_SIGNATURES: &str =
    "this build of everett cannot check signatures; build it with the feature online (cargo build --release)";

/// Access of a program without the feature `online`. All requests and all checks of signatures fail. The error says how
/// to build a program that supports them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

impl Access for Offline {
    fn client(&self, _: Rules) -> Box<dyn Client> {
        Box::new(Offline)
    }

    fn is_proxied(&self, _: &str) -> bool {
        false
    }

    fn signed(&self, _: &[u8]) -> Result<Box<dyn Signed>, String> {
        Err(NO_SIGNATURES.to_owned())
    }

    fn count_certificates(&self, _: &[u8], _: Option<&[&str]>) -> Result<usize, String> {
        Err(NO_SIGNATURES.to_owned())
    }
}

impl Client for Offline {
    fn send(&self, _: &Request<'_>) -> Result<Answer, String> {
        Err(NO_REQUESTS.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_refusal_is_one_line_that_says_what_to_do() {
        let second = Duration::from_secs(1);
        let rules = Rules {
            https_only: false,
            redirections_max: 0,
            answer_within: second,
            read_within: second,
            all_within: None,
        };
        let refusals = [
            Offline.client(rules).send(&Request::get("http://localhost/", 1)).err(),
            Offline.signed(b"").err(),
            Offline.count_certificates(b"", None).err(),
        ];
        for refusal in refusals {
            let refusal = refusal.expect("it was not refused");
            assert!(
                refusal.ends_with("build it with the feature online (cargo build --release)"),
                "{refusal}"
            );
            assert_eq!(refusal.lines().count(), 1, "{refusal}");
        }
    }
}
