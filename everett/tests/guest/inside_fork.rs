//! Commands, shells and files in throw-away forks.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use everett_explorer::plan::{Names, PlanEntry};
use everett_protocol::{Exit, Stream};
use everett_session::inside::files::{self, FilesError};
use everett_session::inside::fork::{Fork, ForkError};
use everett_session::machines::EngineOptions;
use everett_session::world::conversation::CannotAsk;
use everett_session::world::event::{Event, What};
use everett_session::world::timeline::{CannotInject, Timeline};
use everett_streams::Seed;
use everett_vmm::machine::Until;
use tempfile::TempDir;

use crate::support::{MS, everett, launcher, launcher_of, ready, run_to_end, shown, under, world_file};

const S: u64 = 1000 * MS;

/// Two servers, of which one is the other's replica.
const PAIR: &str = r#"
[image]
suite = "bookworm"
[[node]]
name = "a"
memory = "160M"
packages = ["openssl", "python3", "redis-server", "redis-tools", "sqlite3"]
[[node.service]]
name = "redis"
argv = ["redis-server", "--protected-mode", "no", "--save", ""]
ready = { tcp = 6379 }
[[node]]
name = "b"
memory = "160M"
packages = ["openssl", "python3", "redis-server", "redis-tools", "sqlite3"]
[[node.service]]
name = "redis"
argv = ["redis-server", "--protected-mode", "no", "--save", ""]
ready = { tcp = 6379 }
"#;

fn shell(fork: &Fork, script: &str) -> everett_protocol::Exec {
    fork.command(0, ["sh", "-c", script].map(str::to_owned).to_vec(), None)
}

/// Runs a script on the first node. Returns its standard output, its error output and its end.
fn run(fork: &mut Fork, script: &str) -> (String, String, Exit) {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let command = shell(fork, script);
    let exit = fork
        .run(0, command, 20 * S, &mut |output| match output.stream {
            Stream::Stdout => out.extend(output.bytes),
            Stream::Stderr => errors.extend(output.bytes),
        })
        .unwrap();
    (String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap(), exit)
}

fn printed(fork: &mut Fork, script: &str) -> String {
    let (out, errors, exit) = run(fork, script);
    assert!(exit.success(), "{exit} {errors}");
    out
}

/// Returns a timeline of the test world, 200 ms after *ready*. Its driver is running.
fn timeline() -> Timeline {
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(7)).unwrap();
    timeline.run(&Until::vtime(timeline.vtime() + 200 * MS));
    timeline.take_events();
    timeline
}

#[test]
fn a_fork_runs_commands_and_the_timeline_stays_as_it_is() {
    let mut fork = Fork::new(timeline());
    let (out, errors, exit) = run(&mut fork, "echo out; echo err >&2; printf end; touch /tmp/mine; exit 3");
    assert_eq!((&*out, &*errors, exit), ("out\nend", "err\n", Exit::Code(3)));
    assert_eq!(run(&mut fork, "kill -9 $$").2, Exit::Signal(9));
    fork.put_file(0, "/tmp/deep/file", 0o640, Some("redis"), &[b'x'; 1_200_000]).unwrap();
    let expected = "640 redis 1200000\n";
    assert_eq!(printed(&mut fork, "ls /tmp/mine >/dev/null && stat -c '%a %U %s' /tmp/deep/file"), expected);
    let mut input = fork.command(0, vec!["cat".to_owned()], Some("redis"));
    input.stdin = Some("text\u{1}".to_owned());
    let mut read = Vec::new();
    fork.run(0, input, S, &mut |output| read.extend(output.bytes)).unwrap();
    assert_eq!(read, b"text\x01");
    // A command that does not end, and one that does not exist.
    let before = fork.vtime();
    let endless = shell(&fork, "sleep 1000");
    assert_eq!(fork.run(0, endless, 100 * MS, &mut |_| {}), Err(ForkError::NoEnd(100 * MS)));
    assert!((100 * MS..150 * MS).contains(&(fork.vtime() - before)));
    let missing = fork.command(0, vec!["nothing".to_owned()], None);
    let refused = fork.run(0, missing, S, &mut |_| {}).unwrap_err();
    assert!(matches!(&refused, ForkError::Refused(why) if why.contains("nothing")), "{refused}");
    // The driver of the workload has gone on, and its events are the fork's.
    fork.pass(300 * MS).unwrap();
    let events = fork.take_events();
    let is_of_driver = |event: &Event| matches!(&event.what, What::Line { unit, .. } if unit == "load");
    let is_other =
        |event: &Event| matches!(&event.what, What::Line { unit, .. } if unit != "load" && unit != "redis");
    assert!(events.iter().any(is_of_driver) && !events.iter().any(is_other), "{events:?}");

    // A second fork of the same instant has none of the files, and its trail is the recorded one.
    let mut second = Fork::new(timeline());
    second.pass(300 * MS).unwrap();
    let mut recorded = launcher(EngineOptions::default()).start(Seed::new(7)).unwrap();
    run_to_end(&mut recorded, 600 * MS);
    let points = second.timeline().trail().points().to_vec();
    assert!(points.len() > 2 && recorded.trail().points().starts_with(&points), "{points:?}");
    assert_eq!(printed(&mut second, "ls /tmp"), "");
}

#[test]
fn all_machines_go_on_in_a_fork_and_faults_can_be_ended() {
    let (launcher, points) = ready(launcher_of(PAIR));
    let plan = r#"{"at": "100ms", "for": "1000s", "fault": "power_loss", "node": "a"}"#;
    let faulty = under(&launcher, &points, plan);
    let start = || {
        let mut timeline = faulty.start(Seed::new(3)).unwrap();
        timeline.run(&Until::vtime(timeline.vtime() + 50 * MS));
        timeline
    };
    let mut fork = Fork::new(start());
    assert_eq!(printed(&mut fork, "redis-cli -h b set key value; redis-cli -h b get key"), "OK\nvalue\n");
    // The plan's fault takes the power while a command runs, and then no command can start.
    let endless = shell(&fork, "sleep 1000");
    assert_eq!(fork.run(0, endless, 10 * S, &mut |_| {}), Err(ForkError::Lost));
    let off = fork.wait_for_agent(0, S);
    assert_eq!(off, Err(ForkError::CannotAsk(CannotAsk::Off)));
    let other = fork.command(1, ["redis-cli", "get", "key"].map(str::to_owned).to_vec(), None);
    let mut value = Vec::new();
    assert!(fork.run(1, other, S, &mut |output| value.extend(output.bytes)).unwrap().success());
    assert_eq!(value, b"value\n");
    // Without faults, the machine boots again.
    fork.calm();
    fork.wait_for_agent(0, 60 * S).unwrap();
    assert_eq!(printed(&mut fork, "hostname"), "a\n");
    // In a fork without faults from its beginning, the power stays.
    let mut calm = Fork::new(start());
    calm.calm();
    assert_eq!(printed(&mut calm, "sleep 3; echo on"), "on\n");
    injected_faults(Fork::new(start()), &launcher.world.names());
    // A timeline without a plan takes no faults.
    let plain = launcher.start(Seed::new(3)).unwrap();
    let refused = inject(&mut Fork::new(plain), &launcher.world.names(), r#"{"fault": "heal"}"#);
    assert_eq!(refused, Err(ForkError::Fault(CannotInject::NoPlan)));
}

fn inject(fork: &mut Fork, names: &Names, line: &str) -> Result<u32, ForkError> {
    fork.inject(&PlanEntry::parse(line).unwrap(), names)
}

/// Injects faults into a fork whose plan takes the power from the first node 50 ms later.
fn injected_faults(mut fork: Fork, names: &Names) {
    let began_ns = fork.vtime();
    // They take effect in this order: the heal ends the first two faults, and the third begins after it.
    let pause = r#"{"fault": "pause", "node": "b"}"#;
    assert_eq!(inject(&mut fork, names, pause), Ok(0));
    assert_eq!(inject(&mut fork, names, r#"{"fault": "partition", "links": "all"}"#), Ok(1));
    let twice = inject(&mut fork, names, pause).unwrap_err();
    assert!(twice.to_string().contains("fault") && format!("{twice:?}").contains("paused"), "{twice:?}");
    assert_eq!(inject(&mut fork, names, r#"{"fault": "heal"}"#), Ok(2));
    assert_eq!(inject(&mut fork, names, r#"{"for": "20ms", "fault": "pause", "node": "b"}"#), Ok(3));
    fork.pass(40 * MS).unwrap();
    let events: Vec<(u64, u32, bool)> = fork
        .take_events()
        .iter()
        .filter_map(|event| match event.what {
            What::Fault { id, .. } => Some((event.vtime_ns - began_ns, id, true)),
            What::Healed { id } => Some((event.vtime_ns - began_ns, id, false)),
            _ => None,
        })
        .collect();
    let expected =
        [(0, 0, true), (0, 1, true), (1, 0, false), (1, 1, false), (1, 3, true), (20 * MS + 1, 3, false)];
    assert_eq!(events, expected);
    // The power loss of the plan still comes, and ends with all other faults. The machine can lose its power again then.
    fork.pass(20 * MS).unwrap();
    assert_eq!(fork.wait_for_agent(0, 0), Err(ForkError::CannotAsk(CannotAsk::Off)));
    assert!(inject(&mut fork, names, r#"{"fault": "reset", "node": "a"}"#).is_err());
    fork.calm();
    fork.wait_for_agent(0, 60 * S).unwrap();
    inject(&mut fork, names, r#"{"fault": "power_loss", "node": "a"}"#).unwrap();
    fork.pass(MS).unwrap();
    assert_eq!(fork.wait_for_agent(0, 0), Err(ForkError::CannotAsk(CannotAsk::Off)));
}

#[test]
fn a_fork_whose_machine_ends_says_so_after_a_command_was_given_up() {
    let mut fork = Fork::new(timeline());
    // One command is given up at its limit. The other one is interrupted: its caller waits for it no longer.
    let flood = "sleep 0.2; seq 1000; sleep 0.1; echo o > /proc/sysrq-trigger; sleep 1000";
    let command = shell(&fork, flood);
    assert_eq!(fork.run(0, command, 100 * MS, &mut |_| {}), Err(ForkError::NoEnd(100 * MS)));
    let other = shell(&fork, "echo begun; sleep 1000");
    let other = fork.start(0, other).unwrap();
    fork.pass(MS).unwrap();
    fork.forget(other);
    let ended = fork.pass(60 * S);
    assert!(matches!(&ended, Err(ForkError::Ended(_))), "{ended:?}");
    // What has ended stays so, even while a job waits.
    assert_eq!(fork.pass(S), ended);
    assert_eq!(fork.next(other, u64::MAX).unwrap_err(), ended.unwrap_err());
}

/// Makes a folder with links, modes, a name that could control a terminal, and a file that is not text.
const FILES: &str = r#"
mkdir -p /srv/top/empty /srv/top/deep/er; cd /srv/top
head -c 300000 /usr/bin/python3.11 > binary; : > nothing
ln binary deep/er/again; ln -s ../../etc/hostname deep/link
printf x > "$(printf 'a\033[2J\nb')"; printf y > "$(printf '\377')"
mkfifo pipe; chmod 751 deep; chmod 4755 binary; touch -d @1000000 nothing
base64 binary
"#;

#[test]
fn files_are_listed_and_copied_out_of_a_fork() {
    use base64::Engine as _;
    let folder = tempfile::tempdir().unwrap();
    let mut fork = Fork::new(timeline());
    let binary = printed(&mut fork, FILES);
    let binary = base64::engine::general_purpose::STANDARD.decode(binary.replace('\n', "")).unwrap();
    assert_eq!(binary.len(), 300_000);
    let copied = files::copy(&mut fork, 0, "/srv/top", folder.path(), 1 << 20, &|| true).unwrap();
    assert_eq!((copied.files, copied.folders, copied.links, copied.bytes), (4, 4, 2, 300_002), "{copied:?}");
    assert_eq!(copied.left_out, ["top/pipe: a pipe has no content"]);
    let at = |name: &str| folder.path().join("top").join(name);
    assert!(fs::read(at("binary")).unwrap() == binary && fs::read(at("deep/er/again")).unwrap() == binary);
    let metadata = |name: &str| fs::symlink_metadata(at(name)).unwrap();
    assert_eq!(metadata("binary").ino(), metadata("deep/er/again").ino());
    assert_eq!((metadata("binary").mode() & 0o7777, metadata("deep").mode() & 0o7777), (0o755, 0o751));
    assert_eq!(metadata("nothing").mtime(), 1_000_000);
    assert_eq!(fs::read_link(at("deep/link")).unwrap(), Path::new("../../etc/hostname"));
    assert_eq!(fs::read(at("a\x1b[2J\nb")).unwrap(), b"x");
    assert!(at("empty").is_dir());

    let again = files::copy(&mut fork, 0, "/srv/top", folder.path(), 1 << 20, &|| true);
    assert!(matches!(again, Err(FilesError::Exists(_))), "{again:?}");
    let long = files::copy(&mut fork, 0, "/srv/top/binary", &at("long"), 299_999, &|| true);
    assert!(matches!(long, Err(FilesError::TooLong(299_999))) && !at("long").exists(), "{long:?}");
    let missing = files::copy(&mut fork, 0, "/srv/none", folder.path(), 1, &|| true).unwrap_err();
    assert!(missing.to_string().starts_with("/srv/none: No such file"), "{missing}");
    let ended = files::copy(&mut fork, 0, "/srv/top", &at("ended"), 1 << 20, &|| false);
    assert!(matches!(ended, Err(FilesError::Interrupted)));

    let listing = files::list(&mut fork, 0, "/srv/top", &|| true).unwrap();
    let inodes = printed(&mut fork, "find /srv /srv/top -maxdepth 1 -printf '%i\\n'");
    let names: Vec<&[u8]> = listing.entries.iter().map(|entry| &entry.name[..]).collect();
    let expected: [&[u8]; 8] =
        [b".", b"..", b"a\x1b[2J\nb", b"binary", b"deep", b"empty", b"nothing", b"pipe"];
    assert_eq!(names[..8], expected);
    assert_eq!(names[8], b"\xff");
    for entry in &listing.entries {
        assert!(inodes.lines().any(|inode| inode == entry.inode.to_string()), "{entry:?} {inodes}");
    }
    let one = files::list(&mut fork, 0, "/srv/top/deep/link", &|| true).unwrap();
    assert_eq!(one.entries[0].target.as_deref(), Some(&b"../../etc/hostname"[..]));
}

/// Replaces Everett's program while Everett writes it. The replacement claims a file outside of the folder of the copy.
const HOSTILE: &str = r#"
printf '#!/bin/sh\necho "n - 644 0 0 1 0 0 1 1 0 0 Li4veA=="; echo "d eA=="; echo "z "; exit 0\n' > /run/fake
chmod 755 /run/fake
python3 -c '
import os, time
while True:
    try:
        if open("/run/everett/inside", "rb").read(2) == b"\x7fE":
            os.rename("/run/fake", "/run/everett/inside")
            break
    except OSError:
        pass
    time.sleep(0.0005)
' > /dev/null 2>&1 &
"#;

#[test]
fn a_guest_that_replaces_the_program_cannot_write_outside_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let mut fork = Fork::new(timeline());
    printed(&mut fork, HOSTILE);
    fork.pass(200 * MS).unwrap();
    let copied = files::copy(&mut fork, 0, "/etc/hostname", &inner, 1 << 20, &|| true);
    assert!(matches!(copied, Err(FilesError::Invalid(why)) if why.contains("name")), "{copied:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count() + fs::read_dir(&inner).unwrap().count(), 1);
}

/// Returns a run directory with a branch of the test world.
fn run_directory() -> &'static str {
    static RUN: OnceLock<(TempDir, String)> = OnceLock::new();
    let (_, run) = RUN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run").display().to_string();
        let world = world_file().display().to_string();
        let explored = everett(&["explore", &world, "--seed", "1", "--branches", "1", "--plain", "-o", &run]);
        assert!(explored.status.code().is_some_and(|code| code < 2), "{}", shown(&explored));
        (folder, run)
    });
    run
}

#[test]
fn commands_of_forks_print_and_end_as_they_say() {
    let run = run_directory();
    let fork = |command: &str, arguments: &[&str]| everett(&[&[command, run, "b0"], arguments].concat());
    let check = |output: &Output, status: i32, out: &str, errors: &str| {
        assert_eq!(output.status.code(), Some(status), "{}", shown(output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), out, "{}", shown(output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(errors), "{}", shown(output));
    };
    let script = "printf 'a\\377\\n'; echo b >&2; exit 7";
    let output = fork("shell", &["--", "sh", "-c", script]);
    assert_eq!(
        (output.status.code(), &output.stdout[..], &output.stderr[..]),
        (Some(7), &b"a\xff\n"[..], &b"b\n"[..])
    );
    let json =
        everett(&["--json", "shell", run, "b0", "--user", "redis", "--", "sh", "-c", "id -un; kill -9 $$"]);
    let text = String::from_utf8_lossy(&json.stdout).into_owned();
    assert!(
        json.status.code() == Some(2) && text.contains(r#""stream":"stdout","text":"redis\n""#),
        "{text}"
    );
    assert!(text.contains(r#""kind":"exit","node":"a","signal":9"#), "{text}");
    check(&fork("shell", &["--", "nothing"]), 2, "", "everett: a: cannot start nothing: No such file");
    check(&fork("shell", &[]), 2, "", "a shell needs a terminal; give a command after --");
    check(
        &fork("shell", &["--node", "n9", "--", "true"]),
        2,
        "",
        "--node: no node of this world is named n9",
    );
    check(&fork("ls", &["a:etc"]), 2, "", "the path must begin with /");
    let listed = fork("ls", &["a:/opt"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("load.sh\n"), "{}", shown(&listed));
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let copied = fork("cp", &["a:/opt/load.sh", copy.to_str().unwrap()]);
    check(
        &copied,
        0,
        &format!(
            "{}: 1 file, 0 folders, 0 links, {} bytes\n",
            copy.display(),
            fs::metadata(&copy).unwrap().len()
        ),
        "",
    );
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/world/load.sh");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(source).unwrap());
    let replayed = everett(&["replay", run, "b0"]);
    assert!(replayed.status.success(), "the recorded branch is as before: {}", shown(&replayed));
}

struct Screen {
    child: Child,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Screen {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// Waits until the output has a text `times` times. Fails if the process ends first.
    fn until(&mut self, text: &str, times: usize) {
        while self.text().matches(text).count() < times {
            let has_ended = self.child.try_wait().unwrap().is_some();
            std::thread::park_timeout(Duration::from_millis(30));
            assert!(
                !has_ended || self.text().matches(text).count() >= times,
                "no {text:?}:\n{}",
                self.text()
            );
        }
    }

    fn press(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }
}

/// Opens a shell in a terminal, which `script` makes.
fn open_shell(arguments: &str) -> Screen {
    let line = format!(
        "stty rows 33 cols 101; stty -a > /dev/stderr; {} shell {} b0 {arguments}; echo status $?; stty -a > /dev/stderr",
        env!("CARGO_BIN_EXE_everett"),
        run_directory()
    );
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&bytes);
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = output.read(&mut part) {
            into.lock().unwrap().extend_from_slice(&part[..read]);
        }
    });
    Screen { child, bytes }
}

#[test]
fn a_shell_on_a_terminal_behaves_as_one() {
    let mut screen = open_shell("");
    screen.until("root@a:/#", 1);
    screen.press("stty size; tty; echo $TERM | tr a-z A-Z\r");
    screen.until("XTERM-256COLOR", 1);
    assert!(screen.text().contains("33 101\r\n/dev/pts/"), "{}", screen.text());
    // The last word is typed with an error, which the backspace removes.
    screen.press("seq 3 | tac | paste -sd+ | sed 's/+/ plus /g'; echo wordx\x7f\x7fs done\r");
    screen.until("3 plus 2 plus 1", 1);
    screen.until("\r\nwors done", 1);
    screen.press("sleep 100; echo after $?\r");
    std::thread::park_timeout(Duration::from_millis(500));
    screen.press("\x03");
    screen.until("^C", 1);
    screen.press("echo status of it $?\r");
    screen.until("status of it 130", 1);
    screen.press("exit 5\r");
    screen.until("status 5", 1);
    // The terminal has its modes back: `stty` shows them a second time.
    screen.until("icanon", 2);
    let text = screen.text();
    let modes: Vec<&str> = text.lines().filter(|line| line.contains("icanon")).collect();
    assert!(!text.contains("\r\nafter") && modes.len() == 2 && modes[0] == modes[1], "{text}");
    assert!(screen.child.wait().unwrap().success());
}

#[test]
fn a_key_leaves_a_shell() {
    let mut screen = open_shell("-t -- cat");
    screen.until("Ctrl-] leaves", 1);
    screen.press("text\r");
    // The terminal echoes, and `cat` repeats.
    screen.until("text\r\n", 2);
    screen.press("\x1d");
    screen.until("The fork ended at", 1);
    screen.until("status 0", 1);
    assert!(screen.child.wait().unwrap().success());
}
