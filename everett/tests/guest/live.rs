//! Live view of `everett explore`, in a terminal.
//!
//! `script` makes the terminal: the test writes keys to its input and reads the screen from its output.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{everett, image, shown};

/// Escape sequences that enter and leave the alternate screen.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
/// World whose driver prints a random digit, with a property for each of five digits.
const WORLD: &str = r#"
[[node]]
name = "a"
memory = "96M"
[[workload.driver]]
name = "dice"
argv = ["sh", "-c", "echo eyes$(od -An -N1 -tu1 /dev/urandom | tail -c 2)"]
[explore]
segment = "100ms"
horizon = "200ms"
in_flight = 2
[faults]
only = ["reseed"]
"#;

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let digits = 0..5;
        let properties =
            digits.map(|digit| format!("[[property]]\nname = \"p{digit}\"\nnever = \"eyes{digit}\"\n"));
        fs::write(place.path("world.toml"), WORLD.to_owned() + &properties.collect::<String>()).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn digest(&self, run: &str) -> String {
        let run = self.path(run).display().to_string();
        String::from_utf8(everett(&["show", &run, "--digest"]).stdout).unwrap()
    }

    /// Starts `everett explore` with these arguments in a terminal. The shell writes the terminal's modes to a file
    /// before and after.
    fn explore(&self, run: &str, arguments: &str, environment: &[(&str, &str)]) -> Screen {
        let line = format!(
            "stty rows 30 cols 100; stty -a > before; sh -c 'echo $$ > pid; exec {} explore --seed 3 -o {run} {arguments}'; \
             echo status $?; stty -a > after",
            env!("CARGO_BIN_EXE_everett")
        );
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(self.0.path())
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, mut output) = (child.stdin.take(), child.stdout.take().unwrap());
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut part) {
                into.lock().unwrap().extend_from_slice(&part[..read]);
            }
        });
        Screen { child, keys, bytes, reader: Some(reader), folder: self.0.path().to_owned() }
    }
}

struct Screen {
    child: Child,
    keys: Option<ChildStdin>,
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    folder: PathBuf,
}

impl Screen {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// Waits until the output has a text `times` times. Fails if the process ends first.
    fn until(&mut self, text: &str, times: usize) {
        while self.text().matches(text).count() < times {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended without {text:?}:\n{}", self.text());
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &str) {
        let input = self.keys.as_mut().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = fs::read_to_string(self.folder.join("pid")).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits for the end, and checks that there was no live view. Returns the text.
    fn end_without_view(self) -> String {
        let bytes = Arc::clone(&self.bytes);
        let text = self.end();
        let all = String::from_utf8_lossy(&bytes.lock().unwrap()).into_owned();
        assert!(!all.contains(ENTER), "{all:?}");
        text
    }

    /// Waits for the end. Returns the text after the live view, or the whole text if there was none.
    fn end(mut self) -> String {
        self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        drop(self.keys.take());
        let modes = |name| fs::read_to_string(self.folder.join(name)).unwrap();
        assert_eq!(modes("before"), modes("after"), "the terminal has other modes");
        let text = self.text().replace("\r\n", "\n");
        assert_eq!(text.matches(ENTER).count(), text.matches(LEAVE).count(), "{text}");
        let after = text.rsplit_once(LEAVE).map_or(text.as_str(), |(_, after)| after);
        after.to_owned()
    }
}

/// Returns the lines without colours, and without lines whose numbers differ from run to run.
fn lines(text: &str) -> Vec<String> {
    let stripped = anstream::adapter::strip_str(text).to_string();
    // Keeps only the last state of a bar that was redrawn in place.
    let last = |line: &'_ str| line.trim_end().rsplit('\r').next().unwrap_or_default().trim().to_owned();
    let shown = stripped.lines().map(last).filter(|line| {
        let timed =
            ["branches ran in", "CPU time by activity", "by quarter of", "status ", "are recorded; this"];
        !line.is_empty() && timed.iter().all(|timed| !line.contains(timed))
    });
    shown.map(|line| line.replace("viewed", "plain")).skip_while(|line| !line.starts_with("FOUND")).collect()
}

#[test]
fn the_view_changes_nothing_and_leaves_the_lines_of_plain_mode() {
    image();
    let place = Place::new();
    let arguments = "world.toml --branches 24 --jobs 1";
    let plain = format!("{arguments} --plain 2>/dev/null | cat");
    let plain = place.explore("plain", &plain, &[]).end_without_view();
    assert!(plain.contains("FOUND"), "{plain}");
    let mut screen = place.explore("viewed", arguments, &[]);
    screen.until(ENTER, 1);
    screen.press("\t?");
    let all = screen.end();
    assert!(all.contains("status 1") && lines(&all).len() > 6, "{all}");
    let (viewed, plain) = (lines(&all), lines(&plain));
    // The second run also compares itself with the first, which is then the previous run. The test ignores this line.
    let same = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !line.contains("the previous run")).cloned().collect()
    };
    assert_eq!(same(&viewed), same(&plain));
    assert_eq!(place.digest("viewed"), place.digest("plain"));
}

#[test]
fn q_and_signals_end_in_order_and_the_terminal_comes_back() {
    image();
    let place = Place::new();
    let held = "world.toml --jobs 2 --hold-from 6";
    let mut screen = place.explore("q", held, &[]);
    screen.until("branches", 2);
    screen.press("q");
    let text = screen.end();
    assert!(text.contains("it was stopped: 6 branches") || text.contains("it was stopped:"), "{text}");
    let mut screen = place.explore("term", held, &[]);
    screen.until(ENTER, 1);
    // Ctrl-Z suspends the process, and SIGCONT continues it.
    screen.press("\u{1a}");
    screen.until(LEAVE, 1);
    screen.signal(Signal::CONT);
    screen.until(ENTER, 2);
    screen.signal(Signal::TERM);
    let text = screen.end();
    assert!(text.contains("it was stopped:") && text.contains("digest "), "{text}");
}

#[test]
fn there_is_no_view_where_it_makes_no_sense() {
    image();
    let place = Place::new();
    for (run, arguments, environment) in [
        ("dumb", "--branches 2 world.toml", &[("TERM", "dumb")][..]),
        ("json", "--branches 2 --json world.toml", &[]),
        ("plain", "--branches 2 --plain world.toml", &[]),
        ("pipe", "--branches 2 world.toml | cat", &[]),
        ("input", "--branches 2 world.toml < /dev/null", &[]),
        ("unset", "--branches 2 world.toml", &[("TERM", "")]),
    ] {
        let text = place.explore(run, arguments, environment).end_without_view();
        assert!(text.contains("status"), "{run}: {text}");
    }
    let mut screen = place.explore("grey", "--branches 6 world.toml", &[("NO_COLOR", "1")]);
    screen.until(ENTER, 1);
    let bytes = Arc::clone(&screen.bytes);
    screen.end();
    let text = String::from_utf8_lossy(&bytes.lock().unwrap()).into_owned();
    let view = text.split_once(ENTER).unwrap().1.rsplit_once(LEAVE).unwrap().0;
    assert!(
        view.contains("branches") && !view.contains("\u{1b}[38") && !view.contains("\u{1b}[31"),
        "{view:?}"
    );
    let output = everett(&["explore", "--plain", &place.path("missing.toml").display().to_string()]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
}
