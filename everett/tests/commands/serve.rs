//! `everett serve`: the report over HTTP while another process writes the run directory, and requests that the server
//! refuses.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use everett_explorer::run::{EndReason, Header, Hit, Journal, Reading};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::records::{self, hit, record};

fn header() -> Header {
    records::header("0", "/nowhere/w.toml".to_owned())
}

/// Returns the findings of a branch: one if `found` is true, else none.
fn hits(found: bool) -> Vec<Hit> {
    found.then(|| hit("lost write", "s", "it is lost".to_owned())).into_iter().collect()
}

/// Run directory, its writer, and a server that shows its report.
struct Lab {
    folder: TempDir,
    journal: Option<Journal>,
    server: Child,
    port: u16,
}

impl Lab {
    fn new() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let journal = Journal::create(&run, &header()).unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_everett"))
            .args(["--json", "serve"])
            .arg(&run)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let url = line["url"].as_str().unwrap();
        let port = url.strip_prefix("http://127.0.0.1:").unwrap().trim_end_matches('/').parse().unwrap();
        Lab { folder, journal: Some(journal), server, port }
    }

    fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Sends bytes to the server. Returns the head and the body of its answer.
    fn send(&self, bytes: &[u8]) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
        (head.to_owned(), body.to_owned())
    }

    fn ask(&self, method: &str, path: &str) -> (String, String) {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port).as_bytes())
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.ask("GET", "/state").1).unwrap()
    }

    /// Asks the server for the state of the run until `wanted` accepts the answer. If that never happens, the test does
    /// not end.
    fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let state = self.state();
            if wanted(&state) {
                return state;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn the_page_follows_a_run_that_another_process_writes() {
    let mut lab = Lab::new();
    let (head, page) = lab.ask("GET", "/");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let first = lab.state()["version"].as_str().unwrap().to_owned();
    assert!(page.contains(&format!("data-version=\"{first}\"")) && !page.contains("it is lost"));
    assert_eq!(lab.state()["ended"], json!(false));
    for choice in 0..3 {
        lab.journal.as_mut().unwrap().append(record(choice, hits(choice == 2))).unwrap();
    }
    // The server ignores an incomplete record at the end of the file.
    let branches = lab.run().join("branches.bin");
    let half = fs::read(&branches).unwrap()[..60].to_vec();
    fs::OpenOptions::new().append(true).open(&branches).unwrap().write_all(&half).unwrap();
    let second = lab.until(|state| state["version"] != json!(first));
    assert_eq!(second["problem"], json!(null));
    let mut page = lab.ask("GET", "/").1;
    while !page.contains("it is lost") {
        lab.until(|state| !page.contains(&format!("data-version={}", state["version"])));
        page = lab.ask("GET", "/").1;
    }
    // The run ends, and another writer resumes it.
    drop(lab.journal.take());
    let journal = Journal::resume(&lab.run(), &header()).unwrap();
    let merged = Reading::open(&lab.run()).unwrap().merged(u64::MAX).unwrap();
    journal.finish(&merged.end(EndReason::Branches, 12)).unwrap();
    lab.until(|state| state["ended"] == json!(true));
    let mut journal = Journal::resume(&lab.run(), &header()).unwrap();
    journal.append(record(3, Vec::new())).unwrap();
    lab.until(|state| state["ended"] == json!(false));
    // If the server cannot read the run directory, the state names the problem. The server still shows the last page
    // that it made.
    let run = lab.run().join("run.json");
    let text = fs::read(&run).unwrap();
    fs::write(&run, "{").unwrap();
    let state = lab.until(|state| state["problem"] != json!(null));
    assert!(state["problem"].as_str().unwrap().contains("run.json"), "{state}");
    assert!(lab.ask("GET", "/").1.contains("it is lost"));
    fs::write(&run, text).unwrap();
    lab.until(|state| state["problem"] == json!(null));
}

#[test]
fn only_the_page_is_served_and_only_to_this_host() {
    let lab = Lab::new();
    let port = lab.port;
    let (head, body) = lab.ask("HEAD", "/");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(), "{head}\n{body}");
    for header in [
        "Content-Security-Policy: default-src 'none'; script-src 'sha256-",
        "connect-src 'self'; frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Cross-Origin-Resource-Policy: same-origin",
    ] {
        assert!(head.contains(header), "{header}\n{head}");
    }
    assert!(!head.contains("unsafe") && !head.contains("Access-Control"), "{head}");
    let status = |bytes: &str| lab.send(bytes.as_bytes()).0.lines().next().unwrap_or_default().to_owned();
    for path in
        ["/run.json", "/../run.json", "//etc/passwd", "/..%2f..%2fetc/passwd", "/state/", "*", "http://evil/"]
    {
        let status = status(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
        assert_eq!(status, "HTTP/1.1 404 Not Found", "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT"] {
        let status =
            status(&format!("{method} / HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 1\r\n\r\nx"));
        assert_eq!(status, "HTTP/1.1 405 Method Not Allowed", "{method}");
    }
    let evil = format!("GET / HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n");
    assert_eq!(status(&evil), "HTTP/1.1 403 Forbidden");
    assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    assert_eq!(status("\u{16}\u{3}\u{1} not http\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    let long = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: {}", "y".repeat(40_000));
    assert_eq!(status(&long), "HTTP/1.1 431 Request Header Fields Too Large");
    // The server does not listen on other addresses.
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
}

#[test]
fn clients_that_say_nothing_do_not_keep_others_out_for_long() {
    let lab = Lab::new();
    // Opens more connections than the server allows. The server closes the surplus at once, and the others when they
    // have sent nothing for too long.
    let mut silent: Vec<TcpStream> = (0..40).map(|_| lab.connect()).collect();
    let closed = silent
        .iter_mut()
        .map(|stream| stream.read(&mut [0; 1]).unwrap_or(0))
        .filter(|read| *read == 0)
        .count();
    assert_eq!(closed, 40);
    assert!(lab.ask("GET", "/state").0.starts_with("HTTP/1.1 200 OK"));
    // The server also closes the connection of a client that sends the head of its request too slowly.
    let mut slow = lab.connect();
    slow.write_all(b"GET / HT").unwrap();
    assert_eq!(slow.read(&mut [0; 1]).unwrap_or(0), 0);
    slow.shutdown(Shutdown::Both).unwrap_or(());
}

#[test]
fn ctrl_c_ends_it_without_a_failure() {
    let mut lab = Lab::new();
    let pid = rustix::process::Pid::from_child(&lab.server);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(lab.server.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_everett")).arg("serve").args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        error
    };
    let missing = folder.path().join("missing").display().to_string();
    let error = refused(&[&missing]);
    assert!(error.lines().count() == 1 && error.contains(&missing), "{error}");
    let error = refused(&[&folder.path().display().to_string()]);
    assert!(
        error.lines().count() == 1 && error.contains("no exploration") || error.contains("no run"),
        "{error}"
    );
    assert!(refused(&["x", "--port", "70000"]).contains("70000 is not in 0..=65535"));
    let run = folder.path().join("run");
    drop(Journal::create(&run, &header()).unwrap());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = refused(&[&run.display().to_string(), "--port", &port]);
    assert!(error.lines().count() == 1 && error.contains(&format!("--port {port}")), "{error}");
}
