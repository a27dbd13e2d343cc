//! `everett print`: probes print values of a program on recorded branches, and no trail changes.

use std::fs;
use std::process::Output;

use serde_json::Value;

use super::userlands::{layout_of_musl, program_of_musl};
use super::world_of_one;
use crate::support::{everett, shown, world_file};

/// Program whose steps have known arguments. It starts another program, itself, after some of them.
const SOURCE: &str = "\
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
struct account { char name[16]; long balance; struct account *next; };
struct account accounts[2] = { { \"first\", 100, &accounts[1] }, { \"second\", -5, 0 } };
unsigned total = 7;
static __attribute__((noinline)) long step(int n, const char *name) {
    long doubled = 2L * n;
    total += n;
    accounts[n % 2].balance += doubled;
    return doubled + name[0];
}
static __attribute__((noinline)) void child(int n, const char *text) {
    printf(\"child %d %s\\n\", n, text);
}
int main(int count, char **arguments) {
    setlinebuf(stdout);
    if (count > 1) {
        child(count, arguments[1]);
        return 0;
    }
    for (int n = 0; n >= 0; n++) {
        usleep(50000);
        step(n, n % 2 ? \"odd\" : \"even\");
        if (n % 8 == 4 && !vfork()) {
            execl(\"/proc/self/exe\", \"again\", \"text\", (char *)0);
            _exit(1);
        }
        while (n % 8 == 4 && wait(0) > 0);
        printf(\"step %d\\n\", n);
    }
    return 0;
}
";

const EXPLORE: &str = "segment = \"600ms\"\nhorizon = \"1200ms\"\nin_flight = 4";

fn lines(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", shown(output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'v>(lines: &'v [Value], kind: &str) -> Vec<&'v Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// Returns the integer in the text of a hit.
fn number(hit: &Value) -> i64 {
    hit["text"].as_str().unwrap().parse().unwrap_or_else(|_| panic!("{hit}"))
}

#[test]
fn probes_print_values_on_all_branches_and_change_no_trail() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    layout_of_musl(folder, &program_of_musl(folder, SOURCE));
    fs::write(folder.join("world.toml"), world_of_one(EXPLORE)).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (world, run) = (path("world.toml"), path("run"));
    let explored = everett(&["explore", &world, "--branches", "6", "-o", &run, "--record", "0s"]);
    assert_eq!(explored.status.code(), Some(0), "{}", shown(&explored));
    let print = |arguments: &[&str]| everett(&[&["print", &run], arguments].concat());
    let json = |arguments: &[&str]| lines(&print(&[&["--json"], arguments].concat()));

    // Each step is hit once on each branch, with its argument and the global before it.
    let all =
        json(&["--jobs", "2", "program:step \"%d %u %s %#x\" (i32)$rdi, (u32)total, str($rsi), *(u8 *)$rsi"]);
    let hits = of_kind(&all, "hit");
    assert!(hits.len() > 30, "{}", hits.len());
    let all_hits = hits.len();
    for hit in &hits {
        let words: Vec<&str> = hit["text"].as_str().unwrap().split(' ').collect();
        let n: u64 = words[0].parse().unwrap();
        let total: u64 = 7 + n * n.saturating_sub(1) / 2;
        let (name, first) = if n % 2 == 1 { ("odd", "0x6f") } else { ("even", "0x65") };
        assert_eq!(words[1..], [&total.to_string(), name, first], "{hit}");
        assert_eq!((&hit["node"], &hit["thread"]), (&Value::from("a"), &Value::from("program")));
        assert_eq!(hit["values"][0]["value"], words[0], "{hit}");
    }
    let summary = all.last().unwrap();
    assert_eq!((&summary["kind"], &summary["branches"]), (&"print".into(), &6.into()));
    assert_eq!((&summary["trails"], &summary["probes"][0]["hits"]), (&"equal".into(), &hits.len().into()));
    // The numbers on a branch follow each other, and those of its parent come before.
    for branch in of_kind(&all, "branch") {
        let of_branch: Vec<i64> = hits
            .iter()
            .filter(|hit| hit["branch"] == branch["branch"])
            .map(|hit| hit["values"][0]["value"].as_str().unwrap().parse().unwrap())
            .collect();
        assert!(of_branch.windows(2).all(|two| two[0] + 1 == two[1]), "{of_branch:?}");
        assert_eq!(branch["probes"][0]["hits"], of_branch.len());
    }

    // A line and a function by the variables that the debug information names.
    let lines = json(&[
        "program:program.c:10 \"%d %d %u %s %s %d\" n, doubled, total, name, accounts[0].next->name, accounts[n % 2].balance",
        "program:step \"%d %s %d\" n, name, accounts[1].next == 0 && &accounts[1] == accounts[0].next",
        "program:step nothing.name, name, accounts[0].other, accounts[5].balance, accounts[0].balance",
    ]);
    let of_probe = |end: &str| {
        let of_kind = of_kind(&lines, "hit").into_iter();
        of_kind.filter(|hit| hit["probe"].as_str().unwrap().ends_with(end)).collect::<Vec<_>>()
    };
    assert_eq!(of_probe(":10").len(), all_hits);
    for hit in of_probe(":10") {
        let text = hit["text"].as_str().unwrap();
        let n: i64 = text.split(' ').next().unwrap().parse().unwrap();
        let balance: i64 = (0..n).filter(|m| m % 2 == n % 2).map(|m| 2 * m).sum();
        let (name, base) = if n % 2 == 1 { ("odd", -5) } else { ("even", 100) };
        let expected = format!("{n} {} {} {name} second {}", 2 * n, 7 + n * (n + 1) / 2, base + balance);
        assert_eq!(text, expected);
    }
    let steps = of_probe(":step");
    assert_eq!(steps.len(), 2 * all_hits);
    for two in steps.chunks(2) {
        let text = two[0]["text"].as_str().unwrap();
        let n: i64 = text.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(text, format!("{n} {} 1", if n % 2 == 1 { "odd" } else { "even" }));
        let values = two[1]["values"].as_array().unwrap();
        let absent: Vec<&Value> = values.iter().map(|value| &value["absent"]).collect();
        assert_eq!(absent[0], "no variable nothing");
        assert_eq!((absent[2], absent[3]), (&"no member other".into(), &"no such element".into()));
        assert!(values[1]["value"].as_str().unwrap().ends_with(if n % 2 == 1 {
            " \"odd\""
        } else {
            " \"even\""
        }));
        assert!(values[4]["value"].as_str().unwrap().parse::<i64>().unwrap() >= 100);
    }

    // One branch, with a condition, a stack and log lines.
    let deepest =
        of_kind(&all, "branch").iter().map(|branch| branch["branch"].as_u64().unwrap()).max().unwrap();
    let id = format!("b{deepest}");
    let one = json(&[&id, "program:step \"%d\" $rdi --if (i32)$rdi % 4 == 1", "--stack", "--with-logs"]);
    let hits = of_kind(&one, "hit");
    assert!(!hits.is_empty() && hits.iter().all(|hit| number(hit) % 4 == 1), "{hits:?}");
    let frames: Vec<&str> = hits[0]["stack"]["user"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|frame| frame["function"].as_str())
        .collect();
    assert!(frames[0] == "step+0x0" && frames[1].starts_with("main+"), "{frames:?}");
    let at = |line: &Value| line["vtime_ns"].as_u64().unwrap();
    let among: Vec<&Value> = one.iter().filter(|line| !line["vtime_ns"].is_null()).collect();
    assert!(among.iter().any(|line| line["kind"] == "line"), "{}", among.len());
    for branch in of_kind(&one, "branch") {
        let of_branch: Vec<u64> =
            hits.iter().filter(|hit| hit["branch"] == branch["branch"]).map(|hit| at(hit)).collect();
        assert!(of_branch.is_sorted(), "{of_branch:?}");
    }
    // The line that the program prints after a step follows the step's hit.
    let first = one.iter().position(|line| line["kind"] == "hit").unwrap();
    let after = one[first..].iter().find(|line| line["kind"] == "line" && line["unit"] != "kernel").unwrap();
    assert_eq!(after["text"], format!("step {}", number(&one[first])), "{after}");

    // A program that starts on the branch, and the kernel; values that cannot be read.
    let other = json(&[
        "/program:child \"%d %s\" (i32)$rdi, str($rsi)",
        "program:step+0 $rdi > 0 && *(u8 *)0 --count",
        "kernel:begin_new_exec --count",
        "program:child str(16), missing, 1 / 0",
    ]);
    let hits = of_kind(&other, "hit");
    assert!(!hits.is_empty());
    for two in hits.chunks(2) {
        assert_eq!(two[0]["text"], "2 text", "{two:?}");
        assert_eq!(
            two[1]["text"], "str(16)=unmapped missing=no variable missing 1/0=division by zero",
            "{two:?}"
        );
        assert_eq!(
            (&two[1]["values"][0]["value"], &two[1]["values"][0]["absent"]),
            (&Value::Null, &"unmapped".into())
        );
    }
    let counts = &other.last().unwrap()["probes"];
    assert_eq!(counts[0]["hits"], counts[3]["hits"], "{counts}");
    // Other programs start, too.
    assert!(counts[2]["hits"].as_u64() >= counts[0]["hits"].as_u64(), "{counts}");
    let unknown = json(&["program:step", "--if", "*(u8 *)0 == 1"]);
    assert_eq!(unknown.last().unwrap()["probes"][0]["hits"], 0);
    assert!(unknown.last().unwrap()["probes"][0]["undecided"].as_u64().unwrap() > 30);

    for (arguments, error) in [
        (&["program:nothing"][..], "program:nothing: /program: no function is named nothing"),
        (&["program:program.c:6"], "line 6 of program.c has no code; the next line with code is 7"),
        (&["program:other.c:6"], "no source file is named other.c"),
        (&["other:main"], "other:main: no process of these branches runs a program other"),
        (&["program:step \"%d\""], "the format prints 1 values, but 0 are given"),
        (&["b99", "program:step"], "there is no branch 99"),
        (&["--with-logs", "program:step"], "--with-logs: name a single finding or branch"),
    ] {
        let refused = print(arguments);
        assert_eq!(refused.status.code(), Some(2), "{}", shown(&refused));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(error), "{}", shown(&refused));
    }
    let text = print(&[&id, "program:step \"n is %d\" $rdi"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains(" program  program:step: n is ") && text.contains("all trails equal the recorded ones"),
        "{text}"
    );
}

/// Redis of Debian has no debug information, and is loaded at different addresses.
#[test]
fn probes_print_registers_of_redis_at_a_function() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run").display().to_string();
    let world = world_file().display().to_string();
    let explored = everett(&["explore", &world, "--seed", "1", "--branches", "2", "--plain", "-o", &run]);
    assert!(explored.status.code().is_some_and(|code| code < 2), "{}", shown(&explored));
    let probe = "redis-server:serverCron \"%p %d\" $rdi, *(i32 *)$rdi";
    let all = lines(&everett(&["--json", "print", &run, probe, "--stack"]));
    let hits = of_kind(&all, "hit");
    assert!(hits.len() > 3, "{}", hits.len());
    for hit in &hits {
        // The event loop's highest file descriptor is its first field.
        let (address, highest) = hit["text"].as_str().unwrap().split_once(' ').unwrap();
        assert!(address.starts_with("0x7f") || address.starts_with("0x5"), "{hit}");
        assert!((3..100).contains(&highest.parse::<i64>().unwrap()), "{hit}");
        let frames = hit["stack"]["user"].as_array().unwrap();
        assert_eq!(frames[0]["function"], "serverCron+0x0");
        assert!(
            frames
                .iter()
                .any(|frame| frame["function"].as_str().is_some_and(|name| name.starts_with("aeMain+")))
        );
    }
    assert_eq!(all.last().unwrap()["trails"], "equal");
    let none = everett(&["print", &run, "redis-server:server.c:1"]);
    assert_eq!(none.status.code(), Some(2), "{}", shown(&none));
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("it has no debug information"),
        "{}",
        shown(&none)
    );
}
