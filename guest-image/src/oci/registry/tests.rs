//! Tests with servers on this host. Most tests check which servers get the operator's credentials.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use docker_credential::DockerCredential;
use everett_remote::Offline;
use everett_remote_client::Online;

use super::{Reference, Registry};

/// The name and password `everett:secret` in base64.
const SECRET: &str = "ZXZlcmV0dDpzZWNyZXQ=";
/// Header fields that all answers have. A content length must follow.
const CLOSE: &str = "Connection: close\r\nContent-Length:";

/// A server on this host. `answer` gets the server's address and a request's head, and returns the whole answer.
struct Server {
    address: String,
    /// Heads of all requests so far. If a request has a body, the body follows its head.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answer: impl Fn(&str, &str) -> String + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (own, kept) = (address.clone(), Arc::clone(&heads));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let lines = reader.by_ref().lines();
                let head: Vec<String> =
                    lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let mut head = head.join("\n");
                let said = answer(&own, &head);
                let lower = head.to_ascii_lowercase();
                let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
                if let Some(length) = length.map(|length| length.parse().unwrap()) {
                    head += "\n\n";
                    reader.take(length).read_to_string(&mut head).unwrap();
                }
                kept.lock().unwrap().push(head);
                let _ = stream.write_all(said.as_bytes());
            }
        });
        Server { address, heads }
    }

    fn heads(&self) -> String {
        self.heads.lock().unwrap().join("\n\n")
    }

    /// Requests a missing image from this registry. The operator's credentials are a name and a password. Returns the
    /// error.
    fn refuses(&self) -> String {
        self.refuses_with(|_| {
            Some(DockerCredential::UsernamePassword("everett".to_owned(), "secret".to_owned()))
        })
    }

    /// Requests an image that this registry does not have. Returns the error.
    fn refuses_with(&self, credential: fn(&Reference) -> Option<DockerCredential>) -> String {
        let reference = Reference::parse(&format!("{}/x:1", self.address)).unwrap();
        let mut registry = Registry::new(reference, &Online);
        registry.credential = credential;
        registry.digest().unwrap_err().to_string()
    }
}

fn token(_: &str, _: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{CLOSE} 13\r\n\r\n{{\"token\":\"T\"}}")
}

fn demand(realm: &str) -> String {
    format!("HTTP/1.1 401 Unauthorized\r\n{CLOSE} 0\r\nWww-Authenticate: Bearer realm=\"{realm}\"\r\n\r\n")
}

#[test]
fn another_server_without_encryption_gets_nothing() {
    let other = Server::start(token);
    let realm = format!("http://{}/token", other.address);
    let registry = {
        let realm = realm.clone();
        Server::start(move |_, _| demand(&realm))
    };
    let said = registry.refuses();
    assert!(said.ends_with(&format!("it wants credentials sent without encryption, to {realm}")), "{said}");
    assert_eq!(other.heads(), "");
    assert!(!registry.heads().contains(SECRET), "{}", registry.heads());
}

#[test]
fn a_redirection_of_a_request_for_a_token_is_not_followed() {
    let other = Server::start(token);
    let at = other.address.clone();
    let registry = Server::start(move |own, head| match head.starts_with("GET /token") {
        true => {
            format!("HTTP/1.1 307 Temporary Redirect\r\n{CLOSE} 0\r\nLocation: http://{at}/token\r\n\r\n")
        }
        false => demand(&format!("http://{own}/token")),
    });
    let said = registry.refuses();
    assert!(said.contains("307"), "{said}");
    assert_eq!(other.heads(), "");
}

/// Starts a registry without images. A request that starts with `request` gets a token. Other requests without the
/// token get a demand for it.
fn empty_registry(request: &'static str) -> Server {
    Server::start(move |own, head| {
        if head.starts_with(request) {
            token(own, head)
        } else if head.to_ascii_lowercase().contains("authorization: bearer t") {
            format!("HTTP/1.1 404 Not Found\r\n{CLOSE} 0\r\n\r\n")
        } else {
            demand(&format!("http://{own}/token"))
        }
    })
}

#[test]
fn the_registry_itself_gets_the_credentials() {
    let registry = empty_registry("GET /token");
    let said = registry.refuses();
    assert!(said.contains("it has no such image (404 Not Found)"), "{said}");
    assert!(registry.heads().contains(SECRET), "{}", registry.heads());
}

#[test]
fn an_identity_token_is_sent_in_a_form() {
    let registry = empty_registry("POST /token");
    let said = registry.refuses_with(|_| Some(DockerCredential::IdentityToken("i&d =1".to_owned())));
    assert!(said.contains("it has no such image (404 Not Found)"), "{said}");
    let heads = registry.heads.lock().unwrap();
    let [_, post, _] = &heads[..] else { panic!("{heads:?}") };
    let (head, body) = post.split_once("\n\n").unwrap();
    assert!(head.starts_with("POST /token HTTP/1.1\n"), "{head}");
    let fields: Vec<String> = head.lines().map(str::to_ascii_lowercase).collect();
    assert!(fields.iter().any(|field| field == "content-type: application/x-www-form-urlencoded"), "{head}");
    assert!(!fields.iter().any(|field| field.starts_with("authorization:")), "{head}");
    let expected = "grant_type=refresh_token&service=&scope=repository%3Ax%3Apull&client_id=everett&refresh_token=i%26d+%3D1";
    assert_eq!(body, expected);
}

#[test]
fn a_build_that_reaches_no_registry_says_so() {
    let mut registry = Registry::new(Reference::parse("quay.io/a/b:1").unwrap(), &Offline);
    let said = registry.digest().unwrap_err().to_string();
    let expected = "the registry quay.io: this build of everett cannot reach registries and mirrors; build it with the feature \
                    online (cargo build --release)";
    assert_eq!(said, expected);
    // The digest is known, so no request is sent.
    let name = format!("quay.io/a/b@sha256:{}", "ab".repeat(32));
    Registry::new(Reference::parse(&name).unwrap(), &Offline).digest().unwrap();
}
