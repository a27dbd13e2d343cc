//! The origin of a wrong number in a client's answer is found across three nodes, and the search changes nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use everett_explorer::search::ForkPoint;
use everett_inspect::memory::AddressSpace;
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};
use everett_session::debug::cursor::{Aim, Cursor, Listener, Stop};
use everett_session::debug::origin::limits::Bounds;
use everett_session::debug::origin::step::{Happened, Step};
use everett_session::debug::origin::{Extent, Memory, MessageBytes, Search, Source};
use everett_session::explore::path_runner::Interrupted;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::machine::MachineRam;
use everett_session::inside::mapped_files::MappedFiles;
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;

use crate::cursor::Recorded;
use crate::explore::{explore, setting_of};
use crate::support::cold_launcher;

/// Memory for the moments of a cursor, in bytes.
const BUDGET_BYTES: u64 = 512 << 20;
/// Numbers of the nodes of `examples/mirror`.
const MAIN: usize = 0;
const COPY: usize = 1;
const CLIENT: usize = 2;
/// Keys of `examples/mirror`.
const KEYS: usize = 256;

/// Listener that ends a search after some looks.
struct Few(u32);

impl Listener for Few {
    fn goes_on(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// Searches on a recorded branch, from its end.
pub(crate) struct Asker<'r> {
    recorded: &'r Recorded,
    kernel: Kernel,
    files: Vec<MappedFiles>,
    cursor: Cursor<'r>,
}

impl<'r> Asker<'r> {
    pub(crate) fn new(recorded: &'r Recorded) -> Asker<'r> {
        let launcher = &recorded.setting.launcher;
        let kernel = Kernel::new(&fs::read(&launcher.files.kernel).unwrap()).unwrap();
        let of_node = |node: &everett_world_file::Node| {
            let none = DebugFolders::default();
            MappedFiles::of_node(&launcher.files, &launcher.world, &node.name, none).unwrap()
        };
        let files = launcher.world.nodes.iter().map(of_node).collect();
        let mut asker = Asker { recorded, kernel, files, cursor: recorded.cursor(BUDGET_BYTES) };
        asker.reach_end();
        asker
    }

    /// Moves to the end of the branch, and asserts that the world is the recorded one.
    fn reach_end(&mut self) {
        let end = Aim::Vtime(self.recorded.end_ns());
        assert_eq!(self.cursor.seek(end, &mut ()).unwrap(), Stop::Reached);
        assert_eq!(self.cursor.digest(), self.recorded.digest(), "a search has changed the timeline");
    }

    pub(crate) fn ask(
        &mut self,
        listener: &mut dyn Listener,
        bounds: Bounds,
        source: Source,
    ) -> anyhow::Result<Vec<Step>> {
        let extent = Extent { depth: 5, instructions: 4_096 };
        let search = Search::new(&mut self.cursor, &self.kernel, &self.files, extent, listener);
        let steps = search.within(bounds).origins(source);
        self.reach_end();
        steps
    }

    /// Returns the root table of a program's memory, and the variable with this name.
    pub(crate) fn program(&self, node: usize, name: &str, variable: &str) -> (u64, (u64, u64)) {
        let ram = MachineRam(self.cursor.timeline().machine(node));
        let guest = Guest::new(&self.kernel, &ram).unwrap();
        let processes = guest.processes().unwrap();
        let named = |process: &&Process| process.threads.iter().any(|thread| thread.name == name);
        let process = processes.iter().find(named).expect("the program");
        let stacks = guest.program_stacks(process, &self.files[node]).unwrap().expect("its file");
        let [found] = stacks.variables_named(variable)[..] else { panic!("not one variable {variable}") };
        (guest.memory_of_process(process).unwrap().unwrap().root(), found)
    }
}

/// Returns the timeline of a finding of `examples/mirror`.
fn found(folder: &Path) -> Recorded {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/mirror");
    for name in ["mirror.c", "build.sh", "world.toml"] {
        fs::copy(example.join(name), folder.join(name)).unwrap();
    }
    let built = Command::new("sh").arg(folder.join("build.sh")).status().expect("a shell");
    assert!(built.success());
    let world = everett_world_file::load(&folder.join("world.toml")).expect("the example's world");
    let launcher = Launcher { world, ..cold_launcher(EngineOptions::default()) };
    let setting = setting_of(launcher, EngineOptions::default());
    let outcome = explore(&setting, 12, 2, 1 << 30, false);
    let found = outcome.merged.findings().first().expect("a finding");
    let path = outcome.tree.path(ForkPoint::After(found.first)).expect("a path");
    Recorded::of(setting, path)
}

fn number_of(key: usize) -> u64 {
    1_000_000 + 7_919 * key as u64
}

/// Returns a wrong number in the copy's memory, and where it is.
fn wrong(asker: &Asker<'_>) -> (u64, Memory) {
    let (root, (start, length)) = asker.program(COPY, "mirror", "numbers");
    assert_eq!(length, 8 * KEYS as u64);
    let ram = MachineRam(asker.cursor.timeline().machine(COPY));
    let mut all = [0; 8 * KEYS];
    AddressSpace::new(&ram, root).read(start, &mut all).unwrap();
    let numbers = all.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).enumerate();
    // No right answer ends with the wrong one, so a message with its text has the wrong one.
    let is_distinct =
        |number: u64| (0..KEYS).all(|key| !number_of(key).to_string().ends_with(&number.to_string()));
    let mut wrong =
        numbers.filter(|(key, number)| *number != 0 && *number != number_of(*key) && is_distinct(*number));
    let (key, number) = wrong.next().expect("a wrong number");
    let address = start + 8 * key as u64;
    (number, Memory { node: COPY, root, address, bytes: 8 })
}

/// Returns the functions of the example's source on a step's stack, from the innermost one outwards.
fn functions(step: &Step) -> Vec<String> {
    let frames = step.thread.iter().flat_map(|thread| &thread.user);
    let calls = frames.flat_map(|frame| &frame.source).map(ToString::to_string);
    let own = calls.filter(|call| call.contains("mirror.c:"));
    own.map(|call| call.split(' ').next().unwrap_or_default().to_owned()).collect()
}

/// Returns the steps from the first one to a step.
fn way_to<'s>(steps: &'s [Step], last: &'s Step) -> Vec<&'s Step> {
    let before = |step: &&'s Step| step.explains.map(|explained| &steps[explained - 1]);
    let mut way: Vec<&Step> = std::iter::successors(Some(last), before).collect();
    way.reverse();
    way
}

#[test]
fn a_wrong_answer_is_followed_back_through_all_nodes_to_the_client_that_sent_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = found(folder.path());
    let mut asker = Asker::new(&recorded);
    let (number, memory) = wrong(&asker);

    // The last digit in the answer.
    let text = format!("{number}\n").into_bytes();
    let answer =
        Source::Message(Some(COPY), MessageBytes::Payload { offset: text.len() as u64 - 2, text, bytes: 1 });
    let steps = asker.ask(&mut (), Bounds::default(), answer.clone()).unwrap();

    let sent = |step: &&Step| step.node == CLIENT && matches!(step.what, Happened::Sent { .. });
    let last = steps.iter().find(sent).unwrap_or_else(|| panic!("{steps:#?}"));
    let way = way_to(&steps, last);
    let kinds: Vec<(usize, &str)> = way
        .iter()
        .filter_map(|step| match &step.what {
            Happened::Message { from, .. } => Some((*from, "message")),
            Happened::Sent { .. } => Some((step.node, "sent")),
            Happened::Store { address, .. } if *address == memory.address => Some((step.node, "number")),
            _ => None,
        })
        .collect();
    let expected = [
        (COPY, "message"),
        (COPY, "sent"),
        (COPY, "number"),
        (MAIN, "message"),
        (MAIN, "sent"),
        (CLIENT, "message"),
        (CLIENT, "sent"),
    ];
    assert_eq!(kinds, expected, "{way:#?}");
    let stacks_of = |node: usize, is_it: fn(&Happened) -> bool| {
        let step = way.iter().find(|step| step.node == node && is_it(&step.what));
        functions(step.unwrap_or_else(|| panic!("{way:#?}")))
    };
    let is_sent = |what: &Happened| matches!(what, Happened::Sent { .. });
    let is_store = |what: &Happened| matches!(what, Happened::Store { .. });
    assert_eq!(stacks_of(COPY, is_sent)[..2], ["send_all", "serve_line"]);
    assert_eq!(stacks_of(MAIN, is_sent)[..2], ["send_all", "serve_line"]);
    assert_eq!(stacks_of(CLIENT, is_sent)[..2], ["send_all", "put"]);
    assert_eq!(stacks_of(MAIN, is_store)[0], "serve_line");
    let number_stored = way
        .iter()
        .find(|step| matches!(step.what, Happened::Store { address, .. } if address == memory.address));
    assert_eq!(functions(number_stored.unwrap())[..3], ["store_number", "serve_line", "serve_lines"]);
    // The digit was taken from a table. The number's digits were put together, so the chain forks.
    assert!(way.iter().any(|step| matches!(step.what, Happened::Chosen { sources: 2, .. })), "{way:#?}");
    let forks = |step: &&&Step| matches!(step.what, Happened::Computed { sources: 2, followed: true, .. });
    let fork = way.iter().find(forks).unwrap_or_else(|| panic!("{way:#?}"));
    assert!(fork.what.to_string().ends_with("from 2 values: the chain forks"), "{}", fork.what);
    assert_eq!(steps.iter().filter(|step| step.explains == Some(fork.number)).count(), 2, "{steps:#?}");
    let ends = |step: &Step| matches!(step.what, Happened::Computed { followed: false, .. });
    assert!(steps.iter().any(ends), "{steps:#?}");
    assert!(steps.iter().any(|step| matches!(step.what, Happened::Joined { .. })), "{steps:#?}");

    // With few frames, the chain does not guess where the bytes came from.
    let few = Bounds { frames_bytes: 1_000, ..Bounds::default() };
    let error = asker.ask(&mut (), few, answer.clone()).unwrap_err().to_string();
    assert!(error.contains("frames that are missing"), "{error}");
    let steps = asker.ask(&mut (), few, Source::Memory(memory)).unwrap();
    let last = &steps.last().unwrap().what;
    assert!(last.to_string().contains("frames are missing"), "{steps:#?}");
    assert!(steps.iter().all(|step| step.node == COPY), "{steps:#?}");

    // Ctrl-C ends a search at any time.
    for looks in [1, 2, 20, 100] {
        let error = asker.ask(&mut Few(looks), Bounds::default(), answer.clone()).unwrap_err();
        assert!(error.is::<Interrupted>(), "after {looks} looks: {error:?}");
    }
}
