//! A cursor moves along a recorded timeline, forwards and backwards, and the timeline stays the recorded one.

use everett_cpu::Watchpoint;
use everett_explorer::search::Path;
use everett_session::debug::cursor::position::Position;
use everett_session::debug::cursor::{Aim, Cursor, Listener, Stop};
use everett_session::explore::path_runner::{Interrupted, Marks, PathRunner, Route};
use everett_session::explore::setting::Setting;
use everett_session::machines::EngineOptions;
use everett_symbols::kernel::{Values, symbols_and_values};
use everett_vmm::machine::Machine;

use crate::explore::{WORLD, deepest, setting};

/// Memory for the moments of a cursor, in bytes.
const BUDGET_BYTES: u64 = 512 << 20;
/// Number of the node `db`, which loses power and is paused.
const DB: usize = 0;

/// A recorded branch.
pub(crate) struct Recorded {
    pub(crate) setting: Setting,
    path: Path,
    /// Digests along the whole path.
    marks: Marks,
}

impl Recorded {
    pub(crate) fn new() -> Recorded {
        let setting = setting(WORLD, EngineOptions::default());
        let path = deepest(&setting);
        Recorded::of(setting, path)
    }
    /// Runs a branch of an exploration.
    pub(crate) fn of(setting: Setting, path: Path) -> Recorded {
        let mut runner = PathRunner::new(&setting).unwrap();
        let branches = runner.journey(&Route::along(path.clone()), &mut ()).unwrap();
        assert!(branches.last().unwrap().checked, "the branch has no checks");
        let marks: Marks = branches.into_iter().flat_map(|branch| branch.marks).collect();
        drop(runner);
        Recorded { setting, path, marks }
    }
    pub(crate) fn end_ns(&self) -> u64 {
        self.marks.last().unwrap().0
    }
    /// Returns the digest at the end.
    #[cfg(feature = "inside")]
    pub(crate) fn digest(&self) -> everett_vmm::Digest {
        self.marks.last().unwrap().1
    }
    pub(crate) fn cursor(&self, budget_bytes: u64) -> Cursor<'_> {
        Cursor::new(&self.setting, &self.path, self.end_ns(), budget_bytes).unwrap()
    }
    fn kernel(&self) -> Values {
        symbols_and_values(&std::fs::read(&self.setting.launcher.files.kernel).unwrap()).1
    }
}

/// Returns where the machine is: its next instruction and its registers.
fn here(cursor: &Cursor<'_>, node: usize) -> (Position, [u64; 16], u64) {
    let cpu = Machine::cpu(cursor.timeline().machine(node));
    (cursor.position(node), cpu.gpr, cpu.rip)
}

#[test]
fn a_cursor_moves_to_any_instant_of_a_timeline() {
    let recorded = Recorded::new();
    any_vtime_can_be_reached_in_any_order(&recorded);
    stops_are_found_again_backwards(&recorded);
    steps_back_undo_steps(&recorded);
    the_last_store_is_found(&recorded);
}

fn any_vtime_can_be_reached_in_any_order(recorded: &Recorded) {
    // With the second budget, the cursor keeps only the root moment, so each seek takes long.
    for (budget_bytes, step) in [(BUDGET_BYTES, 1), (0, 6)] {
        let mut cursor = recorded.cursor(budget_bytes);
        let count = recorded.marks.len();
        for n in (0..count).step_by(step) {
            let (vtime_ns, digest) = recorded.marks[n * 7 % count];
            assert_eq!(cursor.seek(Aim::Vtime(vtime_ns), &mut ()).unwrap(), Stop::Reached);
            assert_eq!((cursor.vtime(), cursor.digest()), (vtime_ns, digest), "at {vtime_ns} ns");
        }
        let beyond = cursor.seek(Aim::Vtime(u64::MAX), &mut ()).unwrap();
        assert!(matches!(beyond, Stop::End(_)), "{beyond:?}");
    }
}

fn stops_are_found_again_backwards(recorded: &Recorded) {
    let mut cursor = recorded.cursor(BUDGET_BYTES);
    let address = recorded.kernel().get("tcp_sendmsg").unwrap();
    for node in 0..2 {
        assert!(cursor.set_breakpoints(node, &[address]));
    }
    let mut stops = Vec::new();
    let end = loop {
        match cursor.run(Aim::Vtime(recorded.end_ns()), &mut ()).unwrap() {
            Stop::Breakpoint { node } => stops.push(here(&cursor, node)),
            stop => break stop,
        }
    };
    assert_eq!(end, Stop::Reached);
    assert_eq!(cursor.digest(), recorded.marks.last().unwrap().1, "breakpoints have changed the timeline");
    assert!(stops.iter().all(|stop| stop.2 == address));
    let nodes: Vec<usize> = stops.iter().map(|stop| stop.0.node).collect();
    assert!(stops.len() > 20 && nodes.contains(&0) && nodes.contains(&1), "{nodes:?}");

    stops.sort_by_key(|stop| stop.0);
    let mut from = Position { vtime_ns: recorded.end_ns(), node: usize::MAX, count: 0 };
    for stop in stops.iter().rev().take(15) {
        let found = cursor.run_back(from, &|_, _| Some(()), &mut ()).unwrap();
        assert_eq!(found, Some((Stop::Breakpoint { node: stop.0.node }, ())));
        assert_eq!(&here(&cursor, stop.0.node), stop);
        from = stop.0;
    }
    let first = cursor.run_back(stops[0].0, &|_, _| Some(()), &mut ()).unwrap();
    assert_eq!(first, None);
    let end = Position { vtime_ns: recorded.end_ns(), node: usize::MAX, count: 0 };
    long_searches_find_the_same_stops(&mut cursor, end, &stops);
    searches_end_when_the_operator_wants(&mut cursor, end);
    // The way back has changed nothing.
    for node in 0..2 {
        cursor.set_breakpoints(node, &[]);
    }
    assert_eq!(cursor.seek(Aim::Vtime(recorded.end_ns()), &mut ()).unwrap(), Stop::Reached);
    assert_eq!(cursor.digest(), recorded.marks.last().unwrap().1);
}

/// Searches that refuse all later stops run on several cores.
fn long_searches_find_the_same_stops(
    cursor: &mut Cursor<'_>,
    end: Position,
    stops: &[(Position, [u64; 16], u64)],
) {
    for stop in stops.iter().step_by(stops.len().div_ceil(8)) {
        let wanted = |cursor: &Cursor<'_>, at: &Stop| {
            let position = cursor.position(at.node()?);
            (position <= stop.0).then_some(position)
        };
        let found = cursor.run_back(end, &wanted, &mut ()).unwrap();
        assert_eq!(found, Some((Stop::Breakpoint { node: stop.0.node }, stop.0)));
        assert_eq!(&here(cursor, stop.0.node), stop);
    }
}

/// Listener that interrupts a move at one of its looks.
struct Patience(usize);

impl Listener for Patience {
    fn goes_on(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

fn searches_end_when_the_operator_wants(cursor: &mut Cursor<'_>, end: Position) {
    for looks in [1, 5, 50] {
        let error = cursor.run_back(end, &|_, _| None::<()>, &mut Patience(looks)).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
    }
}

fn steps_back_undo_steps(recorded: &Recorded) {
    let mut cursor = recorded.cursor(BUDGET_BYTES);
    let middle_ns = recorded.marks[recorded.marks.len() / 2].0;
    cursor.seek(Aim::Vtime(middle_ns), &mut ()).unwrap();
    let count = cursor.position(DB).count;
    let mut states = Vec::new();
    for step in 0..20 {
        assert_eq!(cursor.run(Aim::Count { node: DB, count: count + step }, &mut ()).unwrap(), Stop::Reached);
        states.push(here(&cursor, DB));
    }
    for state in states.iter().rev().skip(1) {
        assert!(cursor.step_back(DB, &mut ()).unwrap());
        let there = here(&cursor, DB);
        assert_eq!((there.0.count, there.1, there.2), (state.0.count, state.1, state.2));
    }
}

fn the_last_store_is_found(recorded: &Recorded) {
    let mut cursor = recorded.cursor(BUDGET_BYTES);
    let address = recorded.kernel().get("jiffies_64").unwrap();
    let point = Watchpoint { address, len: 8, loads: false, stores: true };
    let value = |cursor: &Cursor<'_>| {
        let mut bytes = [0; 8];
        assert_eq!(cursor.timeline().machine(DB).read_virtual(address, &mut bytes), 8);
        u64::from_le_bytes(bytes)
    };
    cursor.seek(Aim::Vtime(recorded.end_ns()), &mut ()).unwrap();
    let mut after = value(&cursor);
    assert!(cursor.set_watchpoints(DB, &[point]));
    for _ in 0..5 {
        let from = cursor.position(DB);
        let found = cursor.run_back(from, &|_, _| Some(()), &mut ()).unwrap();
        let Some((Stop::Access { node: DB, hits }, ())) = found else { panic!("{found:?}") };
        let [hit] = hits[..] else { panic!("{hits:?}") };
        assert!(hit.store && hit.address == address);
        let (position, _, rip) = here(&cursor, DB);
        assert!(position < from && rip == hit.rip);
        // The store has not happened yet, and the store before it has left the value that is there now.
        assert_eq!(hit.value, after);
        after = value(&cursor);
        assert_ne!(after, hit.value);
    }
}
