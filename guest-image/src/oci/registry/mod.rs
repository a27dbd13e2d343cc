//! Fetches images from registries (OCI distribution specification, and Docker's token authentication).
//!
//! - this file: sends requests. [`mod@reference`]: parses names of images. [`challenge`]: parses a registry's demand
//!   for authentication.
//!
//! **Credentials** go only to the registry itself, or to the token server that the registry names. Over https the
//! token server may be any server, as in Docker, containerd and skopeo: Docker Hub and most registries use a token
//! server on another host. Over http the token server must be the registry's own host and port, and the registry must
//! be on this host. Everett never sends credentials to the target of a redirection or to another local service.
//!
//! Everett asks a registry only once which manifest an image's name means, and writes the manifest's digest to the
//! world's lock file. From then on it pulls the image by this digest, so no later answer of the registry can change the
//! image.

mod challenge;
mod reference;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docker_credential::DockerCredential;
use everett_remote::Access;
use everett_remote::http::{Answer, Client, Fields, Request, Rules, Status};
use serde::Deserialize;

use super::blobs::{self, Blobs};
use super::digest::Digest;
use super::error::Problem;
use super::limits::LAYER_BYTES_MAX;
use super::manifest::{self, MANIFEST_BYTES_MAX};
use super::resolved_image::ResolvedImage;
use challenge::Challenge;
pub(super) use reference::Reference;

/// Media types of manifests and indexes, for the header `Accept`.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.docker.distribution.manifest.v2+json";

/// Time limit for establishing a connection and for receiving an answer's header.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Time limit for receiving each piece of a body.
const READ_WITHIN: Duration = Duration::from_secs(120);
/// Maximum length of the document with a token, in bytes.
const TOKEN_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of redirections of a request. Registries redirect requests for blobs to other servers.
const REDIRECTIONS_MAX: u32 = 10;

/// Status code: the registry demands credentials (RFC 9110, 15.5.2).
const UNAUTHORIZED: u16 = 401;
/// Status code: the registry refuses the credentials (RFC 9110, 15.5.4).
const FORBIDDEN: u16 = 403;
/// Status code: the registry has no such image or blob (RFC 9110, 15.5.5).
const NOT_FOUND: u16 = 404;
/// Status code: the client has sent too many requests (RFC 6585, 4).
const TOO_MANY_REQUESTS: u16 = 429;

/// Client of a registry, for one image.
pub(super) struct Registry {
    reference: Reference,
    client: Box<dyn Client>,
    /// HTTP client for requests to the token server. It follows no redirections.
    tokens: Box<dyn Client>,
    /// Function that finds the operator's credentials for a registry.
    credential: fn(&Reference) -> Option<DockerCredential>,
    /// Value of the header `Authorization`. `None` until the registry has demanded authentication.
    authorization: Option<String>,
    /// Text of the manifest or index to which the reference leads, with its digest. `None` until it is fetched.
    top: Option<(Vec<u8>, Digest)>,
}

impl Registry {
    pub(super) fn new(reference: Reference, access: &dyn Access) -> Registry {
        let rules = Rules {
            https_only: false,
            redirections_max: REDIRECTIONS_MAX,
            answer_within: ANSWER_WITHIN,
            read_within: READ_WITHIN,
            all_within: None,
        };
        let client = access.client(rules);
        let tokens = access.client(Rules { redirections_max: 0, ..rules });
        Registry { reference, client, tokens, credential, authorization: None, top: None }
    }

    /// Returns the digest of the manifest or index to which the reference leads. If the reference has no digest,
    /// fetches the manifest or index and computes its digest.
    pub(super) fn digest(&mut self) -> Result<Digest, Problem> {
        if let Some(digest) = &self.reference.digest {
            return Ok(digest.clone());
        }
        let (_, digest) = self.top()?;
        Ok(digest)
    }

    /// Returns the manifest or index to which the reference leads, with its digest. Fetches it at the first call.
    fn top(&mut self) -> Result<(Vec<u8>, Digest), Problem> {
        if let Some(top) = &self.top {
            return Ok(top.clone());
        }
        let name = match &self.reference.digest {
            Some(digest) => digest.to_string(),
            None => self.reference.tag.clone(),
        };
        let text = blobs::read_bounded(self.get("manifests", &name)?, "the manifest", MANIFEST_BYTES_MAX)?;
        let hasher = Digest::sha256_hasher();
        let mut hasher = self.reference.digest.as_ref().map_or(hasher, Digest::hasher);
        hasher.update(&text);
        let found = hasher.finish();
        if let Some(expected) = self.reference.digest.as_ref().filter(|expected| **expected != found) {
            let (expected, found) = (expected.to_string(), found.to_string());
            return Err(Problem::Digest { what: "the manifest".to_owned(), expected, found });
        }
        self.top = Some((text.clone(), found.clone()));
        Ok((text, found))
    }

    /// Requests a manifest or a blob. If the registry demands authentication, authenticates and tries once more.
    fn get(&mut self, kind: &str, name: &str) -> Result<Box<dyn Read>, Problem> {
        let Reference { host, repository, .. } = &self.reference;
        let scheme = self.reference.scheme();
        let address = format!("{scheme}://{host}/v2/{repository}/{kind}/{name}");
        let mut answer = self.request(&address)?;
        if answer.status.code == UNAUTHORIZED {
            let challenges: Vec<&str> = answer.values("www-authenticate").collect();
            let challenge = Challenge::of(&challenges).ok_or_else(|| self.refused(answer.status))?;
            self.authorization = Some(self.authorize(&challenge)?);
            answer = self.request(&address)?;
        }
        match answer.status.code {
            _ if answer.status.is_success() => Ok(answer.body),
            NOT_FOUND if kind == "blobs" => Err(Problem::Missing { blob: name.to_owned() }),
            _ => Err(self.refused(answer.status)),
        }
    }

    fn request(&self, address: &str) -> Result<Answer, Problem> {
        let mut headers = vec![("Accept", MANIFESTS)];
        headers.extend(self.authorization.as_deref().map(|authorization| ("Authorization", authorization)));
        // Only layers may be this long. Answers to all other requests have smaller maximum lengths, which the callers
        // check.
        let request = Request { headers: &headers, ..Request::get(address, LAYER_BYTES_MAX) };
        self.client.send(&request).map_err(|said| self.unreachable(said))
    }

    fn unreachable(&self, said: String) -> Problem {
        Problem::Registry { host: self.reference.host.clone(), said }
    }

    fn refused(&self, status: Status) -> Problem {
        let said = match status.code {
            UNAUTHORIZED | FORBIDDEN => {
                format!("it refuses access ({status}); log in with docker login or podman login")
            }
            NOT_FOUND => format!("it has no such image ({status})"),
            TOO_MANY_REQUESTS => format!("it wants fewer requests ({status}); log in, or try later"),
            _ => format!("it answers {status}"),
        };
        Problem::Registry { host: self.reference.host.clone(), said }
    }

    /// Returns the value of `Authorization` that satisfies a challenge. Uses the operator's credentials if there are
    /// any.
    fn authorize(&self, challenge: &Challenge) -> Result<String, Problem> {
        let credential = (self.credential)(&self.reference);
        let basic = match &credential {
            Some(DockerCredential::UsernamePassword(user, password)) => {
                Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
            }
            _ => None,
        };
        let Challenge::Bearer { realm, service, scope } = challenge else {
            return basic.ok_or_else(|| self.refused(Status { code: UNAUTHORIZED, words: "Unauthorized" }));
        };
        if !self.reference.may_authorize_at(realm) {
            let said = format!("it wants credentials sent without encryption, to {realm}");
            return Err(Problem::Registry { host: self.reference.host.clone(), said });
        }
        let own_scope = format!("repository:{}:pull", self.reference.repository);
        let scope = scope.as_deref().unwrap_or(&own_scope);
        let service = service.as_deref().unwrap_or_default();
        let request = Request::get(realm, TOKEN_BYTES_MAX);
        let answer = if let Some(DockerCredential::IdentityToken(token)) = &credential {
            // The request follows OAuth2, as in Docker's specification of tokens.
            let form = [
                ("grant_type", "refresh_token"),
                ("service", service),
                ("scope", scope),
                ("client_id", "everett"),
                ("refresh_token", token.as_str()),
            ];
            self.tokens.send(&Request { fields: Fields::Form(&form), ..request })
        } else {
            let headers: Vec<(&str, &str)> =
                basic.iter().map(|basic| ("Authorization", basic.as_str())).collect();
            let query = [("service", service), ("scope", scope)];
            self.tokens.send(&Request { headers: &headers, fields: Fields::Query(&query), ..request })
        };
        let answer = answer.map_err(|said| self.unreachable(said))?;
        if !answer.status.is_success() {
            return Err(self.refused(answer.status));
        }
        let text = blobs::read_bounded(answer.body, "the registry's token", TOKEN_BYTES_MAX)?;
        let token: Token = serde_json::from_slice(&text).unwrap_or_default();
        let token = token
            .token
            .or(token.access_token)
            .filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
        match token {
            Some(token) => Ok(format!("Bearer {token}")),
            None => Err(Problem::Registry {
                host: self.reference.host.clone(),
                said: "its answer has no token".to_owned(),
            }),
        }
    }
}

/// Returns the operator's credentials for a registry: from Docker's configuration, or else from podman's.
fn credential(registry: &Reference) -> Option<DockerCredential> {
    // Docker stores the credentials of Docker Hub under the Hub's former address.
    let is_hub = registry.is_docker_hub();
    let server = if is_hub { "https://index.docker.io/v1/" } else { registry.host.as_str() };
    let podman_server = if is_hub { "docker.io" } else { server };
    let found = docker_credential::get_credential(server).ok();
    found.or_else(|| docker_credential::get_podman_credential(podman_server).ok())
}

/// The JSON document that a token server returns.
#[derive(Debug, Default, Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Blobs for Registry {
    fn open(&mut self, blob: &str) -> Result<Box<dyn Read + '_>, Problem> {
        self.get("blobs", blob)
    }

    fn open_manifest(&mut self, digest: &str) -> Result<Box<dyn Read + '_>, Problem> {
        self.get("manifests", digest)
    }

    fn find(&mut self, _: Option<&str>) -> Result<ResolvedImage, Problem> {
        let (text, _) = self.top()?;
        manifest::of_either(self, &text)
    }
}
