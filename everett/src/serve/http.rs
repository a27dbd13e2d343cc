//! Reads one HTTP/1.1 request of a browser on this host, and writes the answer.
//!
//! `httparse` parses the head. No HTTP server crate is used, because every bound must hold: the size of the head, the
//! time of a connection, and the number of connections. A connection carries one request without a body.
//!
//! A page of another site cannot read the report. The browser sends the host name of that site, even if the name
//! resolves to this host (DNS rebinding). The server refuses requests with another host name than its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use everett_host::time::Stopwatch;

/// Maximum size of a request's head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of header lines of a request.
const HEADERS_MAX: usize = 64;
/// Time that a client has to send the head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time that a client has to receive the answer.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Number of bytes per write. The deadline is checked before each write.
const PART_BYTES: usize = 64 << 10;
/// Maximum time for which the server reads on after an answer. If the server closed the connection while the client
/// still sends, TCP could discard the answer.
const REST_TIME: Duration = Duration::from_millis(200);
/// Maximum number of bytes that the server reads after an answer.
const REST_BYTES_MAX: usize = 64 << 10;

/// Accepted request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Path, without a query.
    pub(super) path: String,
    /// True for `HEAD`: the answer has no body.
    pub(super) head: bool,
}

/// Reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The client was too slow, or has closed the connection.
    Gone,
    /// The request is not HTTP/1, or does not have exactly one host header.
    Bad,
    /// The head is too long or has too many header lines.
    TooLong,
    /// The method is neither GET nor HEAD.
    Method,
    /// The host header does not name this server.
    Host,
}

/// Answer to a request.
#[derive(Debug, Clone)]
pub(super) struct Answer<'b> {
    pub(super) status: &'static str,
    pub(super) content: &'static str,
    pub(super) policy: &'b str,
    pub(super) body: &'b [u8],
}

impl Answer<'_> {
    /// Returns an answer whose body is a line of text.
    pub(super) fn text(status: &'static str, body: &'static str) -> Answer<'static> {
        let policy = "default-src 'none'; frame-ancestors 'none'";
        Answer { status, content: "text/plain; charset=utf-8", policy, body: body.as_bytes() }
    }
}

impl Refused {
    /// Returns the answer to a refused request. `None` if the client has gone.
    pub(super) fn answer(self) -> Option<Answer<'static>> {
        Some(match self {
            Refused::Gone => return None,
            Refused::Bad => Answer::text("400 Bad Request", "The request is not HTTP/1.1.\n"),
            Refused::TooLong => {
                Answer::text("431 Request Header Fields Too Large", "The request is too long.\n")
            }
            Refused::Method => Answer::text("405 Method Not Allowed", "Only GET and HEAD are answered.\n"),
            Refused::Host => Answer::text(
                "403 Forbidden",
                "This server answers only requests for its own address on this host.\n",
            ),
        })
    }
}

/// Reads a request. `port` is the port of this server.
pub(super) fn read(stream: &mut TcpStream, port: u16) -> Result<Request, Refused> {
    let clock = Stopwatch::start();
    let mut bytes = Vec::new();
    let mut part = [0; 4 << 10];
    loop {
        let left = HEAD_TIME.saturating_sub(clock.elapsed());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Refused::Gone);
        }
        let read = match stream.read(&mut part) {
            Ok(0) => return Err(Refused::Gone),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(Refused::Gone),
        };
        bytes.extend_from_slice(part.get(..read).unwrap_or_default());
        if let Some(request) = parse(&bytes, port)? {
            return Ok(request);
        }
        if bytes.len() >= HEAD_BYTES_MAX {
            return Err(Refused::TooLong);
        }
    }
}

/// Parses the head of a request. Returns `None` if the head is incomplete.
fn parse(bytes: &[u8], port: u16) -> Result<Option<Request>, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refused::TooLong),
        Err(_) => return Err(Refused::Bad),
    }
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_own(host.value, port) => {}
        (Some(_), None) => return Err(Refused::Host),
        _ => return Err(Refused::Bad),
    }
    let head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(Refused::Method),
    };
    let target = request.path.unwrap_or_default();
    let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
    Ok(Some(Request { path, head }))
}

/// True if a host header names this server.
fn is_own(host: &[u8], port: u16) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (name, given) = match host.trim().rsplit_once(':') {
        Some((name, given)) => (name, given.parse().ok()),
        None => (host.trim(), Some(80)),
    };
    given == Some(port) && (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
}

/// Writes an answer and closes the connection.
pub(super) fn write(stream: &mut TcpStream, answer: &Answer<'_>, head: bool) -> io::Result<()> {
    let Answer { status, content, policy, body } = answer;
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {}\r\nContent-Security-Policy: {policy}\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\nCache-Control: no-store\r\n\
         Allow: GET, HEAD\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if !head {
        bytes.extend_from_slice(body);
    }
    let clock = Stopwatch::start();
    for part in bytes.chunks(PART_BYTES) {
        let left = ANSWER_TIME.saturating_sub(clock.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        stream.write_all(part)?;
    }
    stream.shutdown(Shutdown::Write)?;
    rest(stream)
}

/// Reads what the client still sends, up to [`REST_TIME`] and [`REST_BYTES_MAX`].
fn rest(stream: &mut TcpStream) -> io::Result<()> {
    let clock = Stopwatch::start();
    let (mut part, mut bytes) = ([0; 4 << 10], 0);
    while bytes < REST_BYTES_MAX {
        let left = REST_TIME.saturating_sub(clock.elapsed());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(read) => bytes += read,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<Option<Request>, Refused> {
        parse(text.as_bytes(), 8080)
    }

    #[test]
    fn requests() {
        let get = |path: &str, head| Ok(Some(Request { path: path.to_owned(), head }));
        assert_eq!(parsed("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"), get("/", false));
        assert_eq!(parsed("HEAD /state?x=1 HTTP/1.1\r\nhost: LOCALHOST:8080\r\n\r\n"), get("/state", true));
        assert_eq!(parsed("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"), Ok(None));
        assert_eq!(parsed("POST / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"), Err(Refused::Method));
        assert_eq!(parsed("nonsense\r\n\r\n"), Err(Refused::Bad));
        let many = "X: y\r\n".repeat(HEADERS_MAX);
        assert_eq!(
            parsed(&format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{many}\r\n")),
            Err(Refused::TooLong)
        );
    }

    #[test]
    fn other_hosts_are_refused() {
        for host in [
            "evil.example:8080",
            "127.0.0.1:81",
            "127.0.0.1",
            "localhost.evil:8080",
            "",
            "127.0.0.1:8080:8080",
        ] {
            assert_eq!(
                parsed(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")),
                Err(Refused::Host),
                "{host}"
            );
        }
        assert_eq!(parsed("GET / HTTP/1.1\r\n\r\n"), Err(Refused::Bad));
        let twice = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nHost: evil:8080\r\n\r\n";
        assert_eq!(parsed(twice), Err(Refused::Bad));
        assert!(is_own(b"localhost", 80) && !is_own(b"localhost", 81));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>(), host in ".{0,20}", path in ".{0,20}") {
            let _ = parse(&bytes, 80);
            let _ = parse(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(), 80);
        }
    }
}
