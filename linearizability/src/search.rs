//! The search for a valid order of operations. In a valid order, each acknowledged operation has its recorded result
//! and comes after all operations that precede it. The algorithm is Wing and Gong's, with Lowe's cache of visited
//! configurations. A configuration is a set of operations that are already in the order, and the object's state.
//!
//! Acknowledged operations are tried first. An open operation, i.e. an operation of unknown outcome, is tried only to
//! enable an acknowledged operation that needs it, or if the search cannot postpone it (`super::model` explains both).
//! If several open operations are equal, the one that was invoked first is tried.
//!
//! If a history has no valid order, the *first impossible completion* is the end of its shortest prefix without a valid
//! order. To find this completion, the caller searches prefixes. In a last search, the operation with this completion
//! is the *suspect*: the search collects the possible states of the object just before the suspect.
//!
//! Not here: the partition of operations (`super::partition`), and the choice of prefixes (`super::minimise`).

use std::collections::BTreeMap;

use super::bits::Bits;
use super::cache::{Cache, Name};
use super::evidence::Limit;
use super::limits::POSSIBLE_MAX;
use super::model::{self, Model, Op, Undo};
use super::operation::{Call, Operation};
use super::reader::History;
use super::window::{Next, Window};

/// Limits of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    pub(super) steps: u64,
    pub(super) cache_bytes: u64,
}

/// Result of a search.
#[derive(Debug)]
pub(super) enum Outcome<'h> {
    /// A valid order, and a description of the state after it. The order omits open operations that do not happen.
    Order(Vec<&'h Operation>, String),
    /// No valid order exists.
    None {
        /// Operation that the search could not place at the farthest point that it reached (`Search::farthest`).
        stuck: &'h Operation,
        /// Descriptions of the possible states of the object after all acknowledged operations except the suspect.
        /// Sorted by text. At most [`POSSIBLE_MAX`] + 1 descriptions. Empty without a suspect.
        possible: Vec<String>,
    },
    /// The search exceeded a limit.
    Spent(Limit),
}

#[derive(Debug, Clone, Copy)]
enum Who {
    Done(usize),
    Open(usize),
}

#[derive(Debug, Clone, Copy)]
struct Choice {
    who: Who,
    /// Rank (index) of the acknowledged operation that this open operation should enable. `None` for an acknowledged
    /// operation, and for an open operation that cannot be postponed.
    aim: Option<usize>,
}

/// Configuration, with the choice that led to it and the choices that remain to be tried.
struct Frame {
    came_by: Option<(Who, Undo)>,
    name: Name,
    aim: Option<usize>,
    choices: Vec<Choice>,
    tried: usize,
    /// Line of the history at which a remaining operation ends first. Only operations that were invoked before this
    /// line can happen next.
    first_end: u64,
    /// Acknowledged operations that cannot happen in this state.
    cannot: Vec<usize>,
    /// True if the choices already include open operations.
    extended: bool,
    /// True if the search, from here, ordered all acknowledged operations except the suspect.
    full: bool,
}

/// Search in progress.
pub(super) struct Search<'m, 'h> {
    model: Box<dyn Model>,
    history: &'h History,
    done: &'m [Op<'h>],
    open: &'m [Op<'h>],
    /// For each open operation, the previous open operation that is equal to it.
    twins: Vec<Option<usize>>,
    suspect: Option<usize>,
    allowance: Allowance,
    pub(super) steps: u64,
    window: Window,
    /// Number of acknowledged operations that are not yet placed.
    left: usize,
    /// Acknowledged operations in the current order.
    placed: Bits,
    /// Open operations in the current order.
    used: Bits,
    cache: Cache,
    /// Memory of the choices in all frames, in bytes.
    choice_bytes: u64,
    words: Vec<u32>,
    /// The farthest point that the search reached: the first line at which a remaining operation ended, and the rank of
    /// this operation. A rank is an index among the acknowledged operations.
    farthest: (u64, usize),
    possible: Vec<String>,
}

impl<'m, 'h> Search<'m, 'h> {
    /// Creates a search over these operations, both lists in the order of invocations. The suspect is one of the
    /// acknowledged operations.
    pub(super) fn new(
        history: &'h History,
        done: &'m [Op<'h>],
        open: &'m [Op<'h>],
        suspect: Option<&Operation>,
        allowance: Allowance,
    ) -> Search<'m, 'h> {
        let mut last: BTreeMap<(Call, Option<u32>), usize> = BTreeMap::new();
        let twins = open.iter().enumerate().map(|(i, op)| {
            let by = matches!(op.call(), Call::Acquire | Call::Release).then_some(op.operation.process);
            last.insert((op.call(), by), i)
        });
        Search {
            twins: twins.collect(),
            model: model::object(history, done, open),
            history,
            done,
            open,
            suspect: suspect.and_then(|suspect| done.iter().position(|op| op.operation == suspect)),
            allowance,
            steps: 0,
            window: Window::of(done),
            left: done.len(),
            placed: Bits::none(done.len()),
            used: Bits::none(open.len()),
            cache: Cache::default(),
            choice_bytes: 0,
            words: Vec::new(),
            farthest: (0, 0),
            possible: Vec::new(),
        }
    }

    /// Runs the search.
    pub(super) fn run(&mut self) -> Outcome<'h> {
        let mut stack: Vec<Frame> = Vec::new();
        let Some(next) = self.window.next() else { return self.order(Vec::new()) };
        let name = self.name(&next, None);
        stack.push(self.frame(None, name, None, next));
        while let Some(frame) = stack.last_mut() {
            if self.steps > self.allowance.steps {
                return Outcome::Spent(Limit::Steps(self.allowance.steps));
            }
            if self.bytes() > self.allowance.cache_bytes {
                return Outcome::Spent(Limit::Memory(self.allowance.cache_bytes));
            }
            if let Some(choice) = self.choose(frame) {
                let Some(undo) = self.place(choice, frame) else { continue };
                let Some(next) = self.window.next() else {
                    let ways = stack.iter().filter_map(|frame| frame.came_by.as_ref().map(|(who, _)| *who));
                    let order =
                        ways.chain([choice.who]).filter_map(|who| self.op(who)).map(|op| op.operation);
                    return self.order(order.collect());
                };
                let name = self.name(&next, choice.aim);
                let used = self.used();
                let (known, compared) = self.cache.known(&name, &used);
                self.steps += (compared / 16) as u64;
                match known {
                    Some(full) => {
                        frame.full |= full;
                        self.take_back(choice.who, undo);
                    }
                    None => {
                        let new = self.frame(Some((choice.who, undo)), name, choice.aim, next);
                        stack.push(new);
                    }
                }
            } else if let Some(frame) = stack.pop() {
                self.choice_bytes -= bytes_of(frame.choices.len());
                self.leave(&frame);
                if let Some((who, undo)) = frame.came_by {
                    self.take_back(who, undo);
                }
                if let Some(parent) = stack.last_mut() {
                    parent.full |= frame.full;
                }
            }
        }
        match self.done.get(self.farthest.1) {
            Some(op) => Outcome::None { stuck: op.operation, possible: std::mem::take(&mut self.possible) },
            None => self.order(Vec::new()),
        }
    }

    /// Returns the approximate memory of the search, in bytes.
    fn bytes(&self) -> u64 {
        self.cache.bytes() + self.choice_bytes
    }

    fn order(&self, order: Vec<&'h Operation>) -> Outcome<'h> {
        Outcome::Order(order, self.model.describe(None, self.history))
    }

    fn op(&self, who: Who) -> Option<Op<'h>> {
        match who {
            Who::Done(rank) => self.done.get(rank).copied(),
            Who::Open(rank) => self.open.get(rank).copied(),
        }
    }

    fn frame(&mut self, came_by: Option<(Who, Undo)>, name: Name, aim: Option<usize>, next: Next) -> Frame {
        let used = self.used();
        self.cache.put(name, &used, false);
        self.farthest = self.farthest.max((next.first_end, next.ends));
        let full = self.left == 1 && self.suspect.is_some_and(|suspect| !self.placed.has(suspect));
        let ranks = aim.map_or(next.started, |aim| vec![aim]);
        let choices: Vec<_> = ranks.iter().map(|rank| Choice { who: Who::Done(*rank), aim: None }).collect();
        self.choice_bytes += bytes_of(choices.len());
        self.steps += (choices.len() / 64) as u64;
        let (first_end, cannot) = (next.first_end, Vec::new());
        Frame { came_by, name, aim, choices, tried: 0, first_end, cannot, extended: false, full }
    }

    fn choose(&mut self, frame: &mut Frame) -> Option<Choice> {
        if frame.tried == frame.choices.len() && !frame.extended {
            frame.extended = true;
            self.extend(frame);
        }
        let choice = frame.choices.get(frame.tried).copied();
        frame.tried += 1;
        choice
    }

    /// Adds open operations as choices: first the operations that may enable an acknowledged operation, then the
    /// operations that cannot be postponed. Stops early if the choices exceed the memory limit. The limit then ends the
    /// search.
    fn extend(&mut self, frame: &mut Frame) {
        let open: Vec<usize> = self.available(frame.first_end).collect();
        self.steps += (open.len() * (1 + frame.cannot.len()) / 8) as u64;
        for &rank in &frame.cannot {
            if self.bytes() > self.allowance.cache_bytes {
                return;
            }
            let Some(target) = self.done.get(rank) else { continue };
            let helpful =
                open.iter().filter(|i| self.open.get(**i).is_some_and(|op| self.model.helps(op, target)));
            let most = if self.model.first_help_does() { 1 } else { usize::MAX };
            let choice = |i: &usize| Choice { who: Who::Open(*i), aim: Some(rank) };
            let before = frame.choices.len();
            frame.choices.extend(helpful.take(most).map(choice));
            self.choice_bytes += bytes_of(frame.choices.len() - before);
        }
        if frame.aim.is_none() {
            let eager = open.iter().filter(|i| self.open.get(**i).is_some_and(|op| self.model.eager(op)));
            let before = frame.choices.len();
            frame.choices.extend(eager.map(|i| Choice { who: Who::Open(*i), aim: None }));
            self.choice_bytes += bytes_of(frame.choices.len() - before);
        }
    }

    /// Returns the open operations that may happen now.
    fn available(&self, first_end: u64) -> impl Iterator<Item = usize> {
        let invoked = self.open.iter().take_while(move |op| op.operation.invoked.line < first_end);
        invoked.zip(&self.twins).enumerate().filter_map(|(i, (_, twin))| {
            (!self.used.has(i) && twin.is_none_or(|twin| self.used.has(twin))).then_some(i)
        })
    }

    /// Applies an operation. Returns `None` if the operation cannot happen.
    fn place(&mut self, choice: Choice, frame: &mut Frame) -> Option<Undo> {
        self.steps += 1;
        let op = self.op(choice.who)?;
        let undo = self.model.apply(&op);
        match (choice.who, &undo) {
            (Who::Done(rank), None) => frame.cannot.push(rank),
            (Who::Done(rank), Some(_)) => {
                self.window.lift(rank);
                self.placed.set(rank, true);
                self.left -= 1;
            }
            (Who::Open(rank), Some(_)) => self.used.set(rank, true),
            (Who::Open(_), None) => {}
        }
        undo
    }

    fn take_back(&mut self, who: Who, undo: Undo) {
        self.model.undo(undo);
        match who {
            Who::Done(rank) => {
                self.window.put_back(rank);
                self.placed.set(rank, false);
                self.left += 1;
            }
            Who::Open(rank) => self.used.set(rank, false),
        }
    }

    /// Returns the name of the current configuration, i.e. a hash of it. All operations before rank `from` are placed.
    /// No operation from rank `to` on is placed. The bits from `from` to `to` therefore identify the set of placed
    /// operations.
    fn name(&mut self, next: &Next, aim: Option<usize>) -> Name {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        let (from, mut to) = (next.started.first().copied().unwrap_or(0), 0);
        let lines = self.done.get(from..).unwrap_or_default();
        to += from + lines.partition_point(|op| op.operation.invoked.line < next.first_end);
        let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        words.extend([word(from), word(to), aim.map_or(u32::MAX, word)]);
        self.placed.halves(from, to, &mut words);
        self.model.digest(&mut words);
        self.steps += (words.len() / 64) as u64;
        let name = self.cache.name(&words);
        self.words = words;
        name
    }

    fn used(&self) -> Vec<u32> {
        let mut used = Vec::new();
        self.used.halves(0, self.open.len(), &mut used);
        used
    }

    /// Leaves a configuration after all of its choices were tried.
    fn leave(&mut self, frame: &Frame) {
        if !frame.full {
            return;
        }
        let used = self.used();
        self.cache.put(frame.name, &used, true);
        let Some(suspect) = self.suspect.filter(|suspect| frame.cannot.contains(suspect)) else { return };
        let Some(suspect) = self.done.get(suspect).copied() else { return };
        let open: Vec<Op<'h>> =
            self.available(frame.first_end).filter_map(|i| self.open.get(i).copied()).collect();
        if matches!(suspect.call(), Call::Contains(_) | Call::Members) {
            // For a set, the report shows how the set differs from the suspect's result. So note this state only if no
            // open operation can still bring the set closer to that result.
            if !open.iter().any(|op| self.model.helps(op, &suspect)) {
                self.note(&suspect);
            }
            return;
        }
        self.note(&suspect);
        for op in open {
            if let Some(undo) = self.model.apply(&op) {
                self.note(&suspect);
                self.model.undo(undo);
            }
        }
    }

    fn note(&mut self, suspect: &Op<'_>) {
        if self.possible.len() > POSSIBLE_MAX {
            return;
        }
        let state = self.model.describe(Some(suspect), self.history);
        if let Err(place) = self.possible.binary_search(&state) {
            self.possible.insert(place, state);
        }
    }
}

/// Returns the memory of this number of choices, in bytes.
fn bytes_of(choices: usize) -> u64 {
    (choices * size_of::<Choice>()) as u64
}
