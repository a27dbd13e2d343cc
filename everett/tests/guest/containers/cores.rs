//! gdb opens core files that Everett reads from a guest's memory.

use std::fs;
use std::path::Path;

use everett_inspect::{Guest, Kernel};
use everett_session::inside::machine::{MachineRam, registers};
use everett_streams::Seed;

use super::launcher;
use super::tools::tools;
use super::userlands::{layout_of_musl, program_of_musl};
use crate::support::{MS, everett, run_to_end, shown, world_file};

/// A program with a thread that computes and one that sleeps. Both have known values in vector registers, and the first has
/// one in an x87 register. musl's `pthread_create` needs no other library.
const SOURCE: &str = "\
#include <pthread.h>
#include <unistd.h>
volatile long spins;
long marker[2] = { 0x1122334455667788, 42 };
static void *sleeper(void *argument) {
    long now[2] = { 1000, 0 };
    for (;;) {
        /* nanosleep, without a function that could use vector registers */
        long result = 35;
        __asm__ volatile(\"movq %1, %%xmm15; syscall\"
            : \"+a\"(result) : \"r\"(0x5566778899aabbccL), \"D\"(now), \"S\"(0L)
            : \"rcx\", \"r11\", \"memory\", \"xmm15\");
    }
    return argument;
}
static void inner(long n) {
    marker[1] += n;
    double quarter = 0.25;
    __asm__ volatile(\"movups %0, %%xmm3; fldl %1; fldpi\" : : \"m\"(marker), \"m\"(quarter) : \"xmm3\");
    for (;;) {
        spins++; __asm__ volatile(\"movq %0, %%xmm5\" : : \"r\"(spins) : \"xmm5\");
    }
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sleeper, marker);
    inner(58);
    return 0;
}
";

/// Runs gdb without a terminal and returns what it prints.
fn gdb(sysroot: &Path, program: &Path, core: &Path, commands: &[&str]) -> String {
    let sysroot = format!("set sysroot {}", sysroot.display());
    // The host can have debug files of the same libraries.
    let mut arguments = vec!["-nx", "-batch", "-ex", "set debug-file-directory /none", "-ex", &sysroot];
    let (program, core) = (program.display().to_string(), core.display().to_string());
    let file = format!("file {program}");
    let core = format!("core-file {core}");
    for command in [&file[..], &core].into_iter().chain(commands.iter().copied()) {
        arguments.extend(["-ex", command]);
    }
    tools().run("gdb", &arguments)
}

#[test]
fn gdb_shows_threads_functions_lines_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_of_musl(folder.path(), SOURCE);
    layout_of_musl(folder.path(), &program);
    let launcher = launcher(folder.path(), "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"layout\"\n");
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    run_to_end(&mut timeline, 100 * MS);
    let kernel = Kernel::new(&fs::read(&launcher.files.kernel).unwrap()).unwrap();
    let digest = timeline.digest();
    let core = folder.path().join("core");
    let bytes = {
        let machine = timeline.machine(0);
        let ram = MachineRam(machine);
        let guest = Guest::new(&kernel, &ram).unwrap();
        let processes = guest.processes().unwrap();
        let process = processes.iter().find(|process| process.threads[0].name == "program").unwrap();
        assert_eq!(process.threads.len(), 2);
        assert_eq!(guest.program_path(process).unwrap().as_deref(), Some("/program"));
        let start = guest.code_start(process).unwrap().unwrap();
        let mappings = guest.mappings(process).unwrap();
        let code = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&start)).unwrap();
        assert!(code.name == "/program" && code.access.execute, "{code:?}");
        let of_kernel = processes.iter().find(|process| process.mm.is_none()).unwrap();
        assert_eq!(guest.code_start(of_kernel).unwrap(), None);
        let libraries = guest.libraries(process).unwrap();
        let names: Vec<&str> = libraries.iter().map(|library| &*library.name).collect();
        assert!(names.contains(&"/lib/ld-musl-x86_64.so.1"), "{names:?}");
        let file = guest.core_file(process, &registers(&machine.cpu())).unwrap().unwrap();
        file.write(&mut fs::File::create(&core).unwrap()).unwrap();
        file.bytes()
    };
    assert!(timeline.digest() == digest, "reading changes nothing");
    assert_eq!(fs::metadata(&core).unwrap().len(), bytes);
    let commands = [
        "info threads",
        "bt",
        "p/x marker[0]",
        "p marker[1]",
        "p spins > 0",
        "p/x $xmm3.v2_int64",
        // The thread that computes runs, so its registers are those of the CPU.
        "p spins - $xmm5.v2_int64[0] == 0 || spins - $xmm5.v2_int64[0] == 1",
        "p $st0",
        "p $st1",
        "thread 2",
        "bt",
        "p/x $xmm15.v2_int64",
    ];
    let text = gdb(folder.path(), &program, &core, &commands);
    for expected in [
        "inner (n=58) at ",
        "program.c:2",
        "in main () at ",
        "program.c:27",
        "= 0x1122334455667788",
        "= 100",
        "$3 = 1\n",
        "$5 = 1\n",
        "[Switching to thread 2 ",
        "= {0x1122334455667788, 0x64}",
        "= 3.14159265358979323851",
        "= 0.25",
        "= {0x5566778899aabbcc, 0x0}",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// The command writes the programs and libraries beside the core file, and says how to open it.
#[test]
fn gdb_opens_what_the_command_writes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (run, output, world) = (at("run"), at("out"), world_file().display().to_string());
    let explored = everett(&["explore", &world, "--seed", "1", "--branches", "1", "--plain", "-o", &run]);
    assert!(explored.status.code().is_some_and(|code| code < 2), "{}", shown(&explored));
    let core = |process: &str, output: &str| {
        everett(&["--json", "core", &run, "b0", "--process", process, "-o", output])
    };
    let written = core("redis-server", &output);
    assert!(written.status.success(), "{}", shown(&written));
    let line = String::from_utf8(written.stdout).unwrap();
    let line: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let path = |key: &str| Path::new(line[key].as_str().unwrap());
    assert_eq!(fs::metadata(path("core")).unwrap().len(), line["bytes"].as_u64().unwrap());
    let text = gdb(path("files"), path("program"), path("core"), &["bt", "info sharedlibrary"]);
    for expected in ["in epoll_wait () from ", "in aeMain ()", "in main ()", "/libc.so.6"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("corrupt stack"), "{text}");

    let again = core("redis-server", &output);
    assert_eq!(again.status.code(), Some(2), "{}", shown(&again));
    let expected = "out: it exists already, and a new folder is needed";
    assert!(String::from_utf8_lossy(&again.stderr).contains(expected), "{}", shown(&again));
    let unknown = core("postgres", &at("other"));
    assert_eq!(unknown.status.code(), Some(2), "{}", shown(&unknown));
    let expected = "--process: no machine has a program postgres at this instant";
    assert!(String::from_utf8_lossy(&unknown.stderr).contains(expected), "{}", shown(&unknown));
    assert!(!folder.path().join("other").exists());
}
