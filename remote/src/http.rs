//! Requests over http and https, and their answers.

use std::fmt;
use std::io::Read;
use std::time::Duration;

/// Rules that all requests of a client follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// True if the client never leaves https, also not by a redirection.
    pub https_only: bool,
    /// Maximum number of redirections of a request. With 0, an answer that redirects is returned as it is.
    pub redirections_max: u32,
    /// Time limit for a connection, and for the head of an answer.
    pub answer_within: Duration,
    /// Time limit for each piece of a body.
    pub read_within: Duration,
    /// Time limit for a request with its whole body; `None` for no limit.
    pub all_within: Option<Duration>,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// The address: `http://…` or `https://…`.
    pub address: &'r str,
    /// Names and values of headers.
    pub headers: &'r [(&'r str, &'r str)],
    /// Fields that the server gets with the request.
    pub fields: Fields<'r>,
    /// Maximum length of the answer's body, in bytes. Reading more is an error.
    pub bytes_max: u64,
}

/// Names and values for a server.
#[derive(Debug, Clone, Copy)]
pub enum Fields<'r> {
    /// None: a GET of the address as it is.
    None,
    /// Query that is added to the address of a GET.
    Query(&'r [(&'r str, &'r str)]),
    /// Form in the body of a POST.
    Form(&'r [(&'r str, &'r str)]),
}

impl<'r> Request<'r> {
    /// Returns a GET without headers.
    #[must_use]
    pub const fn get(address: &'r str, bytes_max: u64) -> Request<'r> {
        Request { address, headers: &[], fields: Fields::None, bytes_max }
    }
}

/// Sends requests.
pub trait Client {
    /// Sends a request, and follows redirections. An answer with any status is no error.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    fn send(&self, request: &Request<'_>) -> Result<Answer, String>;
}

/// An answer to a request.
pub struct Answer {
    /// The status.
    pub status: Status,
    /// Names, in lower case, and values of the headers whose values are text. A name may occur more than once.
    pub headers: Vec<(String, String)>,
    /// The body, which is received as it is read.
    pub body: Box<dyn Read>,
}

impl Answer {
    /// Returns the values of all headers of this name, which is in lower case.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Status of an answer (RFC 9110, 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The number, from 100 to 999.
    pub code: u16,
    /// The words that belong to the number, such as `Not Found`.
    pub words: &'static str,
}

impl Status {
    /// True if the request was successful.
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
