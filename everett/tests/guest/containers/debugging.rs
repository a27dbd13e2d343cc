//! gdb debugs a process at any instant of a recorded timeline, forwards and backwards.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::explored;
use super::tools::tools;
use crate::support::{everett, shown};

/// Accounts of a bank with a defect: a long name overwrites the balance behind it.
pub(super) const ACCOUNTS: &str = r#"#include <stdio.h>
#include <unistd.h>
struct account {
    char name[16];
    long balance;
};
struct account accounts[4];
static void put_name(char *to, const char *from) {
    while ((*to = *from)) {
        to++;
        from++;
    }
}
static void rename_account(int n, const char *name) {
    put_name(accounts[n].name, name);
}
static void deposit(int n, long amount) {
    accounts[n].balance += amount;
}
"#;

/// A program that renames accounts, and notices later that a balance is corrupt.
const MAIN: &str = r#"int main(void) {
    for (long day = 1;; day++) {
        deposit(day % 4, 1);
        rename_account(day % 4, day == 150 ? "a name that is too long" : "short");
        for (int n = 0; day % 20 == 0 && n < 4; n++)
            if (accounts[n].balance > 1000000)
                puts("a balance is corrupt"), fflush(stdout);
        usleep(10000);
    }
}
"#;

const WORLD: &str = r#"
[[node]]
name = "bank"
memory = "96M"
image = "layout"
[[property]]
name = "balances"
never = "a balance is corrupt"
[faults]
only = []
[explore]
segment = "3s"
horizon = "3s"
"#;

/// Goes back from the finding to the store that corrupted the balance.
const SCRIPT: &str = "\
set pagination off
print accounts[2].balance > 1000000
watch -l accounts[2].balance if accounts[2].balance < 1000 && accounts[2].balance != 'o'
reverse-continue
print accounts[2].balance
backtrace 3
info line *$pc
stepi
print accounts[2].balance == 'o'
reverse-stepi
print accounts[2].balance
delete
break deposit if n == 2
reverse-continue
backtrace 2
reverse-finish
info registers rip
continue
backtrace 1
print $mxcsr
print $fctrl
print sizeof $xmm15
print $ymm0
delete
monitor seek 4s
monitor digest
";

fn debug(run: &str, script: &Path, files: &Path) -> Output {
    let gdb = tools().folder_of(&["gdb"]).join("gdb");
    let (gdb, script) = (gdb.display().to_string(), script.display().to_string());
    let files = files.display().to_string();
    let none = "set debug-file-directory /none";
    let arguments =
        ["debug", run, "1", "--process", "program", "--gdb", "--gdb-program", &gdb, "-o", &files, "--"];
    let output = everett(&[&arguments[..], &["-nx", "-batch", "-iex", none, "-x", &script]].concat());
    assert!(output.status.success(), "{}", shown(&output));
    output
}

/// `everett who` goes back from the balance: to the deposits, and before them to the store that corrupted it, whose value
/// is a character of a constant text.
fn who_names_the_store(run: &str) {
    let output = everett(&["who", run, "1", "--process", "program", "accounts@0x40+8"]);
    assert!(output.status.success(), "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rest = &text[..];
    for expected in [
        "  1. ",
        "stored at 0x404060 by MOV r/m64, r64",
        "deposit+",
        "program.c:18",
        "main+",
        "computed by LEA r64, m from 2 values: the chain forks",
        "the other 7 bytes are older",
        "put_name+",
        "program.c:9",
        "rename_account+",
        "program.c:15",
        "those of the file /program at offset",
    ] {
        let place = rest.find(expected);
        rest = &rest[place.unwrap_or_else(|| panic!("{expected} is missing in {rest}\nof {text}"))..];
    }
}

#[test]
fn a_watchpoint_backwards_finds_the_store_that_corrupted_memory() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("script"), SCRIPT).unwrap();
    let run = explored(folder.path(), &[ACCOUNTS, MAIN].concat(), WORLD, 1, 1);

    let first = debug(&run, &at("script"), &at("files"));
    let text = String::from_utf8(first.stdout.clone()).unwrap();
    let mut rest = &text[..];
    for expected in [
        "$1 = 1",
        "Hardware watchpoint 1: -location accounts[2].balance",
        "$2 = 38",
        "put_name (to=",
        "at ",
        "program.c:9",
        "rename_account (n=2, name=",
        "\"a name that is too long\"",
        "program.c:15",
        "main () at ",
        "program.c:23",
        "Line 9 of ",
        "$3 = 1",
        "$4 = 38",
        "Breakpoint 2, deposit (n=2, amount=1)",
        "program.c:18",
        "program.c:22",
        "Breakpoint 2, deposit (n=2, amount=1)",
        "program.c:18",
        "$5 = 8064",
        "$6 = 895",
        "$7 = 16",
        // The CPU model has no AVX.
        "$8 = void",
    ] {
        let place = rest.find(expected);
        rest = &rest[place.unwrap_or_else(|| panic!("{expected} is missing in {rest}\nof {text}"))..];
    }
    who_names_the_store(&run);
    let again = debug(&run, &at("script"), &at("files"));
    assert_eq!(String::from_utf8_lossy(&again.stdout), text, "the same session shows something else");

    // A session that only goes to the same instant is there in the same world.
    fs::write(at("script"), "monitor seek 4s\nmonitor digest\n").unwrap();
    let plain = debug(&run, &at("script"), &at("files"));
    let digest = |output: &Output| {
        let text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        text.lines()
            .rev()
            .find(|line| line.len() == 16 && line.bytes().all(|b| b.is_ascii_hexdigit()))
            .map(str::to_owned)
    };
    assert!(digest(&first).is_some(), "{}", shown(&first));
    assert_eq!(digest(&plain), digest(&first));
    let replayed = everett(&["replay", &run, "1"]);
    assert_eq!(replayed.status.code(), Some(1), "{}", shown(&replayed));
}
