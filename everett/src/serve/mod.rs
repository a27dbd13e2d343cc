//! Server on loopback that shows the report of a run directory while the run goes on.
//!
//! - `http`: reads a request and writes its answer, with bounds on sizes and times
//! - `pages`: the newest page
//!
//! **Invariants.** The server listens on 127.0.0.1 only. It answers only GET and HEAD requests whose `Host` header
//! names this server. It serves two resources, the page and its state. Requests cannot name files.

mod http;
mod pages;

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use http::{Answer, Refused};
pub use pages::{Made, Make};
use pages::{Page, Pages};

/// Maximum number of open connections. The server closes further ones.
const CONNECTIONS_MAX: usize = 32;
/// Pause after the system refused a connection, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// Running server. Dropping it stops the making of pages. Its listener ends with the process.
pub struct Server {
    pages: Arc<Pages>,
    port: u16,
}

/// State of the page. Browsers ask for it as JSON.
#[derive(Serialize)]
struct State<'s> {
    /// Version of the newest page.
    version: &'s str,
    /// True if the exploration has ended.
    ended: bool,
    /// Reason why the run directory cannot be read now.
    problem: Option<&'s str>,
}

impl Server {
    /// Makes the first page and begins to serve. For port 0 the system chooses a free port.
    ///
    /// # Errors
    /// Returns an error if the page cannot be made, if the port is in use, or if the system refuses a thread.
    pub fn start(run: &Path, port: u16, policy: String, make: Make) -> anyhow::Result<Server> {
        // Binds first, so that a port in use is reported before a long run is read.
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).with_context(|| format!("--port {port}"))?;
        let port = listener.local_addr()?.port();
        let (pages, maker) = Pages::new(run, make)?;
        let pages = Arc::new(pages);
        let of_maker = Arc::clone(&pages);
        thread::Builder::new().name("pages".to_owned()).spawn(move || maker.work(&of_maker))?;
        let of_listener = Arc::clone(&pages);
        thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || listen(&listener, port, &of_listener, &Arc::from(policy)))?;
        Ok(Server { pages, port })
    }

    /// Returns the address of the page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pages.end();
    }
}

fn listen(listener: &TcpListener, port: u16, pages: &Arc<Pages>, policy: &Arc<str>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else {
            thread::park_timeout(PAUSE);
            continue;
        };
        let Some(place) = ConnectionSlot::take(&open) else { continue };
        let (pages, policy) = (Arc::clone(pages), Arc::clone(policy));
        // If the system refuses the thread, the connection closes and the browser asks again.
        let _ = thread::Builder::new().name("connection".to_owned()).spawn(move || {
            let _place = place;
            // An error means that the client has gone.
            let _ = serve(&mut stream, port, &pages, &policy);
        });
    }
}

/// One of the [`CONNECTIONS_MAX`] open connections. Dropping it frees its place.
struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    /// Takes a place. Returns `None` if all are taken.
    fn take(open: &Arc<AtomicUsize>) -> Option<ConnectionSlot> {
        let number = open.fetch_add(1, Ordering::SeqCst) + 1;
        let place = ConnectionSlot(Arc::clone(open));
        (number <= CONNECTIONS_MAX).then_some(place)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(stream: &mut TcpStream, port: u16, pages: &Pages, policy: &str) -> io::Result<()> {
    let request = match http::read(stream, port) {
        Ok(request) => request,
        Err(refused) => return refuse(stream, refused),
    };
    match request.path.as_str() {
        "/" => {
            let (page, _) = pages.get();
            let content = "text/html; charset=utf-8";
            let html = with_version(&page);
            http::write(
                stream,
                &Answer { status: "200 OK", content, policy, body: html.as_bytes() },
                request.head,
            )
        }
        "/state" => {
            let (page, problem) = pages.get();
            let state = State { version: &page.version, ended: page.ended, problem: problem.as_deref() };
            let json = everett_input::text::json(&serde_json::to_string(&state).map_err(io::Error::other)?);
            let answer =
                Answer { content: "application/json", body: json.as_bytes(), ..Answer::text("200 OK", "") };
            http::write(stream, &answer, request.head)
        }
        // Browsers ask for an icon by themselves.
        "/favicon.ico" => http::write(stream, &Answer::text("204 No Content", ""), true),
        _ => http::write(stream, &Answer::text("404 Not Found", "The report is at /.\n"), request.head),
    }
}

fn refuse(stream: &mut TcpStream, refused: Refused) -> io::Result<()> {
    match refused.answer() {
        Some(answer) => http::write(stream, &answer, false),
        None => Ok(()),
    }
}

/// Returns the page with its version filled in. The page's script compares this version with the version in [`State`].
fn with_version(page: &Page) -> String {
    page.html.replacen("data-version=\"\"", &format!("data-version=\"{}\"", page.version), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_beyond_the_bound_have_no_place() {
        let open = Arc::default();
        let mut places: Vec<ConnectionSlot> =
            (0..CONNECTIONS_MAX).map(|_| ConnectionSlot::take(&open).unwrap()).collect();
        assert!(ConnectionSlot::take(&open).is_none());
        assert!(ConnectionSlot::take(&open).is_none(), "a refused connection takes no place");
        places.pop();
        let again = ConnectionSlot::take(&open);
        assert!(again.is_some() && ConnectionSlot::take(&open).is_none());
    }
}
