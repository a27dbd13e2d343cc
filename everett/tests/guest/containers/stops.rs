//! Restarts of services, seen from inside the machine: `stop_signal`, `stop_grace_period`, `init`, and `restart` in
//! `depends_on`.

use std::collections::BTreeSet;

use everett_session::world::event::{Event, What};

use super::compose::project_of;
use super::run_file_under;
use crate::support::{MS, findings, lines};

/// Program of all services. Its first argument selects the task.
const PROGRAM: &str = r#"
use std::fs;
use std::process::Command;
use std::time::Duration;
unsafe extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn write(file: i32, text: *const u8, bytes: usize) -> isize;
    fn kill(process: i32, number: i32) -> i32;
}
extern "C" fn caught(number: i32) {
    let text: &[u8] = if number == 10 { b"caught 10\n" } else { b"caught 15\n" };
    unsafe { write(1, text.as_ptr(), text.len()) };
}
extern "C" fn child_caught(_: i32) {
    let text = b"the child caught it\n";
    unsafe { write(1, text.as_ptr(), text.len()) };
}
extern "C" fn nothing(_: i32) {}
fn sleep(ms: u64) { std::thread::sleep(Duration::from_millis(ms)); }
fn start(task: &str) -> std::process::Child { Command::new("/program").arg(task).spawn().unwrap() }
/// Counts the processes with this line in /proc/PID/status, except this process.
fn count(line: &str) -> usize {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let others = names.filter_map(|name| name.parse::<u32>().ok()).filter(|pid| *pid != std::process::id());
    others.filter(|pid| fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| text.contains(line))).count()
}
fn main() {
    match std::env::args().nth(1).unwrap().as_str() {
        // Catches signals and goes on. Its child does the same.
        "patient" => {
            println!("started");
            start("child");
            for number in [10, 15] { unsafe { signal(number, caught) }; }
        }
        "child" => for number in [10, 15] { unsafe { signal(number, child_caught) }; },
        // Catches no signals, and leaves two orphans.
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
            unsafe { signal(15, nothing) };
            loop {
                println!("orphan {}", std::process::id());
                sleep(100);
            }
        }
        "short" => { sleep(300); return; }
        // Sends a signal to its whole process group. After a pause, sends the same signal to the supervisor, which must
        // not pass it on. Linux merges equal pending signals, so without the pause the test could miss a second one.
        "group" => {
            println!("started");
            unsafe { signal(10, caught) };
            unsafe { kill(0, 10) };
            sleep(100);
            unsafe { kill(std::os::unix::process::parent_id() as i32, 10) };
        }
        "counts" => println!("started beside {} others", count("Name:\tprogram")),
        // Kills the supervisor.
        "murder" => {
            let is_supervisor = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"/run/everett/init\0run\0"));
            let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            for pid in pids.filter(is_supervisor) { unsafe { kill(pid, 9) }; }
            return;
        }
        "healthy" => return,
        task => panic!("there is no task {task}"),
    }
    loop { std::thread::park(); }
}
"#;

const COMPOSE: &str = "
services:
  asked:
    image: i
    command: patient
    stop_signal: SIGUSR1
    stop_grace_period: 2s
    healthcheck: { test: [CMD, /program, healthy] }
  usual: { image: i, command: patient }
  plain: { image: i, command: family, stop_grace_period: 1s, restart: always }
  tini: { image: i, command: family, init: true }
  mortal: { image: i, command: counts, stop_grace_period: 1s, restart: always }
  follower:
    image: i
    command: group
    init: true
    depends_on: { asked: { condition: service_healthy, restart: true }, usual: { condition: service_started } }
x-everett:
  workload: { driver: [{ name: once, node: asked, argv: [/program, healthy] }] }
  images: { i: 'oci:layout:it' }
";

/// Time from *ready* (all services are up) to the restarts, in milliseconds of virtual time.
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
    let murder =
        "{\"at\":\"500ms\",\"fault\":\"command\",\"node\":\"mortal\",\"argv\":[\"/program\",\"murder\"]}\n";
    let plan = murder.to_owned() + &["asked", "usual", "plain", "tini"].map(line).concat();
    let events = run_file_under(&file, &plan, 13_000 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());

    // Service `asked` gets SIGUSR1, its `stop_signal` in the compose file. Service `usual` gets SIGTERM, the default.
    // Services with `init`, `stop_signal` or `stop_grace_period` have a supervisor, a program of Everett that signals
    // only the service's first process. `usual` has no supervisor, so the signal goes to its whole process group.
    assert_eq!(lines(&events, "asked"), ["started", "caught 10", "started"]);
    let mut usual = lines(&events, "usual");
    usual.sort_unstable();
    assert_eq!(usual, ["caught 15", "started", "started", "the child caught it"]);
    // The two services catch the signal and go on, so they are killed when their grace period is over.
    assert_eq!(ends(&events, "asked"), [("signal 9".to_owned(), 2_000)]);
    assert_eq!(ends(&events, "usual"), [("signal 9".to_owned(), 10_000)]);

    // When a service ends, its orphans end too.
    for unit in ["plain", "tini"] {
        assert_orphans_end(&events, unit);
    }

    // Without an init, the program is the first process of the container. It survives SIGTERM without catching it, and
    // it adopts orphans.
    assert_eq!(ends(&events, "plain"), [("signal 9".to_owned(), 1_000)]);
    let of_plain = ["started beside 0 others", "an orphan of program", "zombies: 1"];
    assert_eq!(without_orphans(&events, "plain"), [of_plain, of_plain].concat());
    // With an init, the program is an ordinary process, and the init reaps orphans.
    assert_eq!(ends(&events, "tini"), [("exit status 143".to_owned(), 0)]);
    let of_tini = ["started beside 0 others", "an orphan of init", "zombies: 0"];
    assert_eq!(without_orphans(&events, "tini"), [of_tini, of_tini].concat());
    // A service does not outlive its supervisor.
    assert_eq!(lines(&events, "mortal"), ["started beside 0 others"; 2]);

    // The follower restarts after `asked`, as its `depends_on` says, and not after `usual`. A driver (a client program
    // of the workload) ran on the node of `asked` and has ended. The agent (Everett's program in the guest) reports
    // only that all units of a node are ready, so it reports nothing more. Everett therefore takes `asked` as ready as
    // soon as it has started, and then restarts the follower.
    assert_eq!(lines(&events, "follower"), ["started", "caught 10", "started", "caught 10"]);
    let end = |unit: &str| first_end_ns(&events, unit);
    assert!(end("asked") < end("follower") && end("follower") < end("usual"));

    assert!(run_file_under(&file, &plan, 13_000 * MS) == events, "a second run differs");
}

/// Returns each end of a service: how it ended, and the time since the stop request, in milliseconds. The time is
/// rounded down to a multiple of 100 ms.
fn ends(events: &[Event], unit: &str) -> Vec<(String, u64)> {
    let asked = |event: &&Event| matches!(&event.what, What::Effect { text } if text.starts_with(&format!("{unit} is asked")));
    let asked_ns = events.iter().find(asked).expect("it is asked").vtime_ns;
    let after = |at_ns: u64| (at_ns - asked_ns) / (100 * MS) * 100;
    exits(events, unit).into_iter().map(|(at_ns, status)| (status, after(at_ns))).collect()
}

/// Returns the lines of a service, without the repeated lines of its orphans.
fn without_orphans<'e>(events: &'e [Event], unit: &str) -> Vec<&'e str> {
    lines(events, unit).into_iter().filter(|line| !line.starts_with("orphan ")).collect()
}

/// Asserts that the orphans which printed before the first end of a service print nothing after that end.
fn assert_orphans_end(events: &[Event], unit: &str) {
    let end_ns = first_end_ns(events, unit);
    let (before, after): (Vec<&Event>, Vec<&Event>) =
        events.iter().partition(|event| event.vtime_ns <= end_ns);
    let orphans = |events: Vec<&Event>| -> BTreeSet<String> {
        let lines = events.into_iter().filter_map(|event| match &event.what {
            What::Line { unit: of, text, .. } if of == unit => Some(text.clone()),
            _ => None,
        });
        lines.filter(|text| text.starts_with("orphan ")).collect()
    };
    let (before, after) = (orphans(before), orphans(after));
    assert!(!before.is_empty() && !after.is_empty(), "orphans of {unit}: {before:?}, then {after:?}");
    assert!(before.is_disjoint(&after), "orphans of {unit}: {before:?}, then {after:?}");
}

/// Returns the vtime at which a service ended for the first time.
fn first_end_ns(events: &[Event], unit: &str) -> u64 {
    exits(events, unit).first().unwrap_or_else(|| panic!("{unit} has not ended")).0
}

/// Returns the vtimes at which a service ended, and how it ended.
fn exits(events: &[Event], unit: &str) -> Vec<(u64, String)> {
    let exit = |event: &Event| match &event.what {
        What::Exit { unit: of, status, .. } if of == unit => Some((event.vtime_ns, status.clone())),
        _ => None,
    };
    events.iter().filter_map(exit).collect()
}
