//! Processes, mappings and stacks that Everett reads from a guest's memory equal those that the guest reports.

use std::collections::BTreeMap;

use everett_elf::Elf;
use everett_input::causes::with_causes;
use everett_inspect::memory::Ram;
use everett_inspect::module::Modules;
use everett_inspect::{Guest, Kernel};
use everett_session::inside::comparison::{Comparison, compare};
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::fork::Fork;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::inside::mapped_files::MappedFiles;
use everett_session::machines::EngineOptions;
use everett_streams::Seed;
use everett_symbols::kernel::btf::Btf;
use everett_symbols::kernel::{Values, symbols_and_values};
use everett_vmm::machine::Until;

use crate::support::{MS, everett, launcher, shown, world_file};

/// The kernel of the test's world.
pub(crate) struct ReadKernel {
    pub(crate) kernel: Kernel,
    pub(crate) values: Values,
    pub(crate) types: Btf,
}

pub(crate) fn kernel() -> ReadKernel {
    let file = std::fs::read(&launcher(EngineOptions::default()).files.kernel).unwrap();
    let sections = Elf::parse(&file).unwrap().sections().unwrap();
    let types = Btf::parse(sections.named(".BTF").unwrap().content().unwrap()).unwrap();
    ReadKernel { kernel: Kernel::new(&file).unwrap(), values: symbols_and_values(&file).1, types }
}

/// Everything that the guest's own `/proc` says of its processes is what Everett reads from its memory.
#[test]
fn processes_mappings_and_stacks_are_those_that_the_guest_reports() {
    let ReadKernel { kernel, .. } = kernel();
    let mut fork = Fork::new(launcher(EngineOptions::default()).start(Seed::new(5)).unwrap());
    let compared = compare(&mut fork, 0, &kernel, &|| true).unwrap();
    assert_eq!(compared.differences, []);
    let Comparison { processes, stacks, entries, mappings, .. } = compared;
    assert!(processes > 40 && stacks > processes && entries > 5 && mappings > 100, "{compared:?}");
    let error = compare(&mut fork, 0, &kernel, &|| false).unwrap_err();
    assert_eq!(error.to_string(), "interrupted");
}

/// RAM of a guest that lies: some words have other values than in the machine.
pub(crate) struct Lying<'m> {
    pub(crate) ram: MachineRam<'m>,
    pub(crate) seed: u64,
    /// One of this many words is a lie.
    pub(crate) rarity: u64,
}

impl Ram for Lying<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        if !self.ram.read(address, into) {
            return false;
        }
        let hash = |n: u64| {
            (n ^ self.seed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
                .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        for (n, byte) in into.iter_mut().enumerate() {
            let word = (address + n as u64) / 8;
            if hash(word).is_multiple_of(self.rarity) {
                // Small changes lead to other structures of the kernel, large ones out of memory.
                *byte ^= (hash(word ^ 0x5555) >> (8 * (n % 8))) as u8
                    & if hash(word) & 64 == 0 { 0x18 } else { 0xff };
            }
        }
        true
    }
}

/// A hostile guest can write anything into its kernel's structures. Reading them ends, and does not panic.
#[test]
fn a_guest_that_lies_about_its_processes_harms_no_one() {
    let ReadKernel { kernel, .. } = kernel();
    let launcher = launcher(EngineOptions::default());
    let timeline = launcher.start(Seed::new(5)).unwrap();
    let machine = timeline.machine(0);
    let files = MappedFiles::of_node(
        &launcher.files,
        &launcher.world,
        &launcher.world.nodes[0].name,
        DebugFolders::default(),
    )
    .unwrap();
    let (mut read, mut refused, mut cores) = (0, 0, 0);
    for seed in 0..60 {
        let ram = Lying { ram: MachineRam(machine), seed, rarity: [200, 2_000, 20_000][seed as usize % 3] };
        let Ok(guest) = Guest::new(&kernel, &ram) else {
            refused += 1;
            continue;
        };
        let Ok(processes) = guest.processes() else {
            refused += 1;
            continue;
        };
        let modules = guest.modules().unwrap_or_default();
        let _ = guest.vmcore(&registers(&machine.cpu()), machine.ram().len());
        for process in processes {
            read += 1;
            let maps = guest.mappings(&process).is_ok();
            let _ = (guest.libraries(&process), guest.program_path(&process), guest.code_start(&process));
            let core = guest.core_file(&process, &registers(&machine.cpu())).ok().flatten();
            if let Some(core) = core.filter(|core| core.bytes() < 64 << 20) {
                cores += usize::from(core.write(&mut std::io::sink()).is_ok());
            }
            let mut stacks = guest.program_stacks(&process, &files).ok().flatten().filter(|_| maps);
            for thread in &process.threads {
                let stack = guest.stack(&process, thread, &registers(&machine.cpu()), &modules);
                if let (Ok(stack), Some(stacks)) = (stack, &mut stacks)
                    && let Some(user) = stack.user
                {
                    stacks.frames(user);
                }
            }
        }
    }
    assert!(read > 200 && refused > 10 && cores > 10, "{read} {refused} {cores}");
}

/// RAM in which some words have other values than in the machine, by guest-physical address.
pub(crate) struct Changed<'m> {
    pub(crate) ram: MachineRam<'m>,
    pub(crate) words: BTreeMap<u64, u64>,
}

impl Ram for Changed<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let is_ram = self.ram.read(address, into);
        for (at, byte) in (address..).zip(into) {
            if let Some(word) = self.words.get(&(at & !7)) {
                *byte = word.to_le_bytes()[at as usize % 8];
            }
        }
        is_ram
    }
}

/// The tree of a process's mappings can have a few nodes that lead to a huge number of empty leaves. Reading it ends.
#[test]
fn a_tree_of_mappings_with_endless_ways_is_refused() {
    const RANGE: u64 = 2;
    const LEAF: u64 = 1;
    const NODE_BYTES: u64 = 256;
    let ReadKernel { kernel, types, .. } = kernel();
    let timeline = launcher(EngineOptions::default()).start(Seed::new(5)).unwrap();
    let machine = timeline.machine(0);
    let mut ram = Changed { ram: MachineRam(machine), words: BTreeMap::new() };
    let guest = Guest::new(&kernel, &ram).unwrap();
    let processes = guest.processes().unwrap();
    let process = processes.iter().find(|process| process.threads[0].name == "redis-server").unwrap();
    let mappings = guest.mappings(process).unwrap().len();
    assert!(mappings > 10, "{mappings}");
    // The nodes lie in the page of another process's `task_struct`.
    let page = processes[1].threads[0].task & !0xfff;
    let field = |name: &str| types.field(name).unwrap().offset();
    let root = process.mm.unwrap() + field("mm_struct.mm_mt.ma_root");
    let (pivots, slots) = (field("maple_range_64.pivot"), field("maple_range_64.slot"));
    let physical = |at: u64| guest.memory().physical(at).unwrap();
    let entry = |n: u64, kind: u64| (page + NODE_BYTES * n) | (kind << 3) | 2;
    let mut words = BTreeMap::from([(physical(root), entry(0, RANGE))]);
    for n in 0..15 {
        let node = page + NODE_BYTES * n;
        words.extend((0..NODE_BYTES / 8).map(|word| (physical(node + 8 * word), 0)));
        for way in (0..15).filter(|_| n < 14) {
            words.insert(physical(node + pivots + 8 * way), u64::MAX);
            words.insert(physical(node + slots + 8 * way), entry(n + 1, if n == 13 { LEAF } else { RANGE }));
        }
    }
    ram.words = words;
    let error = Guest::new(&kernel, &ram).unwrap().mappings(process).unwrap_err();
    assert!(with_causes(&error).contains("more than 131072 nodes in a tree"), "{}", with_causes(&error));
}

/// When the main thread of Redis waits for a client, it does so in a function that its `main` called. At *ready*, Redis
/// may still be starting.
#[test]
fn the_stack_of_a_server_leads_to_its_main_function() {
    let ReadKernel { kernel, .. } = kernel();
    let launcher = launcher(EngineOptions::default());
    let mut timeline = launcher.start(Seed::new(5)).unwrap();
    let files = MappedFiles::of_node(
        &launcher.files,
        &launcher.world,
        &launcher.world.nodes[0].name,
        DebugFolders::default(),
    )
    .unwrap();
    for _ in 0..500 {
        let machine = timeline.machine(0);
        let ram = MachineRam(machine);
        let guest = Guest::new(&kernel, &ram).unwrap();
        let processes = guest.processes().unwrap();
        let redis = processes.iter().find(|process| process.threads[0].name == "redis-server").unwrap();
        let mut stacks = guest.program_stacks(redis, &files).unwrap().unwrap();
        let stack = guest.stack(redis, &redis.threads[0], &registers(&machine.cpu()), &Modules::default());
        let (frames, is_complete) = stacks.frames(stack.unwrap().user.unwrap());
        let functions: Vec<&str> = frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
        let at = |name: &str| functions.iter().position(|function| function.starts_with(name));
        if let Some(wait) = at("epoll_wait+") {
            assert!(is_complete, "{frames:?}");
            let [loops, main, start] = ["aeMain+", "main+", "_start+"].map(|name| at(name).expect(name));
            assert!(wait < loops && loops < main && main < start, "{functions:?}");
            return;
        }
        timeline.run(&Until::vtime(timeline.vtime() + MS));
    }
    panic!("Redis does not wait within 500 ms");
}

/// The commands go to the end of a branch, or to a vtime of it. Other vtimes and unknown nodes are refused.
#[test]
fn ps_and_stack_show_the_machines_of_a_branch() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run").display().to_string();
    let world = world_file().display().to_string();
    let explored = everett(&["explore", &world, "--seed", "1", "--branches", "1", "--plain", "-o", &run]);
    assert!(explored.status.code().is_some_and(|code| code < 2), "{}", shown(&explored));
    let text = |arguments: &[&str]| {
        let output = everett(arguments);
        assert!(output.status.success(), "{}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let processes = text(&["--json", "ps", &run, "b0", "--maps"]);
    let line =
        processes.lines().find(|line| line.contains(r#""name":"redis-server""#)).expect("a line for Redis");
    assert!(line.contains("libc.so.6") && line.contains("[stack]"), "{line}");
    let stack = text(&["stack", &run, "b0", "--process", "redis-server"]);
    assert!(stack.contains("main+0x") && stack.contains("_start+0x"), "{stack}");
    assert_eq!(stack, text(&["stack", &run, "b0", "--process", "redis-server"]), "the same twice");
    let compared = text(&["ps", &run, "b0", "--compare", "--instants", "2"]);
    assert!(
        compared.contains("2 machines at 2 instants: ") && compared.contains("; all equal"),
        "{compared}"
    );
    for (arguments, expected) in [
        (["--at", "1000s"], "--at: 1000.000000000 s is not on this timeline"),
        (["--node", "n9"], "--node: no node of this world is named n9"),
        (["--process", "nothing"], "--process: no machine has a process nothing at this instant"),
    ] {
        let output = everett(&[&["stack", &run, "b0"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{}", shown(&output));
    }
}
