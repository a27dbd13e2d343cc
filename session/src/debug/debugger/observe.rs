//! The pass through a whole branch that makes its index, and notes the programs that ran.

use std::collections::BTreeMap;

use anyhow::Context as _;
use everett_explorer::plan::Plan;
use everett_explorer::search::Path;
use everett_vmm::wire::log::FrameStep;
use everett_vmm::world::Captured;

use super::data::data;
use super::entry::{Entry, Happened, Hit, Message, StateChange};
use super::index::Index;
use crate::debug::cursor::{Aim, Cursor, Listener, Stop};
use crate::explore::setting::Setting;
use crate::explore::witness::Witness;
use crate::probes::code::Code;
use crate::world::event::{Event, What};

/// Runs a cursor from the root moment to the end of the branch `path`, and returns the index of the timeline. The cursor
/// leaves moments on the way. `hits` are the recorded violations with their vtimes in nanoseconds. `code` learns the programs that ran, if the engine has breakpoints.
///
/// # Errors
/// See [`Cursor::run`].
pub(super) fn observe(
    setting: &Setting,
    path: &Path,
    cursor: &mut Cursor<'_>,
    mut code: Option<&mut Code<'_>>,
    hits: &[(u64, Hit)],
    goes_on: &dyn Fn() -> bool,
) -> anyhow::Result<Index> {
    let mut prefix = Path::default();
    let mut legs: Vec<(String, Plan)> = Vec::new();
    for fork in path.forks() {
        prefix = prefix.child(*fork)?;
        legs.push((prefix.to_string(), setting.fates().plan(&prefix)));
    }
    let memory = setting.inherited_at_boot()?;
    let (_, plan) = legs.first().context("the root moment is not a branch")?;
    let mut observer = Observer {
        setting,
        legs: &legs,
        leg: 0,
        witness: Witness::new(&setting.abstractions, plan, &memory)?,
        state: BTreeMap::new(),
        index: Index::default(),
        goes_on,
    };
    let boot = setting.ready.events.iter().filter(|event| is_listed(event));
    boot.for_each(|event| observer.add(event.vtime_ns, Happened::Event(event.clone())));
    observer.changes(setting.root_ns);
    for (vtime_ns, hit) in hits {
        observer.add(*vtime_ns, Happened::Hit(hit.clone()));
    }
    let nodes = cursor.timeline().world().nodes().len();
    let exec: Vec<u64> = code.as_ref().and_then(|code| code.loads_program()).into_iter().collect();
    for node in 0..nodes {
        cursor.set_breakpoints(node, &exec);
        if let Some(code) = &mut code {
            // A machine that cannot be read, for example while it has no power, runs no program that is known.
            let _ = code.note_all(cursor.timeline(), node);
        }
    }
    cursor.capture(true);
    let passed = pass(cursor, code, &mut observer);
    cursor.capture(false);
    for node in 0..nodes {
        cursor.set_breakpoints(node, &[]);
    }
    passed?;
    observer.index.complete();
    Ok(observer.index)
}

fn pass(
    cursor: &mut Cursor<'_>,
    mut code: Option<&mut Code<'_>>,
    observer: &mut Observer<'_>,
) -> anyhow::Result<()> {
    loop {
        match cursor.run(Aim::Vtime(cursor.end_ns()), observer)? {
            Stop::Breakpoint { node } => {
                if let Some(code) = &mut code {
                    let _ = code.note_running(cursor.timeline(), node);
                }
            }
            Stop::Access { .. } | Stop::ModeChange { .. } => {}
            Stop::Reached | Stop::End(_) => return Ok(()),
        }
    }
}

/// Listener that makes the index.
struct Observer<'o> {
    setting: &'o Setting,
    /// Text and plan of each path from the root moment to a fork of the branch.
    legs: &'o [(String, Plan)],
    leg: usize,
    witness: Witness<'o>,
    /// Values of the state variables by node and name.
    state: BTreeMap<(Option<u16>, String), String>,
    index: Index,
    goes_on: &'o dyn Fn() -> bool,
}

/// True if an event is listed. Lines of operation histories and edges of code are not.
fn is_listed(event: &Event) -> bool {
    !matches!(event.what, What::History { .. } | What::Edge { .. })
}

impl Observer<'_> {
    fn add(&mut self, vtime_ns: u64, what: Happened) {
        self.index.add(Entry { vtime_ns, what });
    }

    /// Takes the plan of the branch that a timeline has become.
    fn take_fork(&mut self, path: &str) {
        let Some(leg) = self.legs.iter().position(|(leg, _)| leg == path) else { return };
        if leg <= self.leg {
            return;
        }
        let memory = self.witness.memory();
        // The state is that of this world, so the witness accepts it.
        if let Ok(witness) = Witness::new(&self.setting.abstractions, &self.legs[leg].1, &memory) {
            (self.leg, self.witness) = (leg, witness);
        }
    }

    /// Adds the changes of state variables since the last call.
    fn changes(&mut self, vtime_ns: u64) {
        let abstractions = &self.setting.abstractions;
        let name = |node: u16| abstractions.name(node).unwrap_or("?").to_owned();
        let now = self.witness.state().variables(&name);
        let now: BTreeMap<(Option<u16>, String), String> =
            now.into_iter().map(|(node, variable, value)| ((node, variable.to_owned()), value)).collect();
        if now == self.state {
            return;
        }
        let old = std::mem::replace(&mut self.state, now.clone());
        let keys: std::collections::BTreeSet<_> = old.keys().chain(now.keys()).collect();
        for key in keys {
            let (before, after) = (old.get(key).cloned(), now.get(key).cloned());
            if before != after {
                let (node, variable) = (key.0.map(name), key.1.clone());
                let change = StateChange { node, variable, old: before, new: after };
                self.index.add(Entry { vtime_ns, what: Happened::State(change) });
            }
        }
    }
}

impl Listener for Observer<'_> {
    fn event(&mut self, event: &Event) {
        if let What::Fork { path } = &event.what {
            self.take_fork(path);
        }
        if is_listed(event) {
            self.add(event.vtime_ns, Happened::Event(event.clone()));
        }
        self.witness.hear(event);
        self.changes(event.vtime_ns);
    }

    fn message(&mut self, step: &FrameStep) {
        if self.setting.abstractions.is_message(step) {
            self.add(step.vtime, Happened::Message(Message { step: *step, data: None }));
        }
    }

    fn frames(&mut self, frames: &[Captured]) {
        for frame in frames {
            if let Captured::Sent { frame, bytes, .. } = frame {
                self.index.add_data(*frame, data(bytes));
            }
        }
    }

    fn goes_on(&mut self) -> bool {
        (self.goes_on)()
    }
}
