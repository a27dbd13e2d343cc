//! gdb shows the YMM registers of threads under the CPU model `v3`, in core files and on a timeline.

use std::path::Path;

use super::tools::tools;
use super::{explored, world_of_one};
use crate::support::{everett, json_lines, shown};

/// A program with three threads: one computes, and has known values in YMM registers. One sleeps with such a value. One has
/// slept with a value in both halves of a register, and sleeps again without the upper half, so the kernel saves no upper
/// halves for it and the old one stays behind in the kernel's area.
const SOURCE: &str = r#"#include <pthread.h>
typedef unsigned long words[4];
#define EACH(a) { a + 1, a + 2, a + 3, a + 4 }
/* nanosleep, without a function that could use vector registers */
#define SLEEP(before, from) do { \
    long result = 35; \
    __asm__ volatile(before "; syscall" : "+a"(result) : "m"(from), "D"(time), "S"(0L) \
        : "rcx", "r11", "memory", "xmm14", "xmm15"); } while (0)
static void *sleeper(void *argument) {
    static const words known = EACH(0x1000);
    long time[2] = { 1000, 0 };
    for (;;)
        SLEEP("vmovdqu %1, %%ymm15", known);
    return argument;
}
static void *cleaner(void *argument) {
    static const words known = EACH(0x2000);
    long time[2] = { 0, 1000000 };
    SLEEP("vmovdqu %1, %%ymm14", known);
    time[0] = 1000;
    for (;;)
        SLEEP("vmovdqu %1, %%xmm14", known);
    return argument;
}
int main(void) {
    static const words known = EACH(0x3000);
    pthread_t thread;
    pthread_create(&thread, 0, sleeper, 0);
    pthread_create(&thread, 0, cleaner, 0);
    __asm__ volatile("vmovdqu %0, %%ymm0; vpaddq %%ymm0, %%ymm0, %%ymm8" : : "m"(known) : "xmm0", "xmm8");
    for (;;)
        __asm__ volatile("");
}
"#;

/// Questions to gdb in each session, about registers of the three threads. Answers with values start with `$`.
const QUESTIONS: [&str; 9] = [
    "thread 1",
    "print/x $ymm0.v4_int64",
    "print/x $ymm8.v4_int64",
    "print/x $xmm8.v2_int64",
    "thread 2",
    "print/x $ymm15.v4_int64",
    "thread 3",
    "print/x $ymm14.v4_int64",
    "print/x $ymm0.v4_int64",
];
/// Answers with values.
const ANSWERS: [&str; 6] = [
    "$1 = {0x3001, 0x3002, 0x3003, 0x3004}",
    "$2 = {0x6002, 0x6004, 0x6006, 0x6008}",
    "$3 = {0x6002, 0x6004}",
    "$4 = {0x1001, 0x1002, 0x1003, 0x1004}",
    "$5 = {0x2001, 0x2002, 0x0, 0x0}",
    "$6 = {0x0, 0x0, 0x0, 0x0}",
];

/// Returns the lines with values in gdb's output.
fn values(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with('$')).collect()
}

/// Starts gdb on the branch of a run. Returns what it prints.
fn debug(run: &str, subject: &[&str], questions: &[&str]) -> String {
    let gdb = tools().folder_of(&["gdb"]).join("gdb").display().to_string();
    let mut arguments = [&["debug", run, "b0"], subject, &["--gdb", "--gdb-program", &gdb, "--"]].concat();
    arguments.extend(["-nx", "-batch", "-iex", "set debug-file-directory /none"]);
    arguments.extend(questions.iter().flat_map(|question| ["-ex", question]));
    let output = everett(&arguments);
    assert!(output.status.success(), "{}", shown(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gdb_shows_the_ymm_registers_of_all_threads() {
    let folder = tempfile::tempdir().unwrap();
    let world = format!("cpu = \"v3\"\n{}", world_of_one("segment = \"100ms\"\nhorizon = \"100ms\""));
    let run = explored(folder.path(), SOURCE, &world, 1, 0);

    let output = folder.path().join("cores");
    let core =
        everett(&["--json", "core", &run, "b0", "--process", "program", "-o", output.to_str().unwrap()]);
    let line = &json_lines(&core)[0];
    let path = |key: &str| Path::new(line[key].as_str().unwrap());
    let (program, core) = (path("program").display(), path("core").display());
    let (file, core) = (format!("file {program}"), format!("core-file {core}"));
    let mut arguments =
        vec!["-nx", "-batch", "-iex", "set debug-file-directory /none", "-ex", &file, "-ex", &core];
    arguments.extend(QUESTIONS.iter().flat_map(|question| ["-ex", question]));
    let text = tools().run("gdb", &arguments);
    assert_eq!(values(&text), ANSWERS, "{text}");

    let text = debug(&run, &["--process", "program"], &QUESTIONS);
    assert_eq!(values(&text), ANSWERS, "{text}");
    // The thread that computes runs, so its registers are those of the CPU.
    let text = debug(&run, &["--kernel"], &["print/x $ymm8.v4_int64"]);
    assert_eq!(values(&text), [ANSWERS[1].replace("$2", "$1")], "{text}");
}
