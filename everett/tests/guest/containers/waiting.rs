//! Answers to questions about a program that waits for locks, and writes to a file.

use std::fs;

use serde_json::Value;

use super::asking::{ONE_SECOND, ask};
use super::{explored, world_of_one};
use crate::support::{everett, shown};

/// A thread that holds a lock while a second one waits for it, and writes to two files, one of which it makes durable.
const SOURCE: &str = r#"#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock;
static volatile unsigned long spins;
static void *wait_for_lock(void *unused) {
    for (;;) {
        usleep(2000);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
}
static void burn(void) {
    for (int n = 0; n < 100000; n++)
        spins++;
}
int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_t thread;
    pthread_create(&thread, 0, wait_for_lock, 0);
    int durable = open("/dev/shm/durable", O_CREAT | O_WRONLY, 0600), lost = open("/dev/shm/lost", O_CREAT | O_WRONLY, 0600);
    for (;;) {
        pthread_mutex_lock(&lock);
        write(durable, "one", 3);
        pwrite(durable, "three", 5, 7);
        write(lost, "two", 3);
        fdatasync(durable);
        burn();
        usleep(10000);
        pthread_mutex_unlock(&lock);
        usleep(4000);
    }
}
"#;

#[test]
fn waits_syncs_and_executed_functions_are_those_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let run = explored(folder.path(), SOURCE, &world_of_one(ONE_SECOND), 1, 0);
    futexes_have_holders_and_wakers(&run);
    syncs_cover_the_writes_of_their_file(&run);
    executed_functions_are_drawn(&run, &folder.path().join("flame.svg").display().to_string());
}

fn futexes_have_holders_and_wakers(run: &str) {
    let waits = ask(run, &["futexes", "--process", "program"]);
    let (last, ended) = waits.split_last().unwrap();
    assert!(ended.len() > 30, "{waits:#?}");
    for wait in ended {
        // Thread 1 waits, the main thread holds the lock and ends the wait.
        let holder = &wait["pid"];
        assert_ne!(&wait["tid"], holder);
        assert_eq!((&wait["holder"], &wait["woken_by"]["tid"]), (holder, holder), "{wait}");
        let waited = wait["end_ns"].as_u64().unwrap() - wait["vtime_ns"].as_u64().unwrap();
        assert!(waited < 12_000_000 && wait["result"] == 0, "{wait}");
    }
    assert_eq!(last["address"], ended[0]["address"]);
}

fn syncs_cover_the_writes_of_their_file(run: &str) {
    let lines = ask(run, &["syncs"]);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let syncs: Vec<&Value> = of("sync").into_iter().filter(|line| line["process"] == "program").collect();
    assert!(syncs.len() > 30, "{lines:#?}");
    // The span can begin within a round.
    for sync in &syncs[1..] {
        assert_eq!(
            (&sync["name"], &sync["file"]),
            (&"fdatasync".into(), &"/dev/shm/durable".into()),
            "{sync}"
        );
        let [writes] = &sync["covers"].as_array().unwrap()[..] else { panic!("{sync}") };
        assert_eq!(
            (&writes["file"], &writes["writes"], &writes["bytes"]),
            (&"/dev/shm/durable".into(), &2.into(), &8.into())
        );
        assert!(writes["since_ns"].as_u64() < sync["vtime_ns"].as_u64() && sync["failed"] == false, "{sync}");
    }
    let lost = of("unsynced")
        .into_iter()
        .find(|line| line["file"] == "/dev/shm/lost")
        .expect("writes to /dev/shm/lost");
    let (writes, bytes) = (lost["writes"].as_u64().unwrap(), lost["bytes"].as_u64().unwrap());
    assert!(writes.abs_diff(syncs.len() as u64) < 2 && bytes == 3 * writes, "{lost}");
}

fn executed_functions_are_drawn(run: &str, picture: &str) {
    let lines = ask(run, &["flame", "--process", "program", "--every", "20000"]);
    let (sum, stacks) = lines.split_last().unwrap();
    let instructions = |line: &Value| line["instructions"].as_u64().unwrap();
    let is_burn = |line: &&Value| {
        let stack: Vec<&str> =
            line["stack"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        stack.last() == Some(&"burn") && stack[0] == "program" && stack.contains(&"main")
    };
    let all: u64 = stacks.iter().map(instructions).sum();
    let burnt: u64 = stacks.iter().filter(is_burn).map(instructions).sum();
    assert_eq!(all, 20_000 * sum["samples"].as_u64().unwrap());
    // Each round executes 100,000 rounds of a loop with a few instructions each, and some system calls.
    assert!(burnt > all / 2 && burnt > 30 * 100_000, "{burnt} of {all}: {stacks:#?}");

    let drawn = everett(&["ask", run, "b0", "flame", "-o", picture]);
    assert!(drawn.status.success(), "{}", shown(&drawn));
    let text = fs::read_to_string(picture).unwrap();
    assert!(text.contains("<svg") && text.contains("<title>burn ("), "{text}");
    let again = everett(&["ask", run, "b0", "flame", "-o", picture]);
    assert_eq!(again.status.code(), Some(2), "{}", shown(&again));
    let wrong = everett(&["ask", run, "b0", "syscalls", "--every", "5"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", shown(&wrong));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--every: syscalls takes no samples"));
}
