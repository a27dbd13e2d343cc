//! Test of the agent's code for starting programs.
//!
//! The agent's code relies on a process with one thread. So this file has a single test. The test can also predict the
//! numbers of the descriptors that it opens.

#![allow(dead_code, reason = "only the agent uses the other items")]

#[path = "../src/failure.rs"]
mod failure;
#[path = "../src/spawn.rs"]
mod spawn;
#[path = "../src/users.rs"]
mod users;

use everett_protocol::{HISTORY_FD, HISTORY_VARIABLE};
use rustix::process::{WaitOptions, waitpid};
use spawn::{Program, start};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, pipe};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

/// Runs a shell script with this environment and history port. Returns its output.
fn run(script: &str, env: &[(&str, &str)], history: Option<BorrowedFd<'_>>) -> String {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned);
    let env: BTreeMap<_, _> = env.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let program =
        Program { argv: &argv, env: &env, cwd: None, user: None, stdin: true, output: true, history };
    let started = start(&program).unwrap();
    drop(started.stdin);
    waitpid(Some(started.pid), WaitOptions::empty()).unwrap();
    // Reads of the pipes do not block. The script has exited, so the pipes hold all output.
    let mut printed = Vec::new();
    for pipe in [started.stdout, started.stderr].into_iter().flatten() {
        File::from(pipe).read_to_end(&mut printed).unwrap();
    }
    String::from_utf8(printed).unwrap()
}

/// Checks that the child gets the history port, whatever number the port has
/// in this process, and that `start` fails if the program does not exist.
fn check(port: &OwnedFd, reader: &mut File) {
    let copies =
        format!("for fd in /proc/$$/fd/*; do [ $fd -ef /proc/$$/fd/{HISTORY_FD} ] && echo ${{fd##*/}}; done");
    let script = format!("echo out; echo \"$0 ${HISTORY_VARIABLE}\" >&{HISTORY_FD}; {copies}");
    assert_eq!(
        run(&script, &[(HISTORY_VARIABLE, "no")], Some(port.as_fd())),
        "out\n3\n",
        "the child has no other copy of the port"
    );
    let mut seen = [0; 100];
    let length = reader.read(&mut seen).unwrap();
    assert_eq!(&seen[..length], b"/bin/sh 3\n");

    let argv = ["/bin/no-such-program".to_owned()];
    let program = Program {
        argv: &argv,
        env: &BTreeMap::new(),
        cwd: None,
        user: None,
        stdin: true,
        output: true,
        history: Some(port.as_fd()),
    };
    let Err(failure) = start(&program) else { panic!("a program that does not exist was started") };
    assert!(failure.to_string().starts_with("cannot start /bin/no-such-program: "), "{failure}");
    // The failed start must not have written to the port. Otherwise the reader gets more than this mark.
    rustix::io::write(port, b"mark").unwrap();
    let length = reader.read(&mut seen).unwrap();
    assert_eq!(&seen[..length], b"mark", "the error of the start was written to the port");

    // A program without the history port has no descriptor with the number HISTORY_FD.
    let script = format!("echo \"[${HISTORY_VARIABLE}]\"; [ -e /proc/$$/fd/{HISTORY_FD} ] || echo nothing");
    assert_eq!(run(&script, &[], None), "[]\nnothing\n");
}

#[test]
fn programs_get_the_history_port_as_descriptor_3() {
    let open = || File::open("/dev/null").unwrap();
    let taken = open();
    assert_eq!(
        taken.as_raw_fd(),
        HISTORY_FD,
        "this test needs descriptor {HISTORY_FD}, but it is open already"
    );
    let (reader, port) = pipe().unwrap();
    let (mut reader, port) = (File::from(OwnedFd::from(reader)), OwnedFd::from(port));

    // Case 1: descriptor 3 is another file.
    assert!(port.as_raw_fd() > HISTORY_FD);
    check(&port, &mut reader);
    // Case 2: descriptor 3 is free, so the next opened pipe would get this number.
    drop(taken);
    check(&port, &mut reader);
    // Case 3: descriptor 3 is the port itself.
    let port = rustix::io::fcntl_dupfd_cloexec(&port, HISTORY_FD).unwrap();
    assert_eq!(port.as_raw_fd(), HISTORY_FD);
    check(&port, &mut reader);
    // After the last check, no copy of the port is open: the next descriptor gets number 3 again.
    drop(port);
    assert_eq!(open().as_raw_fd(), HISTORY_FD);
}
