//! Processes, mappings and stacks that Everett reads from a guest's memory equal those that the guest reports.

use std::collections::{BTreeMap, BTreeSet};

use everett_elf::Elf;
use everett_input::causes::with_causes;
use everett_inspect::mapping::Mapping;
use everett_inspect::memory::Ram;
use everett_inspect::module::Modules;
use everett_inspect::registers::CpuRegisters;
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::inside::mapped_files::MappedFiles;
use everett_session::machines::EngineOptions;
use everett_session::world::timeline::{COMMAND, Timeline};
use everett_streams::Seed;
use everett_symbols::kernel::btf::Btf;
use everett_symbols::kernel::{Values, symbols_and_values};
use everett_vmm::machine::Until;

use crate::support::{MS, everett, launcher, lines, run_script, shown, world_file};

/// Prints facts about each process, as the guest's `/proc` states them. Each process has a line with its ID, then its
/// facts, each with a word in front.
const SCRIPT: &str = r#"
for folder in /proc/[0-9]*; do
    echo "process ${folder#/proc/}"
    sed 's/^/stat /' $folder/stat
    grep '^Uid' $folder/status | sed 's/^/user /'
    tr '\0' ' ' < $folder/cmdline | sed 's/^/command /'; echo
    for task in $folder/task/*; do
        echo "thread ${task##*/} $(cat $task/comm)"
        echo "frames ${task##*/}" $(sed 's/^[^ ]* //; s,/[^ ]*,,' $task/stack)
    done
    sed 's/^/map /' $folder/maps
done
echo done
sleep 1000
"#;

/// Facts about the processes of a guest, by process ID.
type Facts = BTreeMap<u32, Vec<String>>;

/// Returns the facts that the guest's script printed.
fn reported(lines: &[&str]) -> Facts {
    let mut facts = Facts::new();
    let mut pid = 0;
    for line in lines.iter().filter(|line| !line.is_empty()) {
        match line.split_once(' ') {
            None if *line == "done" => break,
            Some(("process", number)) => {
                pid = number.parse().unwrap();
                facts.insert(pid, Vec::new());
            }
            Some(("stat", stat)) => {
                let (name, rest) = stat.split_once(" (").unwrap().1.rsplit_once(") ").unwrap();
                let mut rest = rest.split(' ');
                let (state, parent) = (rest.next().unwrap(), rest.next().unwrap());
                facts.get_mut(&pid).unwrap().push(format!("stat {name} {state} {parent}"));
            }
            Some(("user", text)) => {
                let user = text.split_whitespace().nth(1).unwrap();
                facts.get_mut(&pid).unwrap().push(format!("user {user}"));
            }
            // The kernel writes spaces after an address that fills its column.
            _ => facts.get_mut(&pid).unwrap().push(line.trim_end().to_owned()),
        }
    }
    facts
}

/// Returns the same facts, read from the guest's memory.
fn observed(guest: Guest<'_>, modules: &Modules, kernel: &ReadKernel, cpu: &CpuRegisters) -> Facts {
    let value = |name| kernel.values.get(name).unwrap();
    let sleeping = value("__sched_text_start")..value("__sched_text_end");
    let symbols = kernel.kernel.symbols();
    let facts = |process: &Process| {
        let first = &process.threads[0];
        let mut facts = vec![
            format!("stat {} {} {}", first.name, first.state.letter(), process.parent),
            format!("user {}", process.user),
        ];
        if !process.command.is_empty() {
            facts.push(format!("command {}", process.command.join(" ")).trim_end().to_owned());
        }
        for thread in &process.threads {
            facts.push(format!("thread {} {}", thread.tid, thread.name));
            let stack = guest.stack(process, thread, cpu, modules).unwrap();
            assert!(stack.is_complete, "{} {stack:?}", thread.name);
            // The kernel leaves out its functions for sleeping.
            let frames = stack.kernel.iter().skip_while(|frame| sleeping.contains(&frame.address));
            let names = frames.map(|frame| frame.named(symbols, modules).to_string());
            // The kernel prints names without addresses.
            let name = |shown: String| Some(shown.split_once(" (")?.1.trim_end_matches(')').to_owned());
            let frames: Vec<String> = names.filter_map(name).collect();
            facts.push(format!("frames {} {}", thread.tid, frames.join(" ")).trim_end().to_owned());
        }
        let maps = guest.mappings(process).unwrap();
        facts.extend(maps.iter().map(|map: &Mapping| format!("map {map}").trim_end().to_owned()));
        (process.pid, facts)
    };
    guest.processes().unwrap().iter().map(facts).collect()
}

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

/// Kinds of facts.
const KINDS: [&str; 6] = ["stat", "user", "command", "thread", "frames", "map"];

/// For each process and kind: all facts that were observed at some instant.
type Observations = BTreeMap<(u32, &'static str), BTreeSet<Vec<String>>>;

fn of_kind(facts: &[String], kind: &str) -> Vec<String> {
    let facts = facts.iter().filter(|fact| fact.starts_with(kind));
    facts.map(|fact| without_work(fact).to_owned()).collect()
}

fn observe(timeline: &Timeline, kernel: &ReadKernel, modules: &Modules, observations: &mut Observations) {
    let machine = timeline.machine(0);
    let ram = MachineRam(machine);
    let guest = Guest::new(&kernel.kernel, &ram).unwrap();
    for (pid, facts) in observed(guest, modules, kernel, &registers(&machine.cpu())) {
        for kind in KINDS {
            observations.entry((pid, kind)).or_default().insert(of_kind(&facts, kind));
        }
    }
}

/// Processes can change while the script runs, so Everett observes them every 500 us of vtime. Everything that the script
/// reports was observed at one of these instants.
#[test]
fn processes_mappings_and_stacks_are_those_that_the_guest_reports() {
    let kernel = kernel();
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(5)).unwrap();
    // The machine loads no module after its boot.
    let modules = Guest::new(&kernel.kernel, &MachineRam(timeline.machine(0))).unwrap().modules().unwrap();
    let mut observations = Observations::new();
    observe(&timeline, &kernel, &modules, &mut observations);
    let before: BTreeSet<u32> = observations.keys().map(|(pid, _)| *pid).collect();
    let mut printed = run_script(&mut timeline, SCRIPT, 0).1;
    while lines(&printed, COMMAND).last() != Some(&"done") {
        let until = Until::vtime(timeline.vtime() + MS / 2);
        timeline.run(&until);
        printed.append(&mut timeline.take_events());
        observe(&timeline, &kernel, &modules, &mut observations);
    }
    let reported = reported(&lines(&printed, COMMAND));
    // The script's own processes come and go.
    for (pid, facts) in reported.iter().filter(|(pid, _)| before.contains(pid)) {
        for kind in KINDS {
            let (told, seen) = (of_kind(facts, kind), &observations[&(*pid, kind)]);
            assert!(seen.contains(&told), "{pid}: the guest reports {told:#?}, observed were {seen:#?}");
        }
    }
    assert!(before.len() > 40 && reported.len() > before.len(), "{} {}", before.len(), reported.len());
    let maps = reported.values().flatten().filter(|fact| fact.starts_with("map"));
    assert!(maps.count() > 100);
}

/// Returns a fact without the name of a kernel worker's queue, which changes all the time.
fn without_work(fact: &str) -> &str {
    match fact.find("kworker/") {
        Some(at) => fact[at..].find(['-', '+']).map_or(fact, |end| &fact[..at + end]),
        None => fact,
    }
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
            let _ = (guest.libraries(&process), guest.program_path(&process));
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

/// The main thread of Redis waits for a client, in a function that its `main` called.
#[test]
fn the_stack_of_a_server_leads_to_its_main_function() {
    let ReadKernel { kernel, .. } = kernel();
    let launcher = launcher(EngineOptions::default());
    let timeline = launcher.start(Seed::new(5)).unwrap();
    let machine = timeline.machine(0);
    let ram = MachineRam(machine);
    let guest = Guest::new(&kernel, &ram).unwrap();
    let files = MappedFiles::of_node(
        &launcher.files,
        &launcher.world,
        &launcher.world.nodes[0].name,
        DebugFolders::default(),
    )
    .unwrap();
    let processes = guest.processes().unwrap();
    let redis = processes.iter().find(|process| process.threads[0].name == "redis-server").unwrap();
    let mut stacks = guest.program_stacks(redis, &files).unwrap().unwrap();
    let stack = guest.stack(redis, &redis.threads[0], &registers(&machine.cpu()), &Modules::default());
    let user = stack.unwrap().user.unwrap();
    let (frames, is_complete) = stacks.frames(user);
    assert!(is_complete, "{frames:?}");
    let functions: Vec<&str> = frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
    let at = |name: &str| functions.iter().position(|function| function.starts_with(name)).expect(name);
    assert!(at("epoll_wait+") < at("aeMain+") && at("aeMain+") < at("main+") && at("main+") < at("_start+"));
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
