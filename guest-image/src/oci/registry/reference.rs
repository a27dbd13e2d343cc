//! Parses names of images in registries: `[HOST[:PORT]/]NAME[:TAG][@DIGEST]`, with Docker's defaults.

use std::net::IpAddr;

use super::super::digest::Digest;
use super::super::error::Problem;

/// Maximum length of a repository's name, in bytes (OCI distribution specification).
const REPOSITORY_BYTES_MAX: usize = 255;
/// Maximum length of a tag, in bytes (OCI distribution specification).
const TAG_BYTES_MAX: usize = 128;

/// Host name of Docker Hub's registry. Images without a host in their name come from there.
const DOCKER_HUB: &str = "registry-1.docker.io";

/// A parsed name of an image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Reference {
    /// Host of the registry, with a port if the name gives one.
    pub(super) host: String,
    /// Name of the image's repository in the registry.
    pub(super) repository: String,
    /// Tag of the image. Ignored if there is a digest.
    pub(super) tag: String,
    /// Digest of the image's manifest, if the name has one.
    pub(in super::super) digest: Option<Digest>,
}

impl Reference {
    pub(in super::super) fn parse(text: &str) -> Result<Reference, Problem> {
        let wrong = || Problem::Reference(text.chars().take(REPOSITORY_BYTES_MAX).collect());
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (host, rest) = match rest.split_once('/') {
            Some((first, rest)) if is_host(first) => (first, rest),
            _ => ("docker.io", rest),
        };
        let (repository, tag) = rest.split_once(':').unwrap_or((rest, "latest"));
        let is_hub = matches!(host, "docker.io" | "index.docker.io");
        let repository = match repository.contains('/') || !is_hub {
            true => repository.to_owned(),
            false => format!("library/{repository}"),
        };
        let host_fits = |host: &str| {
            let (name, port) = host.split_once(':').unwrap_or((host, "443"));
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            !name.is_empty() && name.bytes().all(plain) && port.parse::<u16>().is_ok()
        };
        let part_fits = |part: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let separator = |byte: u8| matches!(byte, b'.' | b'_' | b'-');
            let ends = |byte: Option<&u8>| byte.is_some_and(|&byte| inner(byte));
            let bytes = part.as_bytes();
            ends(bytes.first())
                && ends(bytes.last())
                && bytes.iter().all(|&byte| inner(byte) || separator(byte))
        };
        let tag_fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = host_fits(host)
            && repository.len() <= REPOSITORY_BYTES_MAX
            && repository.split('/').all(part_fits)
            && (1..=TAG_BYTES_MAX).contains(&tag.len())
            && tag.bytes().all(tag_fits)
            && !tag.starts_with(['.', '-']);
        if !fits {
            return Err(wrong());
        }
        let host = if is_hub { DOCKER_HUB } else { host }.to_owned();
        Ok(Reference { host, repository, tag: tag.to_owned(), digest })
    }

    /// True if the registry is Docker Hub.
    pub(super) fn is_docker_hub(&self) -> bool {
        self.host == DOCKER_HUB
    }

    /// Returns `http` for a registry on this host, as in Docker, and `https` for all other registries.
    pub(super) fn scheme(&self) -> &'static str {
        let name = self.host.split(':').next().unwrap_or_default();
        let is_loopback =
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if is_loopback { "http" } else { "https" }
    }

    /// True if credentials may be sent to `realm`, the address of the server that gives out tokens. Over https any
    /// server may get them. Over http only the registry itself may get them, and only if it is on this host.
    pub(super) fn may_authorize_at(&self, realm: &str) -> bool {
        let Some((scheme, rest)) = realm.split_once("://") else { return false };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // Other characters, such as the `@` after a user, could make two parsers find different hosts in the same
        // address.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if authority.is_empty() || !authority.bytes().all(is_plain) {
            return false;
        }
        let parts = |authority: &str| {
            let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
            Some((host.to_ascii_lowercase(), port.parse::<u16>().ok()?))
        };
        let is_own = || parts(authority).is_some_and(|own| Some(own) == parts(&self.host));
        match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => self.scheme() == "http" && is_own(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_have_dockers_defaults() {
        let of = |text: &str| {
            let Reference { host, repository, tag, digest } = Reference::parse(text).unwrap();
            (host, repository, tag, digest.map(|digest| digest.to_string()))
        };
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, host, repository, tag, with) in [
            ("redis", DOCKER_HUB, "library/redis", "latest", None),
            ("redis:7-alpine", DOCKER_HUB, "library/redis", "7-alpine", None),
            ("docker.io/redis", DOCKER_HUB, "library/redis", "latest", None),
            ("grafana/grafana:1", DOCKER_HUB, "grafana/grafana", "1", None),
            ("quay.io/a/b-c/d.e:v1", "quay.io", "a/b-c/d.e", "v1", None),
            ("localhost/x", "localhost", "x", "latest", None),
            ("127.0.0.1:5000/x:1", "127.0.0.1:5000", "x", "1", None),
            (&format!("h:1/x:t@{digest}"), "h:1", "x", "t", Some(digest.clone())),
        ] {
            let expected = (host.to_owned(), repository.to_owned(), tag.to_owned(), with);
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(Reference::parse("127.0.0.2:5000/x").unwrap().scheme(), "http");
        assert_eq!(Reference::parse("127.0.0.2.example/x").unwrap().scheme(), "https");
    }

    #[test]
    fn tokens_come_over_https_or_from_the_registry_itself() {
        let own = |name: &str, realm: &str| Reference::parse(name).unwrap().may_authorize_at(realm);
        for realm in ["https://auth.docker.io/token", "HTTPS://auth.docker.io/token", "https://h:5000/token"]
        {
            assert!(own("redis", realm) && own("127.0.0.1:5000/x", realm), "{realm}");
        }
        for (name, realm) in [
            ("127.0.0.1:5000/x", "http://127.0.0.1:5000/token"),
            ("localhost:5000/x", "http://LOCALHOST:5000/token?a=b"),
            ("localhost/x", "http://localhost/token"),
            ("localhost/x", "http://localhost:80/token"),
        ] {
            assert!(own(name, realm), "{name} {realm}");
        }
        for (name, realm) in [
            ("127.0.0.1:5000/x", "http://127.0.0.1:5001/token"),
            ("127.0.0.1:5000/x", "http://127.0.0.2:5000/token"),
            ("127.0.0.1:5000/x", "http://127.0.0.1/token"),
            ("127.0.0.1:5000/x", "http://127.0.0.1:5000@example.com/token"),
            ("127.0.0.1:5000/x", "http://example.com/token"),
            ("h.io:5000/x", "http://h.io:5000/token"),
            ("redis", "http://registry-1.docker.io/token"),
            ("redis", "HTTP://registry-1.docker.io/token"),
            ("127.0.0.1:5000/x", "ftp://127.0.0.1:5000/token"),
            ("127.0.0.1:5000/x", "/token"),
            ("127.0.0.1:5000/x", "http://"),
            ("127.0.0.1:5000/x", "http://127.0.0.1:5000\\@example.com/token"),
            ("127.0.0.1:5000/x", "http://127.0.0.1:5000%2f@example.com/token"),
            ("127.0.0.1:5000/x", "http://127.0.0.1:5000:5000/token"),
            ("127.0.0.1:5000/x", "http://127.0.0.1:5000 /token"),
            ("redis", "https://user@auth.docker.io/token"),
            ("redis", "https:///token"),
        ] {
            assert!(!own(name, realm), "{name} {realm}");
        }
    }

    #[test]
    fn malformed_names_are_refused() {
        for text in [
            "",
            "/x",
            "x:",
            "x/",
            "X",
            "a//b",
            "h.io/../x",
            "h.io/x?y",
            "h.io:x/y",
            "x@sha256:0",
            "x y",
            "x:-t",
        ] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_name_leads_out_of_its_place(text in "[a-z.:/@%#?\\-]{0,40}") {
            if let Ok(Reference { host, repository, tag, .. }) = Reference::parse(&text) {
                let all = format!("{host}{repository}{tag}");
                prop_assert!(!all.contains(['%', '#', '?', '@', ' ']) && !repository.contains(".."));
            }
        }
    }
}
