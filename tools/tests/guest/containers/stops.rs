//! Restarts of services: `stop_signal`, `stop_grace_period`, `init`, and `restart` of `depends_on`, seen from inside.

use everett_session::event::{Event, What};

use super::compose::project_of;
use super::run_file_under;
use crate::support::{MS, findings, lines};

/// The first argument names the task.
const PROGRAM: &str = r#"
use std::fs;
use std::process::Command;
use std::time::Duration;
unsafe extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn write(file: i32, text: *const u8, bytes: usize) -> isize;
}
extern "C" fn caught(number: i32) {
    let text: &[u8] = if number == 10 { b"caught 10\n" } else { b"caught 15\n" };
    unsafe { write(1, text.as_ptr(), text.len()) };
}
extern "C" fn child_caught(_: i32) {
    let text = b"the child caught it\n";
    unsafe { write(1, text.as_ptr(), text.len()) };
}
fn sleep(ms: u64) { std::thread::sleep(Duration::from_millis(ms)); }
fn start(task: &str) -> std::process::Child { Command::new("/program").arg(task).spawn().unwrap() }
/// Counts the processes with this line in /proc/PID/status, this one not.
fn count(line: &str) -> usize {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let others = names.filter_map(|name| name.parse::<u32>().ok()).filter(|pid| *pid != std::process::id());
    others.filter(|pid| fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| text.contains(line))).count()
}
fn main() {
    match std::env::args().nth(1).unwrap().as_str() {
        // Catches signals and goes on, and so does its child.
        "patient" => {
            println!("started");
            start("child");
            for number in [10, 15] { unsafe { signal(number, caught) }; }
        }
        "child" => for number in [10, 15] { unsafe { signal(number, child_caught) }; },
        // Catches nothing, and has two orphans.
        "family" => {
            println!("started beside {} others", count("Name:\tprogram"));
            start("middle").wait().unwrap();
            sleep(600);
            println!("zombies: {}", count("State:\tZ"));
        }
        "middle" => { start("orphan"); start("short"); return; }
        "orphan" => {
            sleep(300);
            let parent = fs::read_to_string(format!("/proc/{}/comm", std::os::unix::process::parent_id())).unwrap();
            println!("an orphan of {}", parent.trim());
        }
        "short" => { sleep(300); return; }
        _ => println!("started"),
    }
    loop { std::thread::park(); }
}
"#;

const COMPOSE: &str = "
services:
  asked: { image: i, command: patient, stop_signal: SIGUSR1, stop_grace_period: 2s }
  usual: { image: i, command: patient }
  plain: { image: i, command: family, stop_grace_period: 1s, restart: always }
  tini: { image: i, command: family, init: true }
  follower:
    image: i
    command: simple
    depends_on: { asked: { condition: service_started, restart: true }, usual: { condition: service_started } }
x-everett:
  images: { i: 'oci:layout:it' }
";

/// vtime of the restarts after *ready*.
const AT_MS: u64 = 1_000;

#[test]
fn services_are_stopped_as_the_compose_file_says() {
    let folder = tempfile::tempdir().unwrap();
    project_of(folder.path(), PROGRAM, COMPOSE);
    let file = folder.path().join("compose.yaml");
    let line = |name: &str| {
        format!(
            "{{\"at\":\"{AT_MS}ms\",\"fault\":\"restart_service\",\"node\":\"{name}\",\"unit\":\"{name}\"}}\n"
        )
    };
    let plan = ["asked", "usual", "plain", "tini"].map(line).concat();
    let events = run_file_under(&file, &plan, 13_000 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());

    // The service that is asked has the signal of the file, the other SIGTERM. Without a supervisor its process group gets it.
    assert_eq!(lines(&events, "asked"), ["started", "caught 10", "started"]);
    let mut usual = lines(&events, "usual");
    usual.sort_unstable();
    assert_eq!(usual, ["caught 15", "started", "started", "the child caught it"]);
    // Both go on, and are killed when their time is over.
    assert_eq!(ends(&events, "asked"), [("signal 9".to_owned(), 2_000)]);
    assert_eq!(ends(&events, "usual"), [("signal 9".to_owned(), 10_000)]);

    // The first process of a container does not end by a signal that it does not catch. It adopts orphans.
    assert_eq!(ends(&events, "plain"), [("signal 9".to_owned(), 1_000)]);
    let of_plain = ["started beside 0 others", "an orphan of program", "zombies: 1"];
    assert_eq!(lines(&events, "plain"), [of_plain, of_plain].concat());
    // With an init it is an ordinary process, and the init reaps orphans.
    assert_eq!(ends(&events, "tini"), [("exit status 143".to_owned(), 0)]);
    let of_tini = ["started beside 0 others", "an orphan of init", "zombies: 0"];
    assert_eq!(lines(&events, "tini"), [of_tini, of_tini].concat());

    // The follower is restarted after the service that it asks for, and not after the other.
    assert_eq!(lines(&events, "follower"), ["started", "started"]);
    let end = |unit: &str| exits(&events, unit)[0].0;
    assert!(end("asked") < end("follower") && end("follower") < end("usual"));

    assert!(run_file_under(&file, &plan, 13_000 * MS) == events, "a second run differs");
}

/// Returns how a service ended, and when, in whole tenths of a second after it was asked to end.
fn ends(events: &[Event], unit: &str) -> Vec<(String, u64)> {
    let asked = |event: &&Event| matches!(&event.what, What::Effect { text } if text.starts_with(&format!("{unit} is asked")));
    let asked_ns = events.iter().find(asked).expect("it is asked").vtime_ns;
    let after = |at_ns: u64| (at_ns - asked_ns) / (100 * MS) * 100;
    exits(events, unit).into_iter().map(|(at_ns, status)| (status, after(at_ns))).collect()
}

/// Returns when and how a service ended.
fn exits(events: &[Event], unit: &str) -> Vec<(u64, String)> {
    let exit = |event: &Event| match &event.what {
        What::Exit { unit: of, status, .. } if of == unit => Some((event.vtime_ns, status.clone())),
        _ => None,
    };
    events.iter().filter_map(exit).collect()
}
