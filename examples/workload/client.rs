//! A Redis client that records the history of its operations, in Rust without a library. Usage: client ADDRESS
//!
//!     rustc -O -C target-feature=+crt-static client.rs

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::FromRawFd;
use std::time::Duration;

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Writes one event of an operation to the history, as one line in one write. In a guest of Everett, the write returns
/// when the host has the line.
fn tell(mut history: &File, process: u64, kind: &str, f: &str, key: &str, value: &str) -> io::Result<()> {
    let line = format!(
        "{{\"process\":{process},\"type\":\"{kind}\",\"f\":\"{f}\",\"key\":\"{key}\",\"value\":{value}}}\n"
    );
    history.write_all(line.as_bytes())
}

/// Sends a request and returns the answer. Returns an error if no answer comes or if Redis reports an error. The caller
/// then treats the outcome of the request as unknown.
fn ask(redis: &mut BufReader<TcpStream>, request: &str) -> io::Result<String> {
    redis.get_mut().write_all(request.as_bytes())?;
    let line = |redis: &mut BufReader<TcpStream>| {
        let mut text = String::new();
        redis.read_line(&mut text)?;
        text.strip_suffix("\r\n").map(str::to_owned).ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    match line(redis)?.as_str() {
        "$-1" => Ok("null".to_owned()),
        error if error.starts_with('-') => Err(io::Error::other(error.to_owned())),
        length if length.starts_with('$') => line(redis),
        answer => Ok(answer.to_owned()),
    }
}

fn connect(address: &SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let redis = TcpStream::connect_timeout(address, Duration::from_millis(200))?;
    redis.set_read_timeout(Some(Duration::from_secs(1)))?;
    Ok(BufReader::new(redis))
}

fn main() -> io::Result<()> {
    let address = format!("{}:6379", env::args().nth(1).unwrap_or_default());
    let address: SocketAddr = address.parse().map_err(io::Error::other)?;
    // Outside of Everett the history goes to standard output.
    // SAFETY: nothing else in this program closes the file descriptor.
    let history = unsafe { File::from_raw_fd(number("EVERETT_HISTORY", 1) as i32) };
    let round = number("EVERETT_ROUND", 0);
    // No other client of this node uses these process numbers and values. This client does not use them again in a
    // later round, i.e. when Everett starts it again.
    let mut process = 3000 + round * 100_000;
    let mut value = process * 1_000_000;
    let mut state = number("EVERETT_SEED", 1) ^ (round << 32);
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut connection = None;
    loop {
        // Without a connection, the client sends no request and records nothing.
        let Some(redis) = &mut connection else {
            connection = connect(&address).ok();
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let key = if draw(2) == 0 { "x" } else { "y" };
        let (f, argument, request) = if draw(2) == 0 {
            ("read", "null".to_owned(), format!("GET {key}\r\n"))
        } else {
            value += 1;
            ("write", value.to_string(), format!("SET {key} {value}\r\n"))
        };
        tell(&history, process, "invoke", f, key, &argument)?;
        match ask(redis, &request) {
            Ok(answer) => {
                tell(&history, process, "ok", f, key, if f == "read" { &answer } else { &argument })?
            }
            Err(_) => {
                // Redis may have executed the request, or may still do so. Because the client does not know, it goes on
                // under a new process number.
                tell(&history, process, "info", f, key, "null")?;
                process += 1;
                connection = None;
            }
        }
        std::thread::sleep(Duration::from_micros(draw(10_000)));
    }
}
