//! A web server on loopback that serves the files which a test gives it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The server's answer to requests for one path.
#[derive(Clone)]
pub(crate) enum Answer {
    File(Vec<u8>),
    /// The server announces the whole file, sends half of it, and closes the connection.
    Half(Vec<u8>),
    Redirect(String),
}

#[derive(Default)]
struct State {
    answers: BTreeMap<String, Answer>,
    /// Paths of the requests, in order.
    requests: Vec<String>,
}

/// A server that runs until the test's process ends.
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    /// Base address of the server.
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Some tests close the connection early, so errors are expected.
                let _ = answer(&stream, &shared);
            }
        });
        Server { state, address }
    }

    pub(crate) fn put(&self, path: &str, answer: Answer) {
        self.state.lock().unwrap().answers.insert(format!("/{path}"), answer);
    }

    pub(crate) fn remove(&self, path: &str) {
        self.state.lock().unwrap().answers.remove(&format!("/{path}"));
    }

    /// Returns the paths requested since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

fn answer(mut stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = {
        let mut state = state.lock().unwrap();
        state.requests.push(path.clone());
        state.answers.get(&path).cloned()
    };
    let (status, more, length, body) = match &answer {
        Some(Answer::File(file)) => ("200 OK", String::new(), file.len(), &file[..]),
        Some(Answer::Half(file)) => ("200 OK", String::new(), file.len(), &file[..file.len() / 2]),
        Some(Answer::Redirect(to)) => ("302 Found", format!("Location: {to}\r\n"), 0, &b""[..]),
        None => ("404 Not Found", String::new(), 0, &b""[..]),
    };
    write!(stream, "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(body)
}
