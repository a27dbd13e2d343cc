//! Tests of records. A record is an error report of several lines, such as a stack trace, as the runtime of a
//! programming language prints it.

use super::*;

const PYTHON: &str = r#"Traceback (most recent call last):
  File "/app/node.py", line 41, in tick
    self.apply(entry)
    ~~~~~~~~~~^^^^^^^
  File "/app/node.py", line 7, in apply
    raise ValueError(f"no entry {n}")
ValueError: no entry 17"#;

const PYTHON_CHAINED: &str = r#"ERROR:root:tick failed: Traceback (most recent call last):
  File "/app/node.py", line 2, in load
    return table[key]
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/node.py", line 5, in tick
    assert self.leader
AssertionError"#;

const JAVA: &str = "Exception in thread \"main\" java.lang.IllegalStateException: cannot apply entry 4
\tat org.example.Log.apply(Log.java:12)
\tat org.example.Main.main(Main.java:3)
Caused by: java.lang.NullPointerException
\tat org.example.Store.get(Store.java:99)
\t... 2 more";

const GO: &str = "panic: runtime error: index out of range [5] with length 3

goroutine 7 [running]:
panic({0x4a1f20?, 0xc00001a0a8?})
\t/usr/lib/go/src/runtime/panic.go:770 +0x132
main.(*Raft).apply(0xc000012120, 0x5)
\t/app/raft.go:12 +0x1d
created by main.main in goroutine 1
\t/app/main.go:9 +0x29
exit status 2";

const GO_RACE: &str = "WARNING: DATA RACE
Write at 0x00c00001c0a8 by goroutine 7:
  main.(*Raft).set()
      /app/raft.go:12 +0x3a

Previous read at 0x00c00001c0a8 by main goroutine:
  main.main()
      /app/main.go:9 +0x88
==================";

const RUST: &str = "thread 'tokio-runtime-worker' panicked at src/log.rs:40:9:
called `Option::unwrap()` on a `None` value
stack backtrace:
   0: rust_begin_unwind
             at /rustc/1/library/std/src/panicking.rs:1:5
   1: node::log::apply
             at ./src/log.rs:40:9
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.";

const ASAN: &str = "==41==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x55d bp 0x7ff sp 0x7fe
READ of size 4 at 0x602000000010 thread T0
    #0 0x55d6c in apply /app/log.c:12:5
    #1 0x55d70 in main /app/main.c:3:1

SUMMARY: AddressSanitizer: heap-use-after-free /app/log.c:12:5 in apply
Shadow bytes around the buggy address:
  0x0c047fff7fb0: 00 00 00 00
=>0x0c047fff8000: fa fa[fd]fa
  Addressable:           00
==41==ABORTING";

const LEAK: &str = "==9==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 12 byte(s) in 1 object(s) allocated from:
    #0 0x4a in malloc /llvm/asan_malloc_linux.cpp:69:3
    #1 0x4b in append /app/log.c:4:10

SUMMARY: AddressSanitizer: 12 byte(s) leaked in 1 allocation(s).";

const TSAN: &str = "WARNING: ThreadSanitizer: data race (pid=9)
  Write of size 4 at 0x7b by thread T1:
    #0 set /app/a.c:3:5

SUMMARY: ThreadSanitizer: data race /app/a.c:3:5 in set
==================";

const UBSAN: &str =
    "/app/a.c:3:5: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'
    #0 0x42 in add /app/a.c:3:5
SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior /app/a.c:3:5";

const NODE: &str = "/app/server.js:12
    throw new TypeError('no leader');
    ^

TypeError: no leader
    at apply (/app/server.js:12:11)
    at Server.tick (/app/server.js:3:5)

Node.js v18.19.0";

const NODE_LOGGED: &str = "Error
    at apply (/app/server.js:12:11)
    at Server.tick (/app/server.js:3:5) {
  code: 'ENOENT'
}";

/// All records. Each has the text of its hit (a recorded violation of a property), which states the cause of the error.
const RECORDS: [(&str, &str); 12] = [
    (PYTHON, "ValueError: no entry 17"),
    (PYTHON_CHAINED, "AssertionError, in tick"),
    (
        JAVA,
        "Exception in thread \"main\" java.lang.IllegalStateException: cannot apply entry 4; caused by \
         java.lang.NullPointerException, in org.example.Store.get",
    ),
    (GO, "panic: runtime error: index out of range [5] with length 3, in main.(*Raft).apply"),
    (GO_RACE, "WARNING: DATA RACE, in main.(*Raft).set"),
    (
        RUST,
        "thread 'tokio-runtime-worker' panicked: called `Option::unwrap()` on a `None` value, in src/log.rs:40:9",
    ),
    (ASAN, "SUMMARY: AddressSanitizer: heap-use-after-free /app/log.c:12:5 in apply"),
    (LEAK, "SUMMARY: AddressSanitizer: 12 byte(s) leaked in 1 allocation(s)., in append /app/log.c:4:10"),
    (TSAN, "SUMMARY: ThreadSanitizer: data race /app/a.c:3:5 in set"),
    (
        UBSAN,
        "/app/a.c:3:5: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'",
    ),
    (NODE, "TypeError: no leader"),
    (NODE_LOGGED, "Error, in apply"),
];

fn anything() -> Properties {
    properties(json!([{ "name": "p", "never": "" }]), &[])
}

/// Returns the hits in `texts`. One service prints the texts, at one line every microsecond.
fn hits(properties: &Properties, texts: &[&str]) -> Vec<PropertyHit> {
    let mut judge = Judge::start(properties, JudgeState::default());
    let lines = texts.iter().flat_map(|text| text.lines());
    for (vtime_ns, text) in (1_u64..).map(|i| i * 1000).zip(lines) {
        judge.observe(&event(vtime_ns, 0, What::Line { unit: "u", is_error: true, text }));
    }
    judge.finish().0
}

fn texts(hits: &[PropertyHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.text.as_str()).collect()
}

#[test]
fn a_record_is_one_hit_with_its_cause() {
    for (record, cause) in RECORDS {
        assert_eq!(texts(&hits(&anything(), &[record])), [cause], "{record}");
        // Lines before and after the record do not belong to it.
        let between = ["it starts", record, "it goes on"];
        assert_eq!(texts(&hits(&anything(), &between)), ["it starts", cause, "it goes on"], "{record}");
    }
}

#[test]
fn it_does_not_matter_which_line_matches() {
    for (record, cause) in RECORDS {
        for line in record.lines().filter(|line| !line.trim().is_empty()) {
            let never = format!("^{}$", regex::escape(line));
            let found = hits(&properties(json!([{ "name": "p", "never": never }]), &[]), &["a", record, "b"]);
            assert_eq!(texts(&found), [cause], "{line}");
        }
    }
}

#[test]
fn other_numbers_are_the_same_finding_and_other_exceptions_are_not() {
    let again = PYTHON.replace("17", "4").replace("line 7", "line 8");
    assert_eq!(hits(&anything(), &[PYTHON, &again]).len(), 1);
    let other = PYTHON.replace("ValueError: no entry 17", "ZeroDivisionError: division by zero");
    let found = hits(&properties(json!([{ "name": "p", "never": "Traceback" }]), &[]), &[PYTHON, &other]);
    assert_eq!(texts(&found), ["ValueError: no entry 17", "ZeroDivisionError: division by zero"]);
    // If the cause names a place in the program, hits at different places have different signatures (keys by which hits
    // are grouped).
    let elsewhere = PYTHON_CHAINED.replace("in tick", "in vote");
    assert_eq!(hits(&anything(), &[PYTHON_CHAINED, &elsewhere]).len(), 2);
    let elsewhere = RUST.replace("log.rs:40:9", "vote.rs:4:9");
    assert_eq!(hits(&anything(), &[RUST, &elsewhere]).len(), 2);
    let elsewhere = GO.replace("main.(*Raft).apply", "main.vote");
    assert_eq!(hits(&anything(), &[GO, &elsewhere]).len(), 2);
}

#[test]
fn a_line_that_only_looks_like_a_head_is_judged_by_itself() {
    for line in [
        "java.io.IOException: broken pipe",
        "Traceback (most recent call last):",
        "panic: at the disco",
        "thread 'main' panicked at 'no leader', src/main.rs:2:5",
        "/app/a.js:7",
        "x.c:1:2: runtime error: null pointer",
    ] {
        assert_eq!(texts(&hits(&anything(), &[line, "next"])), [line, "next"]);
        let alone = hits(&anything(), &[line]);
        let plain = properties(json!([{ "name": "p", "never": "", "console": true }]), &[]);
        assert_eq!(alone[0].signature, only(&plain, &console(0, line)).signature, "{line}");
    }
}

#[test]
fn outputs_do_not_mix() {
    let properties = anything();
    let mut judge = Judge::start(&properties, JudgeState::default());
    let mut print = |is_error: bool, node: u16, unit: &str, text: &str| {
        judge.observe(&event(5, node, What::Line { unit, is_error, text })).to_vec()
    };
    for text in PYTHON.lines() {
        assert_eq!(print(true, 0, "u", text), []);
        print(false, 0, "u", "served");
        print(true, 1, "u", "served");
        print(true, 0, "other", "served");
    }
    let hit = print(true, 0, "u", "next");
    assert_eq!(texts(&hit), ["ValueError: no entry 17", "next"]);
}

#[test]
fn a_record_ends_by_itself_with_its_mark_after_a_pause_or_before_a_report_of_its_node() {
    let properties = anything();
    let at = |vtime_ns, text| event(vtime_ns, 0, What::Line { unit: "u", is_error: true, text });
    let begin = || {
        let mut judge = Judge::start(&properties, JudgeState::default());
        for text in PYTHON.lines() {
            assert_eq!(judge.observe(&at(1, text)), []);
        }
        judge
    };
    let cause = ["ValueError: no entry 17"];
    let pause = limits::RECORD_PAUSE_NS;
    let mut judge = begin();
    assert_eq!(judge.observe(&event(1 + pause, 1, What::BitRot)), []);
    let hits = judge.observe(&event(2 + pause, 1, What::BitRot)).to_vec();
    assert_eq!((texts(&hits), hits[0].vtime_ns), (cause.to_vec(), 1));
    assert_eq!(judge.begun_ns(0), Some(1));
    let found = |node: u16| event(2, Some(node), What::Found { property: "service exit", text: "it ended" });
    let mut judge = begin();
    assert_eq!(texts(judge.observe(&found(1))), ["it ended"]);
    assert_eq!(texts(judge.observe(&found(0))), cause);
    assert_eq!(texts(begin().end(9)), cause);
    let (mut judge, lines) = (Judge::start(&properties, JudgeState::default()), GO.lines().count());
    for (number, text) in GO.lines().enumerate() {
        assert_eq!(judge.observe(&at(1, text)).len(), usize::from(number + 1 == lines), "{text}");
    }
}

#[test]
fn records_are_bounded() {
    let properties = properties(json!([{ "name": "p", "never": "Traceback|end" }]), &[]);
    let frames = "  frame\n".repeat(limits::RECORD_LINES_MAX);
    let long = format!("Traceback (most recent call last):\n{frames}ValueError: x\nend");
    assert_eq!(texts(&hits(&properties, &[&long])), ["Traceback (most recent call last):", "end"]);
    let mut judge = Judge::start(&properties, JudgeState::default());
    for number in 0..=limits::RECORDS_MAX {
        let text = format!("Traceback {number} Traceback (most recent call last):");
        let unit = format!("u{number}");
        let hits = judge.observe(&event(1, 0, What::Line { unit: &unit, is_error: true, text: &text }));
        assert_eq!(hits.len(), usize::from(number == limits::RECORDS_MAX), "record {number}");
    }
}

mod random {
    use proptest::prelude::*;

    use super::*;

    /// Generates lines of all records, mixed with random lines, in any order.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let all: Vec<String> =
            RECORDS.iter().flat_map(|(record, _)| record.lines()).map(str::to_owned).collect();
        let line =
            prop_oneof![8 => prop::sample::select(all), 1 => "\\PC{0,20}", 1 => "[ \tA-Za-z:=(]{0,20}"];
        prop::collection::vec(line, 0..60)
    }

    proptest! {
        /// If there are lines, there are hits, but no more hits than lines. Each hit has the vtime of a line, and a
        /// text within its bound.
        #[test]
        fn any_lines_are_judged(lines in lines()) {
            let properties = anything();
            let mut judge = Judge::start(&properties, JudgeState::default());
            for (at, text) in (1..).zip(&lines) {
                judge.observe(&event(at, 0, What::Line { unit: "u", is_error: true, text }));
            }
            let (hits, _) = judge.finish();
            prop_assert_eq!(hits.is_empty(), lines.is_empty());
            prop_assert!(hits.len() <= lines.len());
            let in_bounds = |hit: &PropertyHit| {
                hit.text.len() <= limits::TEXT_BYTES_MAX && (1..=lines.len() as u64).contains(&hit.vtime_ns)
            };
            prop_assert!(hits.iter().all(in_bounds));
        }
    }
}
