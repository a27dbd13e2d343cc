//! Images whose programs need the CPU model `v3`: what they compute, what the kernel keeps for them, and what the operator is
//! told under `v2`.

use std::fs;

use tempfile::TempDir;

use super::userlands::{layout_of_musl, program_of_musl};
use crate::support::{everett, shown};

/// Make a C compiler use the instructions of x86-64-v2 or x86-64-v3 for all functions, and vectors for loops. Without fused
/// multiply-adds of its own choice, it computes the same for both.
const FOR_V2: &str = "#pragma GCC target(\"arch=x86-64-v2\")\n";
const FOR_V3: &str = "#pragma GCC target(\"arch=x86-64-v3\")\n";
const FAST: &str = "#pragma GCC optimize(\"O3\", \"fp-contract=off\")\n";

/// Prints digests of results: of integers, floating-point numbers, and bits. Then waits.
const WORK: &str = r#"#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { N = 4096 };
static uint32_t words[N], table[256];
static uint8_t bytes[N];
static double doubles[N];
static float floats[N];
static uint64_t digest(const void *of, size_t length) {
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t n = 0; n < length; n++)
        sum = (sum ^ ((const uint8_t *)of)[n]) * 0x100000001b3;
    return sum;
}
__attribute__((noinline)) static void integers(int round) {
    for (int n = 0; n < N; n++)
        words[n] = words[n] * 2654435761u + (words[n] >> (n & 15)) + table[bytes[n]];
    for (int n = 0; n < N; n++)
        bytes[n] = bytes[n] > 200 ? bytes[n] - round : bytes[n] + (uint8_t)words[n];
}
__attribute__((noinline)) static void numbers(void) {
    for (int n = 0; n < N; n++) {
        doubles[n] = sqrt(fabs(doubles[n])) * 1.25 + (double)(int32_t)words[n] / 3.0;
        floats[n] = (float)doubles[n] * floats[n] + 0.5f;
        if (!(fabsf(floats[n]) < 1e30f))
            floats[n] = 1.0f;
    }
}
__attribute__((noinline)) static uint64_t bits(void) {
    uint64_t sum = 0;
    for (int n = 1; n < N; n++) {
        uint64_t word = (uint64_t)words[n] << 32 | words[n - 1] | 1;
        sum += __builtin_popcountll(word) + __builtin_clzll(word) * 3 + __builtin_ctzll(word & -word << 9 | 1ull << 60);
        sum ^= __builtin_bswap64(word & ~sum) + (word >> (n & 63));
    }
    return sum;
}
int main(void) {
    for (int n = 0; n < N; n++)
        words[n] = n * 77u, bytes[n] = n, table[n & 255] = n * 13u, doubles[n] = n, floats[n] = n;
    uint64_t sum = 0;
    for (int round = 0; round < 50; round++)
        integers(round), numbers(), sum += bits();
    printf("%016llx %016llx %016llx %016llx\n", (unsigned long long)digest(words, sizeof words),
           (unsigned long long)digest(doubles, sizeof doubles), (unsigned long long)digest(floats, sizeof floats),
           (unsigned long long)sum);
    fflush(stdout);
    for (;;)
        pause();
}
"#;

/// Two processes with different values in all vector registers, which a signal handler also changes. Prints a line if they
/// keep their values.
const KEPT: &str = r#"#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
typedef uint8_t Vector __attribute__((vector_size(32)));
static volatile int signals;
static void on_alarm(int signal) {
    Vector other;
    memset(&other, 0xee, sizeof other);
    __asm__ volatile("vmovdqu %0, %%ymm0; vmovdqu %0, %%ymm7; vmovdqu %0, %%ymm15" : : "m"(other));
    signals++;
}
#define FOR_ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "vmovdqu %1, %%ymm" #n "; vpaddb %2, %%ymm" #n ", %%ymm" #n "; vmovdqu %%ymm" #n ", %1;"
#define STORE(n) "vmovdqu %%ymm" #n ", 32*" #n "(%0);"
static int keeps(uint8_t first) {
    uint8_t found[16][32];
    Vector value, step;
    memset(&value, first, sizeof value);
    memset(&step, 1, sizeof step);
    // Yields in a system call while all registers hold their values.
    __asm__ volatile(FOR_ALL(LOAD) "mov $24, %%eax; syscall; mov $500000, %%ecx; 1: dec %%ecx; jnz 1b;" FOR_ALL(STORE)
                     : : "r"(found), "m"(value), "m"(step) : "rax", "rcx", "r11", "memory");
    for (int n = 0; n < 16; n++)
        for (int at = 0; at < 32; at++)
            if (found[n][at] != (uint8_t)(first + n + 1))
                return 0;
    return 1;
}
int main(void) {
    int is_child = fork() == 0;
    struct itimerval often = { { 0, 300 }, { 0, 300 } };
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, 0);
    int kept = 0;
    while (kept < 40 && keeps(kept * 2 + (is_child ? 100 : 0)))
        kept++;
    printf("%s kept %d, %s\n", is_child ? "child" : "parent", kept, signals > 10 ? "with signals" : "without signals");
    fflush(stdout);
    for (;;)
        pause();
}
"#;

/// Makes an image with a program. Returns its folder.
fn image(source: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = program_of_musl(folder.path(), source);
    layout_of_musl(folder.path(), &program);
    folder
}

/// Runs the image in a folder on a CPU model for 200 ms of vtime. Returns the exit status, the program's lines, and all
/// output.
fn run(folder: &TempDir, cpu: &str) -> (Option<i32>, Vec<String>, String) {
    let world = folder.path().join("world.toml");
    let text = format!("cpu = \"{cpu}\"\n[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"layout\"\n");
    fs::write(&world, text).unwrap();
    let output = everett(&["run", world.to_str().unwrap(), "--seed", "1", "--for", "200ms"]);
    let shown = shown(&output);
    let lines = shown.lines().filter_map(|line| Some(line.split_once("| ")?.1.to_owned())).collect();
    (output.status.code(), lines, shown)
}

#[test]
fn a_program_for_v3_computes_the_same_as_one_for_v2() {
    let (status, plain, shown) = run(&image(&[FOR_V2, FAST, WORK].concat()), "v2");
    assert_eq!((status, plain.len()), (Some(0), 1), "{shown}");
    let image = image(&[FOR_V3, FAST, WORK].concat());
    for cpu in ["v3", "v3+aes+sha"] {
        let (status, lines, shown) = run(&image, cpu);
        assert_eq!((status, &lines), (Some(0), &plain), "{shown}");
    }
    // Under v2, the program ends at its first instruction that v2 lacks.
    let (status, lines, shown) = run(&image, "v2");
    assert!(status == Some(1) && !lines.contains(&plain[0]), "{shown}");
    let told: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("node a: a program executed ")).collect();
    assert_eq!(told.len(), 1, "{shown}");
    assert!(
        told[0].ends_with("which the CPU model v2 lacks; cpu = \"v3\" in the world file has it"),
        "{shown}"
    );
}

#[test]
fn processes_and_signal_handlers_keep_the_vector_registers_of_others() {
    let (status, mut lines, shown) = run(&image(KEPT), "v3");
    lines.sort();
    assert_eq!(status, Some(0), "{shown}");
    assert_eq!(lines, ["child kept 40, with signals", "parent kept 40, with signals"], "{shown}");
}
