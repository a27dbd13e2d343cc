//! Types of requests over http and https, and of their answers.

use std::fmt;
use std::io::Read;
use std::time::Duration;

/// Rules that a client follows in all its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// True if the client uses only https, even after a redirection.
    pub https_only: bool,
    /// Maximum number of redirections of a request. With 0, the client returns a redirecting answer to its caller.
    pub redirections_max: u32,
    /// Time limit for each of two steps: establishing a connection, and receiving an answer's header.
    pub answer_within: Duration,
    /// Time limit for receiving each piece of a body.
    pub read_within: Duration,
    /// Time limit for a request including its whole body. `None` means no limit.
    pub all_within: Option<Duration>,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// Address of the request: `http://…` or `https://…`.
    pub address: &'r str,
    /// Names and values of additional headers.
    pub headers: &'r [(&'r str, &'r str)],
    /// Fields that are sent in the query or in a form.
    pub fields: Fields<'r>,
    /// Maximum length of the answer's body, in bytes. An attempt to read more fails.
    pub bytes_max: u64,
}

/// Names and values that are sent to the server with a request.
#[derive(Debug, Clone, Copy)]
pub enum Fields<'r> {
    /// No fields. The request is a GET.
    None,
    /// Fields in the query of a GET.
    Query(&'r [(&'r str, &'r str)]),
    /// Fields in a form, which is the body of a POST.
    Form(&'r [(&'r str, &'r str)]),
}

impl<'r> Request<'r> {
    /// Returns a GET request without additional headers and fields.
    #[must_use]
    pub const fn get(address: &'r str, bytes_max: u64) -> Request<'r> {
        Request { address, headers: &[], fields: Fields::None, bytes_max }
    }
}

/// A client that sends requests.
pub trait Client {
    /// Sends a request and follows redirections. An answer with an error status is returned like any other answer.
    ///
    /// # Errors
    /// Returns the reason why no answer was received.
    fn send(&self, request: &Request<'_>) -> Result<Answer, String>;
}

/// An answer to a request.
pub struct Answer {
    /// Status of the answer.
    pub status: Status,
    /// Names, in lower case, and values of the headers. Headers whose values are not text are left out. Names may
    /// repeat.
    pub headers: Vec<(String, String)>,
    /// Reader of the body. The body is received while it is read.
    pub body: Box<dyn Read>,
}

impl Answer {
    /// Returns the values of all headers with this name. `name` must be in lower case.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Status code of an answer (RFC 9110, 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Number of the status, from 100 to 999.
    pub code: u16,
    /// Standard text for the number, such as `Not Found`.
    pub words: &'static str,
}

impl Status {
    /// True if the request was successful: the number is from 200 to 299.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self.code, 200..=299)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.words)
    }
}
