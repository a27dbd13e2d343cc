//! Stacks go on through loadable modules, whose tables Everett reads from the kernel's memory.

use std::collections::{BTreeMap, BTreeSet};

use everett_input::causes::with_causes;
use everett_inspect::Guest;
use everett_inspect::module::Modules;
use everett_inspect::task::Process;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::machines::EngineOptions;
use everett_session::world::event::Event;
use everett_session::world::timeline::{COMMAND, Timeline};
use everett_streams::Seed;
use everett_vmm::machine::Until;

use crate::inspection::{Changed, ReadKernel, kernel};
use crate::support::{MS, launcher, lines, run_script};

/// Starts a program that reads a file of the image, for ever. The file systems of the image are loadable modules. Prints the
/// program's stack again and again.
const SCRIPT: &str = r#"
python3 -c '
while True:
    open("/proc/sys/vm/drop_caches", "w").write("3")
    open("/usr/bin/redis-server", "rb").read()' &
sleep 0.2
for n in 1 2 3 4 5; do
    echo $(sed 's/^[^ ]* //; s,/[^ ]*,,; s/$/,/' /proc/$!/stack)
done
echo done
sleep 1000
"#;

/// Returns the program that reads.
fn reader(guest: Guest<'_>) -> Option<Process> {
    guest.processes().unwrap().into_iter().find(|process| process.threads[0].name == "python3")
}

/// Returns the frames of the stack of the program that reads. Empty if it has none in the kernel.
fn stack(timeline: &Timeline, kernel: &ReadKernel, modules: &Modules) -> String {
    let value = |name| kernel.values.get(name).unwrap();
    let sleeping = value("__sched_text_start")..value("__sched_text_end");
    let machine = timeline.machine(0);
    let ram = MachineRam(machine);
    let guest = Guest::new(&kernel.kernel, &ram).unwrap();
    let Some(process) = reader(guest) else { return String::new() };
    let stack = guest.stack(&process, &process.threads[0], &registers(&machine.cpu()), modules).unwrap();
    assert!(stack.is_complete, "{stack:?}");
    // The kernel leaves out its functions for sleeping, and prints names without addresses.
    let frames = stack.kernel.iter().skip_while(|frame| sleeping.contains(&frame.address));
    let name = |shown: String| {
        let name = shown.split_once(" (").and_then(|(_, name)| name.strip_suffix(')'));
        format!("{},", name.unwrap_or(&shown))
    };
    let names = frames.map(|frame| name(frame.named(kernel.kernel.symbols(), modules).to_string()));
    names.collect::<Vec<String>>().join(" ")
}

/// Starts the script in a machine. Returns the timeline and the machine's modules. The machine loads no module after its
/// boot.
fn start(kernel: &ReadKernel) -> (Timeline, Modules, Vec<Event>) {
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(5)).unwrap();
    let modules = Guest::new(&kernel.kernel, &MachineRam(timeline.machine(0))).unwrap().modules().unwrap();
    let printed = run_script(&mut timeline, SCRIPT, 0).1;
    (timeline, modules, printed)
}

/// Everett observes the stack every 100 us of vtime. Each stack that the guest reports was observed at one of these
/// instants.
#[test]
fn stacks_in_modules_are_those_that_the_guest_reports() {
    let kernel = kernel();
    let (mut timeline, modules, mut printed) = start(&kernel);
    let mut observed = BTreeSet::new();
    while lines(&printed, COMMAND).last() != Some(&"done") {
        let until = Until::vtime(timeline.vtime() + MS / 10);
        timeline.run(&until);
        printed.append(&mut timeline.take_events());
        observed.insert(stack(&timeline, &kernel, &modules));
    }
    let reported: BTreeSet<&str> = lines(&printed, COMMAND).into_iter().collect();
    for stack in reported.iter().filter(|stack| **stack != "done") {
        assert!(observed.contains(*stack), "the guest reports {stack}, observed were {observed:#?}");
    }
    for module in ["[squashfs]", "[overlay]"] {
        assert!(reported.iter().any(|stack| stack.contains(module)), "{module}: {reported:#?}");
    }
}

/// A module can claim any number of rows, symbols and bytes, and tables anywhere. Everett then has no names or rows of this
/// module, and stacks end at its frames. A list of modules without an end is refused.
#[test]
fn modules_that_lie_have_no_names_and_no_rows() {
    let read = kernel();
    let (mut timeline, modules, _) = start(&read);
    while !stack(&timeline, &read, &modules).contains("[squashfs]") {
        timeline.run(&Until::vtime(timeline.vtime() + MS / 10));
    }
    let ReadKernel { kernel, types, values } = read;
    let machine = timeline.machine(0);
    let cpu = registers(&machine.cpu());
    let mut ram = Changed { ram: MachineRam(machine), words: BTreeMap::new() };
    let guest = Guest::new(&kernel, &ram).unwrap();
    let memory = guest.memory();
    let word = |at: u64| {
        let mut word = [0; 8];
        memory.read(at, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    let field = |name: &str| types.field(name).unwrap().offset();
    let list = values.get("modules").unwrap();
    // Finds the structure of the file system.
    let all: Vec<u64> = std::iter::successors(Some(word(list)), |at| Some(word(*at)))
        .take_while(|at| *at != list)
        .map(|at| at - field("module.list"))
        .collect();
    let names: Vec<String> = guest.modules().unwrap().all().iter().map(|one| one.name.clone()).collect();
    assert_eq!(names.len(), all.len());
    let at = names.iter().position(|name| name == "squashfs");
    let module = all[at.unwrap_or_else(|| panic!("{names:?}"))];
    let table = word(module + field("module.kallsyms"));
    let process = reader(guest).unwrap();
    let physical = |at: u64| {
        assert_eq!(at % 8, 0);
        memory.physical(at).unwrap()
    };
    let half = |at: u64, value: u32| {
        let low = at & !7;
        let shift = 8 * (at - low);
        (physical(low), word(low) & !(0xffff_ffff << shift) | u64::from(value) << shift)
    };
    let (rows, symbols) = (module + field("module.arch.num_orcs"), table + field("mod_kallsyms.num_symtab"));
    let row_starts = physical(module + field("module.arch.orc_unwind_ip"));
    let row_content = physical(module + field("module.arch.orc_unwind"));
    let symbol_table = physical(table + field("mod_kallsyms.symtab"));
    let names_table = physical(table + field("mod_kallsyms.strtab"));
    let size = module + field("module.core_layout.size");
    let base = physical(module + field("module.core_layout.base"));
    // Each lie, and whether the stack still has rows and names.
    let lies = [
        ("nothing", (base, word(module + field("module.core_layout.base"))), true, true),
        ("many rows", half(rows, u32::MAX), false, true),
        ("rows beyond the module", half(rows, 4 << 20), false, true),
        ("rows elsewhere", (row_starts, list & !0xfff), false, true),
        ("other rows", (row_content, u64::MAX - 100), false, true),
        ("many symbols", half(symbols, u32::MAX), true, false),
        ("symbols elsewhere", (symbol_table, u64::MAX - 100), true, false),
        ("names elsewhere", (names_table, 0x1000), true, false),
        ("no size", half(size, 0), false, false),
        ("a part of the memory of a module", half(size, 0x1000), false, false),
    ];
    let link = physical(module + field("module.list"));
    let refused = [
        ("a circle", (link, module + field("module.list")), "4096 modules"),
        ("a hole", (link, 0x1000), "0x1000 is unmapped"),
        ("a huge area", half(size, u32::MAX), "is unmapped"),
    ];
    for (lie, words, has_rows, has_names) in lies {
        ram.words = BTreeMap::from([words]);
        let guest = Guest::new(&kernel, &ram).unwrap();
        let modules = guest.modules().unwrap();
        let stack = guest.stack(&process, &process.threads[0], &cpu, &modules).unwrap();
        assert_eq!(stack.is_complete, has_rows, "{lie}: {stack:?}");
        let frames: Vec<String> =
            stack.kernel.iter().map(|frame| frame.named(kernel.symbols(), &modules).to_string()).collect();
        let is_named = frames.iter().any(|frame| frame.contains(" [squashfs])"));
        assert_eq!(is_named, has_names, "{lie}: {frames:#?}");
    }
    for (lie, words, expected) in refused {
        ram.words = BTreeMap::from([words]);
        let error = with_causes(&Guest::new(&kernel, &ram).unwrap().modules().unwrap_err());
        assert!(error.contains(expected), "{lie}: {error}");
    }
}
