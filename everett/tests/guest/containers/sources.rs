//! Source lines of a program in an image, read from a guest's memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use everett_inspect::program_stack::Frame;
use everett_inspect::{Guest, Kernel};
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::inside::mapped_files::MappedFiles;
use everett_streams::Seed;

use super::launcher;
use super::userlands::{layout_of_musl, program_of_musl};
use crate::support::{MS, run_to_end};

/// Program that computes in `inner` all the time.
const SOURCE: &str = "\
volatile long spins;
static void inner(void) {
    for (;;)
        spins++;
}
static int outer(void) {
    inner();
    return (int)spins;
}
int main(void) {
    return outer();
}
";

/// Runs a command on the host.
fn run(command: &str, arguments: &[&str]) {
    let output = Command::new(command).args(arguments).output().expect(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the world and returns the stack of its program.
fn frames(folder: &Path, debug: DebugFolders) -> Vec<Frame> {
    let launcher = launcher(folder, "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"layout\"\n");
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    run_to_end(&mut timeline, 100 * MS);
    let kernel = Kernel::new(&fs::read(&launcher.files.kernel).unwrap()).unwrap();
    let machine = timeline.machine(0);
    let ram = MachineRam(machine);
    let guest = Guest::new(&kernel, &ram).unwrap();
    let processes = guest.processes().unwrap();
    let program = processes.iter().find(|process| process.threads[0].name == "program").unwrap();
    let files = MappedFiles::of_node(&launcher.files, &launcher.world, "a", debug).unwrap();
    let mut stacks = guest.program_stacks(program, &files).unwrap().unwrap();
    let modules = guest.modules().unwrap();
    let stack = guest.stack(program, &program.threads[0], &registers(&machine.cpu()), &modules).unwrap();
    stacks.frames(stack.user.unwrap()).0
}

/// Returns function, file and line of a frame without inlined calls.
fn place(frame: &Frame) -> Option<(&str, &str, u64)> {
    let [source] = &frame.source[..] else { return None };
    let file = Path::new(source.file.as_deref()?).file_name()?.to_str()?;
    Some((source.function.as_deref()?, file, source.line?))
}

/// Returns the places of the first three frames.
fn places(frames: &[Frame]) -> Vec<(&str, &str, u64)> {
    frames.iter().take(3).map_while(place).collect()
}

fn assert_right(frames: &[Frame]) {
    let places = places(frames);
    assert_eq!(places.len(), 3, "{frames:#?}");
    let (function, file, line) = places[0];
    assert_eq!((function, file), ("inner", "program.c"));
    assert!([3, 4].contains(&line), "{frames:#?}");
    assert_eq!(places[1..], [("outer", "program.c", 7), ("main", "program.c", 11)]);
    let text = frames[1].to_string();
    assert!(text.contains(" outer+0x") && text.ends_with("/program.c:7"), "{text}");
}

#[test]
fn stacks_name_lines_from_the_program_and_from_separate_debug_files() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_of_musl(folder.path(), SOURCE);
    layout_of_musl(folder.path(), &program);
    assert_right(&frames(folder.path(), DebugFolders::default()));

    // The same program without debug information, which is in a file of its own.
    let whole = everett_symbols::program::Program::parse(fs::read(&program).unwrap().into()).unwrap();
    let id: String = whole.build_id().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let separate = folder.path().join("debug/.build-id").join(&id[..2]).join(format!("{}.debug", &id[2..]));
    fs::create_dir_all(separate.parent().unwrap()).unwrap();
    let (program, separate) = (program.to_str().unwrap(), separate.to_str().unwrap());
    run("objcopy", &["--only-keep-debug", program, separate]);
    run("strip", &["--strip-debug", program]);
    fs::remove_dir_all(folder.path().join("layout")).unwrap();
    layout_of_musl(folder.path(), Path::new(program));
    let without = frames(folder.path(), DebugFolders::default());
    assert!(without.iter().all(|frame| frame.source.is_empty()), "{without:#?}");
    assert!(without[0].function.as_ref().is_some_and(|name| name.starts_with("inner+")), "{without:#?}");
    assert_right(&frames(folder.path(), DebugFolders::new(vec![folder.path().join("debug")])));
}
