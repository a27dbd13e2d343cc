//! drgn opens core files of kernels that Everett reads from a guest's memory.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use everett_input::causes::with_causes;
use everett_inspect::Guest;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::machines::EngineOptions;
use everett_streams::Seed;
use serde_json::Value;

use crate::inspection::{Changed, ReadKernel, kernel};
use crate::support::{everett, launcher, python_packages, shown, world_file};

/// Package with drgn, in a fixed version.
const PACKAGE: &str = "drgn==0.3.0";

/// Opens a core file, and prints the kernel's release, its banner, and a line for each process in the kernel's list. The
/// kernel's own table has the symbols, and the arguments have the places of the fields, because the debug information of
/// Debian's kernel is too large to fetch for a test.
const SCRIPT: &str = r#"
import sys
import drgn
from drgn.helpers.linux.kallsyms import load_vmlinux_kallsyms

prog = drgn.Program()
prog.set_core_dump(sys.argv[1])
prog.register_symbol_finder("kallsyms", load_vmlinux_kallsyms(prog), enable_index=0)
list_field, pid, name, stack = (int(place) for place in sys.argv[2:])
print(prog["UTS_RELEASE"].string_().decode())
print(prog.read_c_string(prog.symbol("linux_banner").address).decode().rstrip())
text = prog.symbol("_text").address
assert prog.read(text, 4096) == prog.read(text - 0xffffffff80000000, 4096, physical=True)
init = prog.symbol("init_task").address
task = prog.read_u64(init + list_field) - list_field
while task != init:
    # Stacks are in memory that the kernel maps page by page. The word at the end of each is a magic number.
    assert prog.read_u64(prog.read_u64(task + stack)) == 0x57ac6e9d
    print(prog.read_u32(task + pid), prog.read_c_string(task + name).decode())
    task = prog.read_u64(task + list_field) - list_field
"#;

#[test]
fn drgn_finds_the_processes_that_ps_lists() {
    let ReadKernel { types, .. } = kernel();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (run, file, world) = (at("run"), at("a.vmcore"), world_file().display().to_string());
    let explored = everett(&["explore", &world, "--seed", "1", "--branches", "1", "--plain", "-o", &run]);
    assert!(explored.status.code().is_some_and(|code| code < 2), "{}", shown(&explored));
    let json = |arguments: &[&str]| {
        let output = everett(&[&["--json"], arguments].concat());
        assert!(output.status.success(), "{}", shown(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let written = json(&["vmcore", &run, "b0", "-o", &file]);
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!(written[0]["bytes"].as_u64(), Some(metadata.len()));
    let stored = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    assert!(stored < metadata.len(), "pages of zeros are holes");

    let place = |field: &str| types.field(field).unwrap().offset().to_string();
    let output = Command::new("python3")
        .args(["-c", SCRIPT, &file])
        .args(["tasks", "pid", "comm", "stack"].map(|field| place(&format!("task_struct.{field}"))))
        .env("PYTHONPATH", python_packages(&[PACKAGE]))
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let release = lines.next().unwrap();
    assert_eq!(written[0]["release"].as_str(), Some(release));
    assert!(lines.next().unwrap().starts_with(&format!("Linux version {release} (")), "{text}");
    // The name of a worker includes its queue, and names of other threads of the kernel can be longer than the field.
    let name = |name: &str| name.split(['-', '+']).next().unwrap().chars().take(15).collect::<String>();
    let told: Vec<String> = lines
        .map(|line| {
            let (pid, text) = line.split_once(' ').unwrap();
            format!("{pid} {}", name(text))
        })
        .collect();
    let listed = json(&["ps", &run, "b0"]);
    let listed: Vec<String> = listed
        .iter()
        .map(|process| format!("{} {}", process["pid"], name(process["name"].as_str().unwrap())))
        .collect();
    assert!(listed.len() > 40, "{listed:?}");
    assert_eq!(told, listed);

    let again = everett(&["vmcore", &run, "b0", "-o", &file]);
    assert_eq!(again.status.code(), Some(2), "{}", shown(&again));
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("a.vmcore: it exists already"),
        "{}",
        shown(&again)
    );
}

/// A kernel can say anything about the text that describes it, and about the place where it maps RAM.
#[test]
fn kernels_that_lie_about_their_memory_are_refused() {
    let ReadKernel { kernel, values, .. } = kernel();
    let timeline = launcher(EngineOptions::default()).start(Seed::new(5)).unwrap();
    let machine = timeline.machine(0);
    let bytes = machine.ram().len();
    let cpu = registers(&machine.cpu());
    let mut ram = Changed { ram: MachineRam(machine), words: BTreeMap::new() };
    let at = |name: &str| {
        let guest = Guest::new(&kernel, &ram).unwrap();
        guest.memory().physical(values.get(name).unwrap()).unwrap()
    };
    let (start, size, map) = (at("vmcoreinfo_data"), at("vmcoreinfo_size"), at("page_offset_base"));
    assert!(Guest::new(&kernel, &ram).unwrap().vmcore(&cpu, bytes).is_ok());
    for (word, lie, expected) in [
        (size, 0, "VMCOREINFO cannot be read"),
        (size, u64::MAX, "there are more than 65536 bytes in VMCOREINFO"),
        (start, 0x1000, "0x1000 is unmapped"),
        (start, u64::MAX, "is unmapped"),
        (map, 0xffff_8880_0020_0000, "RAM is not mapped at 0xffff888000200000, where the kernel says"),
        (map, 0x8000_0000_0000_0000, "RAM is not mapped at 0x8000000000000000, where the kernel says"),
    ] {
        ram.words = BTreeMap::from([(word, lie)]);
        let error = Guest::new(&kernel, &ram).unwrap().vmcore(&cpu, bytes).map(|_| ()).unwrap_err();
        assert!(with_causes(&error).contains(expected), "{}", with_causes(&error));
    }
    ram.words.clear();
    let guest = Guest::new(&kernel, &ram).unwrap();
    assert!(guest.vmcore(&cpu, 1 << 20).is_err(), "the kernel is not in RAM");
    // RAM that is shorter than it is said to be is an error, not zeros.
    let core = guest.vmcore(&cpu, 2 * bytes).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    assert!(core.write(&mut file, || Ok(())).is_err());
}
