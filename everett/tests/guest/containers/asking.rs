//! Answers to questions about the timeline of a program whose system calls are known.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{explored, world_of_one};
use crate::support::{everett, json_lines, python_packages, shown};

/// Packages with the schema of Perfetto, and with the library that it needs.
const PACKAGES: [&str; 2] = ["perfetto==0.59.1", "protobuf==7.36.2"];

/// A program that makes the same calls again and again, and wakes a second thread.
pub(super) const SOURCE: &str = r#"#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int word;
static void *wait_for_word(void *unused) {
    for (;;)
        syscall(SYS_futex, &word, 128, word, 0);
}
static void on_signal(int number) {
}
int main(void) {
    pthread_t thread;
    int ends[2];
    char bytes[100];
    signal(SIGUSR1, on_signal);
    pthread_create(&thread, 0, wait_for_word, 0);
    for (;;) {
        open("/no/such \"file\"", O_RDONLY);
        pipe2(ends, O_NONBLOCK);
        write(ends[1], "one\r\n\0012", 7);
        read(ends[0], bytes, sizeof bytes);
        read(ends[0], bytes, sizeof bytes);
        fdatasync(ends[0]);
        close(ends[0]);
        close(ends[1]);
        char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page[5] = 1;
        munmap(page, 4096);
        kill(getpid(), SIGUSR1);
        word++;
        syscall(SYS_futex, &word, 129, 1);
        usleep(10000);
    }
}
"#;

/// Keys of an exploration with branches of one second.
pub(super) const ONE_SECOND: &str = "segment = \"1s\"\nhorizon = \"1s\"";

/// Returns the lines that `everett ask` prints.
pub(super) fn ask(run: &str, arguments: &[&str]) -> Vec<Value> {
    json_lines(&everett(&[&["--json", "ask", run, "b0"], arguments].concat()))
}

/// Returns a call as `strace` prints it.
fn call(line: &Value) -> String {
    let arguments: Vec<&str> =
        line["arguments"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let result = line["result"].as_str().unwrap_or("<unfinished>");
    format!("{}({}) = {result}", line["name"].as_str().unwrap(), arguments.join(", "))
}

/// Replaces numbers that differ from round to round: inodes and addresses.
fn without_numbers(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = ["pipe:[", "0x"].iter().filter_map(|mark| Some(rest.find(mark)? + mark.len())).min()
    {
        out.push_str(&rest[..at]);
        rest = rest[at..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out + rest
}

const ROUND: [&str; 14] = [
    r#"open("/no/such \"file\"", O_RDONLY|O_LARGEFILE) = -1 ENOENT"#,
    "pipe2([3<pipe:[]>, 4<pipe:[]>], O_NONBLOCK) = 0",
    r#"write(4<pipe:[]>, "one\r\n\0012", 7) = 7"#,
    r#"read(3<pipe:[]>, "one\r\n\0012", 100) = 7"#,
    "read(3<pipe:[]>, 0x, 100) = -1 EAGAIN",
    "fdatasync(3<pipe:[]>) = -1 EINVAL",
    "close(3<pipe:[]>) = 0",
    "close(4<pipe:[]>) = 0",
    "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, NULL) = 0x",
    "munmap(0x, 4096) = 0",
    "getpid() = PID",
    "kill(PID, SIGUSR1) = 0",
    "rt_sigreturn() = 0",
    "futex(0x, FUTEX_WAKE_PRIVATE, 1) = 1",
];

#[test]
fn answers_are_what_a_program_does() {
    let folder = tempfile::tempdir().unwrap();
    let run = explored(folder.path(), SOURCE, &world_of_one(ONE_SECOND), 1, 0);
    system_calls_are_those_that_the_program_makes(&run);
    signals_faults_and_switches_are_seen(&run);
    a_trace_has_the_form_of_perfetto(&run, folder.path());
}

fn system_calls_are_those_that_the_program_makes(run: &str) {
    let lines = ask(run, &["syscalls", "--process", "program"]);
    let number = |line: &Value, field: &str| line[field].as_u64().unwrap();
    let pid = number(&lines[0], "pid");
    let pid_text = pid.to_string();
    let of_main: Vec<String> = lines
        .iter()
        .filter(|line| number(line, "tid") == pid)
        .map(|line| without_numbers(&call(line)).replace(&pid_text, "PID"))
        .collect();
    let starts: Vec<usize> =
        of_main.iter().enumerate().filter(|(_, text)| text.starts_with("open(")).map(|(n, _)| n).collect();
    assert!(starts.len() > 30, "{of_main:#?}");
    // The second thread may start after the first round.
    for pair in starts.windows(2).skip(1) {
        let round = &of_main[pair[0]..pair[1]];
        assert_eq!(round[..14], ROUND, "{round:#?}");
        assert!(round[14].starts_with("nanosleep({tv_sec=0, tv_nsec=10000000}, "), "{round:#?}");
        assert_eq!(round.len(), 15);
    }
    // Each wait of the second thread ends because of a call of the first thread. The last one is unfinished.
    let is = |line: &Value, name: &str| call(line).contains(name);
    let waits: Vec<&Value> = lines.iter().filter(|line| is(line, "FUTEX_WAIT_PRIVATE")).collect();
    let wakes: Vec<&Value> = lines.iter().filter(|line| is(line, "FUTEX_WAKE_PRIVATE, 1) = 1")).collect();
    assert!(waits.len() > 30 && waits.iter().all(|line| number(line, "tid") != pid), "{waits:#?}");
    for wait in &waits[..waits.len() - 1] {
        let end_ns = number(wait, "end_ns");
        let woken_ns = end_ns.saturating_sub(1_000_000).max(number(wait, "vtime_ns"))..end_ns;
        assert!(wakes.iter().any(|wake| woken_ns.contains(&number(wake, "vtime_ns"))), "{wait} {wakes:#?}");
    }
    assert!(waits.last().is_some_and(|wait| wait["end_ns"].is_null()), "{waits:#?}");
    assert!(lines.last().is_some_and(|line| line["result"].is_null()), "{:?}", lines.last());

    let one = everett(&["ask", run, "b0", "syscalls", "--process", "none"]);
    assert_eq!(one.status.code(), Some(2), "{}", shown(&one));
    assert!(String::from_utf8_lossy(&one.stderr).contains("--process: no process none"), "{}", shown(&one));
}

fn signals_faults_and_switches_are_seen(run: &str) {
    let of = |question: &str, kind: &str| {
        let lines = ask(run, &[question, "--process", "program"]);
        lines.into_iter().filter(|line| line["kind"] == kind).collect::<Vec<Value>>()
    };
    // In each round, the program sends a signal to itself, handles it, and touches a new page.
    let (sent, handled) = (of("signals", "signal_sent"), of("signals", "signal_handled"));
    assert!(sent.len() > 30 && sent.len().abs_diff(handled.len()) < 2, "{sent:#?}");
    for line in sent.iter().chain(&handled) {
        assert_eq!(line["signal"], "SIGUSR1", "{line}");
    }
    assert!(
        sent.iter().all(|line| line["by_program"] == true && line["to"]["pid"] == line["pid"]),
        "{sent:#?}"
    );
    let wakes = of("wakes", "woken");
    assert!(wakes.len() > 30 && wakes.iter().all(|line| line["tid"] == line["pid"]), "{wakes:#?}");
    assert!(wakes.iter().all(|line| line["to"]["tid"] != line["pid"]), "{wakes:#?}");
    let faults = of("faults", "page_fault");
    let stores = faults.iter().filter(|line| {
        let address = line["address"].as_str().unwrap();
        line["access"] == "stores to" && line["by_kernel"] == false && address.ends_with("005")
    });
    assert!(stores.count().abs_diff(sent.len()) < 2, "{faults:#?}");
    let switches = of("switches", "switch");
    let is_between = |line: &&Value| {
        line["process"] == "program" && line["to"]["process"] == "program" && line["tid"] != line["to"]["tid"]
    };
    assert!(switches.iter().filter(is_between).count() > 30, "{switches:#?}");
}

fn a_trace_has_the_form_of_perfetto(run: &str, folder: &Path) {
    let file = folder.join("trace").display().to_string();
    let written = ask(run, &["trace", "-o", &file]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/containers/check_trace.py");
    let output =
        Command::new("python3").arg(script).arg(&file).env("PYTHONPATH", python_packages(&PACKAGES)).output();
    let output = output.expect("Python starts");
    assert!(output.status.success(), "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("{} events", written[0]["events"]));
    assert_eq!(lines[1], "processes a");
    assert!(lines[2].contains(" program "), "{text}");
    for name in ["syscall futex", "futex wakes", "cpu runs", "fault page", "signal sends", "signal handles"] {
        let found = lines.iter().find_map(|line| line.strip_prefix(&format!("count {name} ")));
        assert!(found.is_some_and(|count| count.parse::<u64>().unwrap() > 30), "{name}: {text}");
    }
    let again = everett(&["ask", run, "b0", "trace", "-o", &file]);
    assert_eq!(again.status.code(), Some(2), "{}", shown(&again));
}
