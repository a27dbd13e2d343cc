//! gdb on a finding of `examples/redis-sentinel`: the instant at which a Redis discards acknowledged writes.

use std::path::Path;

use super::tools::tools;
use crate::support::{everett, shown};

/// Goes back from the finding to the call that empties the database, and from there to the store of the return address on
/// the stack, i.e. to the instruction that calls. Debian's Redis has no debug information, but exports its functions.
const SCRIPT: &str = "\
set pagination off
set width 0
break emptyData
reverse-continue
backtrace
watch -l *(long *)$sp
reverse-continue
x/i $pc
stepi
backtrace 1
delete
";

/// A partition left the old master with the client, which went on to write there. When the old master has become a replica, it
/// empties its database before it loads the new master's.
#[test]
fn gdb_goes_back_from_a_lost_write_to_the_call_that_discards_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/redis-sentinel/world.toml");
    let world = world.display().to_string();
    // As the demo, which finds the loss after 10 branches.
    let explored = everett(&[
        "explore",
        &world,
        "--seed",
        "18",
        "--until-found",
        "--record",
        "0s",
        "--plain",
        "-o",
        &at("run"),
    ]);
    assert_eq!(explored.status.code(), Some(1), "{}", shown(&explored));
    let shows = everett(&["--json", "findings", &at("run")]);
    let finding = String::from_utf8_lossy(&shows.stdout).into_owned();
    let finding: serde_json::Value = serde_json::from_str(finding.lines().next().expect(&finding)).unwrap();
    let vtime = finding["vtime_ns"].as_u64().unwrap_or_else(|| panic!("{finding}"));

    let script = format!("monitor digest\n{SCRIPT}monitor seek {vtime}ns\nmonitor digest\n");
    std::fs::write(at("script"), script).unwrap();
    let gdb = tools().folder_of(&["gdb"]).join("gdb").display().to_string();
    let session = || {
        let (files, script) = (at("files"), at("script"));
        let debug = ["debug", &at("run"), "1", "--node", "n1", "--process", "redis-server", "--gdb"];
        let options = ["--gdb-program", &gdb, "-o", &files, "--", "-nx", "-batch"];
        let commands = ["-iex", "set debug-file-directory /none", "-x", &script];
        let output = everett(&[&debug[..], &options, &commands].concat());
        assert!(output.status.success(), "{}", shown(&output));
        output
    };
    let first = session();
    let text = String::from_utf8_lossy(&first.stdout).into_owned();
    let mut rest = &text[..];
    for expected in [
        "hit Breakpoint 1, ",
        " in emptyData ()",
        " in aeMain ()",
        " in main ()",
        "hit Hardware watchpoint 2: -location *(long *)$sp",
        "call ",
        "<emptyData>",
        "hit Breakpoint 1, ",
        " in emptyData ()",
    ] {
        let place = rest.find(expected);
        rest = &rest[place.unwrap_or_else(|| panic!("{expected} is missing in {rest}\nof {text}"))..];
    }
    // gdb prints answers of the stub as errors.
    let said = String::from_utf8_lossy(&first.stderr).into_owned() + &text;
    let digests: Vec<&str> =
        said.lines().filter(|line| line.len() == 16 && line.bytes().all(|b| b.is_ascii_hexdigit())).collect();
    let [before, after] = digests[..] else { panic!("two digests: {}", shown(&first)) };
    assert_eq!(before, after, "a session changes nothing");
    let again = session();
    assert_eq!(again.stdout, first.stdout, "the same session shows something else");
}
