//! Profiles of two machines that run a program whose costs are known.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{userlands, world_of_one};
use crate::support::{everett, json_lines, shown};

/// Number of instructions between two samples.
const EVERY: u64 = 20_000;
/// Files of a profile.
const FILES: [&str; 4] = ["profile.json", "profile.txt", "profile.folded", "flame.svg"];

/// A process that executes a function most of the time, and one that mostly waits.
const SOURCE: &str = r#"#define _GNU_SOURCE
#include <sys/prctl.h>
#include <unistd.h>
static volatile unsigned long spins;
static void planted(void) {
    for (int n = 0; n < 100000; n++)
        spins++;
}
int main(void) {
    if (fork() == 0) {
        prctl(PR_SET_NAME, "waiter");
        for (;;)
            usleep(50000);
    }
    for (;;) {
        planted();
        usleep(10000);
    }
}
"#;

/// Runs the world for a second. Returns the records that `everett run` prints.
fn run(world: &Path, more: &[&str]) -> Vec<Value> {
    let run = ["--json", "run", world.to_str().unwrap(), "--seed", "1", "--for", "1s"];
    let output = everett(&[&run[..], more].concat());
    assert!(output.status.success(), "{}", shown(&output));
    json_lines(&output)
}

/// Returns the last record, which has the trail of the run.
fn end(records: &[Value]) -> &Value {
    let end = records.last().expect("records");
    assert!(end["kind"] == "end" && end["trail"].is_string() && end["executed"].is_u64(), "{end}");
    end
}

#[test]
fn a_profile_names_the_costs_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = userlands::program_of_musl(folder.path(), SOURCE);
    userlands::layout_of_musl(folder.path(), &program);
    let world = folder.path().join("world.toml");
    let second = "[[node]]\nname = \"b\"\nmemory = \"96M\"\nimage = \"layout\"\n";
    fs::write(&world, format!("{second}{}", world_of_one(""))).unwrap();
    let plain = run(&world, &[]);
    let [first, again] = ["first", "again"].map(|name| {
        let folder = folder.path().join(name);
        let every = EVERY.to_string();
        let records = run(&world, &["--profile", folder.to_str().unwrap(), "--profile-every", &every]);
        assert_eq!(end(&records)["trail"], end(&plain)["trail"], "the profile changes the trail");
        assert_eq!(end(&records)["executed"], end(&plain)["executed"]);
        let read = FILES.map(|file| fs::read_to_string(folder.join(file)).unwrap());
        let document: Value = serde_json::from_str(&read[0]).unwrap();
        let printed = records.iter().find(|record| record["kind"] == "profile");
        assert_eq!(printed, Some(&document));
        read
    });
    assert!(first == again, "the profiles of two runs differ: {} {}", first[1], again[1]);
    let document: Value = serde_json::from_str(&first[0]).unwrap();
    each_sample_is_counted_once(&document, &first[2], end(&plain));
    the_planted_function_costs_most(&document, &first[1], &first[3]);
}

fn each_sample_is_counted_once(document: &Value, folded: &str, end: &Value) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}"));
    let rows = |table: &str| document[table].as_array().unwrap().iter();
    let samples = number(&document["samples"]);
    let executed: Vec<u64> = rows("executed").map(|row| number(&row["instructions"])).collect();
    assert_eq!(executed.iter().map(|n| n / EVERY).sum::<u64>(), samples);
    assert_eq!(executed.iter().sum::<u64>(), number(&end["executed"]));
    for table in ["nodes", "kinds", "processes"] {
        assert_eq!(rows(table).map(|row| number(&row["samples"])).sum::<u64>(), samples, "{table}");
    }
    assert_eq!(rows("functions").map(|row| number(&row["self"]["samples"])).sum::<u64>(), samples);
    for (node, executed) in ["b", "a"].into_iter().zip(executed) {
        let row = rows("nodes").find(|row| row["node"] == node).unwrap();
        assert_eq!(number(&row["samples"]), executed / EVERY, "{node}");
    }
    let counts = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), samples * EVERY);
    assert!(document["cut"].as_object().unwrap().values().all(|cut| *cut == 0), "{}", document["cut"]);
}

fn the_planted_function_costs_most(document: &Value, text: &str, picture: &str) {
    let top = &document["functions"][0];
    assert_eq!(top["function"], "planted", "{text}");
    assert!(top["object"].as_str().unwrap().ends_with("/program"), "{top}");
    assert!(top["self"]["percent"].as_f64().unwrap() > 50.0, "{text}");
    let processes = document["processes"].as_array().unwrap();
    assert!(processes[..2].iter().all(|row| row["process"] == "program"), "{text}");
    let share = |name: &str| {
        let rows = processes.iter().filter(|row| row["process"] == name);
        rows.map(|row| row["percent"].as_f64().unwrap()).sum::<f64>()
    };
    assert!(share("waiter") < 5.0 && share("program") > 60.0, "{text}");
    // While both programs wait, the kernel's idle thread runs between two halts.
    let idle = processes.iter().find(|row| row["process"] == "swapper").unwrap_or_else(|| panic!("{text}"));
    assert!(idle["kinds"].as_array().unwrap().iter().any(|row| row["kind"] == "idle"), "{text}");
    let kinds = document["kinds"].as_array().unwrap();
    assert_eq!(kinds[0]["kind"], "user", "{text}");
    assert!(kinds.iter().any(|row| row["kind"] == "system_call"), "{text}");
    assert!(kinds.iter().all(|row| row["kind"] != "unreadable" && row["kind"] != "boot"), "{text}");
    assert!(text.contains("planted (") && picture.contains("<title>planted ("), "{text}");
}
