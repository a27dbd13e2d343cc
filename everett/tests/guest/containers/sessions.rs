//! A session of `everett debug` over a whole world: moves, breakpoints, a comparison, and a terminal.

use std::io::{Read as _, Write as _};
use std::process::{Command, Output, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::debugging::ACCOUNTS;
use super::explored;
use crate::support::{everett, shown};

/// A bank with [`ACCOUNTS`], and a client that deposits money. At the 15th deposit, a long name overwrites a balance, and the
/// bank notices it later.
const MAIN: &str = r#"#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
static struct sockaddr_in address(const char *of) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7000) };
    inet_pton(AF_INET, of, &to.sin_addr);
    return to;
}
static void serve(void) {
    struct sockaddr_in here = address("0.0.0.0");
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    char line[64];
    bind(listener, (struct sockaddr *)&here, sizeof here);
    listen(listener, 4);
    int fd = accept(listener, NULL, NULL);
    for (long day = 1; read(fd, line, sizeof line) > 0; day++) {
        deposit(day % 4, 1);
        rename_account(day % 4, day == 14 ? "a name that is too long" : "short");
        if (day % 10 == 0)
            printf("week %ld: %s\n", day / 10, accounts[2].balance > 1000000 ? "a balance is corrupt" : "all is well"), fflush(stdout);
        write(fd, "done\n", 5);
    }
}
int main(void) {
    char name[16];
    gethostname(name, sizeof name);
    if (!strcmp(name, "bank"))
        serve();
    struct sockaddr_in bank = address("10.0.0.1");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    while (connect(fd, (struct sockaddr *)&bank, sizeof bank) < 0) {
        close(fd);
        usleep(10000);
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    for (int n = 1;; n++) {
        char line[64];
        write(fd, line, snprintf(line, sizeof line, "deposit %d\n", n));
        read(fd, line, sizeof line);
        usleep(20000);
    }
}
"#;

const WORLD: &str = r#"
[[node]]
name = "bank"
memory = "96M"
image = "layout"
[[node]]
name = "client"
memory = "96M"
image = "layout"
[[property]]
name = "balances"
never = "a balance is corrupt"
[faults]
only = ["partition"]
[faults.partition]
every = "300ms"
for = ["5ms", "60ms"]
[explore]
segment = "1500ms"
horizon = "1500ms"
[[explore.state.rules]]
name = "week"
unit = "bank"
regex = "week (?P<week>\\d+)"
"#;

/// Time after which a session on a terminal is taken not to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Returns the run directory of an exploration with two branches.
fn run_directory() -> &'static str {
    static RUN: OnceLock<(String, TempDir)> = OnceLock::new();
    let (run, _) = RUN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        (explored(folder.path(), &[ACCOUNTS, MAIN].concat(), WORLD, 2, 1), folder)
    });
    run
}

/// Carries out commands.
fn session(arguments: &[&str], commands: &[&str]) -> Output {
    let given = commands.iter().flat_map(|command| ["--command", command]);
    everett(
        &["debug", run_directory(), "1"]
            .into_iter()
            .chain(arguments.iter().copied())
            .chain(given)
            .collect::<Vec<_>>(),
    )
}

/// Carries out commands that succeed. Returns what each of them printed as JSON.
fn answers(commands: &[&str]) -> Vec<Value> {
    let output = session(&["--json"], commands);
    assert!(output.status.success(), "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), commands.len(), "{text}");
    for (line, command) in lines.iter().zip(commands) {
        assert_eq!(line["command"], *command);
    }
    lines
}

/// Returns the text of the entry at which a session stands.
fn entry(answer: &Value) -> &str {
    answer["entry"]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn place(answer: &Value) -> &str {
    answer["place"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn vtime(answer: &Value) -> u64 {
    answer["vtime_ns"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn moves_go_to_what_happened_in_both_directions() {
    let commands = [
        "goto finding",
        "prev log",
        "prev log",
        "next log",
        "prev message",
        "next message",
        "goto start",
        "next fault",
        "prev fault",
        "goto log /week 1/ bank",
        "next state",
        "state",
        "prev state",
        "state",
        "goto message /deposit 7/",
        "goto +1ms",
        "goto -1ms",
        "goto end",
        "digest",
        "goto start",
        "next event",
        "goto end",
        "digest",
    ];
    let all = answers(&commands);
    assert!(entry(&all[0]).ends_with("FOUND   balances: week 2: a balance is corrupt"), "{}", all[0]);
    assert!(entry(&all[1]).ends_with("| week 2: a balance is corrupt"), "{}", all[1]);
    assert!(entry(&all[2]).ends_with("| week 1: all is well"), "{}", all[2]);
    assert_eq!(all[3], {
        let mut again = all[1].clone();
        again["command"] = "next log".into();
        again
    });
    assert!(entry(&all[4]).contains("\"deposit 20\\n\""), "{}", all[4]);
    assert!(entry(&all[5]).contains("\"done\\n\""), "{}", all[5]);
    assert!(entry(&all[7]).contains("partition"), "{}", all[7]);
    assert_eq!(all[8]["reason"], "start");
    assert!(entry(&all[9]).ends_with("week 1: all is well"), "{}", all[9]);
    assert!(entry(&all[10]).ends_with("week: (none) -> 1"), "{}", all[10]);
    assert_eq!(all[11]["variables"][0]["value"], "1");
    assert_eq!(all[12]["reason"], "start", "no state variable changes before");
    assert_eq!(all[13]["variables"], Value::Array(Vec::new()));
    assert!(entry(&all[14]).contains("\"deposit 7\\n\""), "{}", all[14]);
    assert_eq!(vtime(&all[15]), vtime(&all[14]) + 1_000_000);
    assert_eq!(vtime(&all[16]), vtime(&all[14]));
    // A session changes nothing: the end of the timeline has its recorded digest, each time.
    for digest in [&all[18], &all[22]] {
        assert!(digest["recorded"].is_string() && digest["digest"] == digest["recorded"], "{digest}");
    }
    assert_eq!(all[18]["digest"], all[22]["digest"]);
}

#[test]
fn sessions_stop_at_code_stores_and_what_happened_in_both_directions() {
    let commands = [
        "goto finding",
        "focus bank:program",
        "watch accounts[2].balance",
        "reverse-continue",
        "reverse-continue",
        "print accounts[2].balance",
        "stack",
        "next line",
        "prev line",
        "step",
        "back 1",
        "delete 1",
        "break program:deposit --if n == 3 on bank",
        "continue",
        "print n",
        "list",
        "reverse-continue",
        "delete",
        "break message /deposit 9/",
        "break log /week 1/",
        "break state week",
        "goto start",
        "continue",
        "continue",
        "continue",
        "reverse-continue",
        "next syscall",
        "next syscall",
        "prev syscall",
        "x accounts 16",
        "ps",
        "messages 2",
        "breakpoints",
        "goto end",
        "digest",
        "who accounts[2].balance",
        "where",
        "digest",
    ];
    let all = answers(&commands);
    // The last store is that of a deposit, the one before wrote a part of the long name.
    for answer in &all[3..5] {
        assert_eq!(answer["breakpoint"], 1, "{answer}");
        assert_eq!(answer["thread"]["process"], "program", "{answer}");
    }
    assert!(all[4]["text"].as_str().unwrap().contains("stores "), "{}", all[4]);
    let is_name = |answer: &Value| place(answer).contains("put_name") || place(answer).contains("deposit");
    assert!(is_name(&all[3]) && is_name(&all[4]), "{} {}", all[3], all[4]);
    assert!(all[5]["value"].is_string(), "{}", all[5]);
    assert!(all[6]["threads"][0]["user"].to_string().contains("serve"), "{}", all[6]);
    assert_eq!((&all[7]["reason"], &all[8]["reason"]), (&"line".into(), &"line".into()));
    assert!(vtime(&all[7]) > vtime(&all[8]), "{} {}", all[7], all[8]);
    assert_eq!((&all[9]["reason"], &all[10]["place"]), (&"stepped".into(), &all[8]["place"]));
    assert_eq!(all[12]["places"], serde_json::json!([["bank", 1]]));
    assert!(place(&all[13]).contains("deposit") && place(&all[13]).contains("program.c:"), "{}", all[13]);
    assert_eq!(all[14]["value"], "3");
    assert!(all[15]["frames"][0].to_string().contains("deposit"), "{}", all[15]);
    assert!(place(&all[16]).contains("deposit") && vtime(&all[16]) < vtime(&all[13]), "{}", all[16]);
    assert!(entry(&all[22]).contains("deposit 9") && all[22]["breakpoint"] == 3, "{}", all[22]);
    assert!(entry(&all[23]).contains("week 1") && all[23]["breakpoint"] == 4, "{}", all[23]);
    assert!(entry(&all[24]).contains("-> 1") && all[24]["breakpoint"] == 5, "{}", all[24]);
    assert!(entry(&all[25]).contains("week 1") && all[25]["breakpoint"] == 4, "{}", all[25]);
    assert!(all[26]["text"].as_str().unwrap().contains('('), "{}", all[26]);
    assert_eq!(all[26]["text"], all[28]["text"]);
    assert_ne!(all[26]["text"], all[27]["text"]);
    let bytes = all[29]["bytes"].as_array().unwrap();
    assert_eq!((bytes.len(), &bytes[..6]), (16, &["73", "68", "6f", "72", "74", "00"].map(Value::from)[..]));
    assert!(all[30]["nodes"][1].to_string().contains("/program"), "{}", all[30]);
    assert_eq!(all[31]["entries"].as_array().unwrap().len(), 2);
    assert_eq!(all[32]["breakpoints"].as_array().unwrap().len(), 3);
    assert_eq!(all[34]["digest"], all[34]["recorded"]);
    // The last store is the same one that the watchpoint found, and the timeline stands where it stood.
    let step = &all[35]["steps"][0];
    assert_eq!((&step["node"], &step["step"]), (&"bank".into(), &"store".into()), "{step}");
    assert!(step["thread"]["user"].to_string().contains("serve"), "{step}");
    assert_eq!((vtime(&all[36]), &all[37]["digest"]), (vtime(&all[33]), &all[34]["digest"]));
}

#[test]
fn a_comparison_goes_to_the_first_difference() {
    let all = answers(&["goto start", "compare b1", "where", "digest", "prev event", "next event", "digest"]);
    let (start, compared) = (&all[0], &all[1]);
    let first = &compared["mattered"][0];
    assert_eq!(first["what"], "fault", "{compared}");
    // Both branches fork at the root moment, and the first fault of each is another one.
    assert_eq!(compared["common_ns"], start["vtime_ns"], "{compared}");
    assert!(compared["until_ns"].is_null(), "all was compared: {compared}");
    for side in ["here", "there"] {
        assert!(vtime(&first[side]) > vtime(start), "{first}");
        assert!(first[side]["text"].as_str().unwrap().contains("\"fault\":\"partition\""), "{first}");
    }
    assert_ne!(first["here"]["text"], first["there"]["text"]);
    assert_eq!(compared["now"]["entry"], first["here"], "{compared}");
    assert_eq!(all[2]["entry"], first["here"], "{}", all[2]);
    assert_eq!((&all[5]["entry"], &all[6]["digest"]), (&first["here"], &all[3]["digest"]));
    let same = session(&[], &["compare b0"]);
    assert_eq!(same.status.code(), Some(2), "{}", shown(&same));
}

#[test]
fn a_wrong_command_ends_a_session_without_a_terminal() {
    let run = run_directory();
    let output = session(&[], &["where", "nxt"]);
    assert_eq!(output.status.code(), Some(2));
    let wrong = "everett: --command: nxt: there is no command \"nxt\"; help lists the commands\n";
    assert!(String::from_utf8_lossy(&output.stderr).ends_with(wrong), "{}", shown(&output));
    assert!(output.stdout.is_empty(), "nothing ran: {}", shown(&output));
    let mut child = Command::new(env!("CARGO_BIN_EXE_everett"))
        .args(["debug", run, "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"# a comment\n\nwhere\ndelete 7\nwhere\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    assert!(
        String::from_utf8_lossy(&output.stderr).ends_with("standard input:4: there is no breakpoint 7\n"),
        "{}",
        shown(&output)
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1, "{}", shown(&output));
}

/// `script` makes the terminal.
#[test]
fn a_session_on_a_terminal_has_a_line_editor() {
    let line = format!("{} debug {} 1", env!("CARGO_BIN_EXE_everett"), run_directory());
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let (sender, parts) = mpsc::channel();
    thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = output.read(&mut part) {
            if sender.send(String::from_utf8_lossy(&part[..read]).into_owned()).is_err() {
                break;
            }
        }
    });
    let mut input = child.stdin.take().unwrap();
    let mut seen = String::new();
    // Reads up to the end of a text, and keeps what follows it.
    let mut until = |text: &str| loop {
        if let Some(at) = seen.find(text) {
            seen.drain(..at + text.len());
            return;
        }
        match parts.recv_timeout(ANSWER_TIME_MAX) {
            Ok(part) => seen += &part,
            Err(why) => panic!("{text} is missing in {seen}: {why}"),
        }
    };
    until("bank> ");
    // A tab completes the command, Ctrl-C clears the line, and a wrong command does not end the session.
    input.write_all(b"break mess\t/deposit 5/\r").unwrap();
    until("breakpoint 1 break message /deposit 5/");
    until("bank> ");
    input.write_all(b"nonsense\x03").unwrap();
    until("bank> ");
    input.write_all(b"nonsense\r").unwrap();
    until("there is no command \"nonsense\"");
    until("bank> ");
    input.write_all(b"rc\r").unwrap();
    until("deposit 5");
    until("bank> ");
    // The key above brings the last command back.
    input.write_all(b"\x1b[A\r").unwrap();
    until("the start of the timeline");
    until("bank> ");
    input.write_all(b"\x04").unwrap();
    assert!(child.wait().unwrap().success());
}
