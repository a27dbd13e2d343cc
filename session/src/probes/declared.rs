//! The probes of a world file, as explorations observe them.
//!
//! Hits are judged where they happen, because their values are in the machine. What is worth telling becomes an event of the
//! timeline: a violation, a new value of a state variable, the first hit of a `sometimes` probe, and hits that the world
//! file wants among the log lines.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use everett_explorer::plan::{Plan, What};
use everett_explorer::probe::{ProbeConfig, ProbeHit, ProbeProblem, ProbeState, Process, Tally};
use everett_fault::FaultKind;
use everett_symbols::lines::SourcePlace;
use everett_world_file::World;

use super::expression::Expression;
use super::expression::evaluate::{integer, is_true, value};
use super::format::plain;
use super::hit::HitStack;
use super::limits::{EVENTS_WAITING_MAX, LOGGED_MAX, STACK_FRAMES_MAX};
use super::loaded::note;
use super::probe::{Probe, condition};
use super::probing::Probing;
use super::stops::{SceneOfHit, Sink, Stops};
use super::wanted::Wanted;
use crate::inside::debug_files::DebugFolders;
use crate::run::launch::Launcher;
use crate::world::event::{self, Event};
use crate::world::timeline::Timeline;

/// Declared probe whose place and expressions are parsed.
pub(crate) struct Parsed {
    config: ProbeConfig,
    /// The place. Its values are those of `value` and `always`.
    probe: Probe,
    value: Option<Expression>,
    always: Option<Expression>,
}

impl Parsed {
    /// Parses the place and the expressions of a declaration.
    pub(crate) fn new(config: &ProbeConfig) -> Result<Parsed, ProbeProblem> {
        let wrong = |key| move |why: String| ProbeProblem::Expression { key, why };
        let mut probe = Probe::parse(&config.at).map_err(wrong("at"))?;
        if probe.name != config.at.trim() {
            let why = "only a place is allowed here; expressions have keys of their own".to_owned();
            return Err(wrong("at")(why));
        }
        let parse = |key, text: &Option<String>| {
            text.as_ref().map(|text| condition(text).map_err(wrong(key))).transpose()
        };
        let (value, always) = (parse("value", &config.value)?, parse("always", &config.always)?);
        probe.condition = parse("if", &config.condition)?;
        for (text, expression) in [(&config.value, &value), (&config.always, &always)] {
            if let (Some(text), Some(expression)) = (text, expression) {
                probe.values.push((text.clone(), expression.clone()));
            }
        }
        Ok(Parsed { config: config.clone(), probe, value, always })
    }

    /// Returns a probe of the command line, each of whose hits is an event.
    fn logged(probe: Probe) -> Parsed {
        let config = ProbeConfig {
            name: probe.name.clone(),
            at: probe.name.clone(),
            log: true,
            ..ProbeConfig::default()
        };
        Parsed { config, probe, value: None, always: None }
    }
}

/// Probes of a world.
pub struct Declared {
    probing: Arc<Probing>,
    probes: Vec<(ProbeConfig, Option<Expression>, Option<Expression>)>,
    found: Mutex<(Vec<Tally>, BTreeSet<String>)>,
}

impl Declared {
    /// Returns the probes of a world. `None` if there are none.
    ///
    /// # Errors
    /// See [`Declared::with`].
    pub(crate) fn of(launcher: &Launcher) -> anyhow::Result<Option<Declared>> {
        Declared::with(launcher, Vec::new(), DebugFolders::default())
    }

    /// Returns the probes of a world, and `others` whose hits are events. `debug` names further debug files. `None` if there are none.
    ///
    /// # Errors
    /// Returns an error if a declaration is invalid, if the kernel cannot be read, or if a probe has no place in it.
    pub(crate) fn with(
        launcher: &Launcher,
        others: Vec<Probe>,
        mut debug: DebugFolders,
    ) -> anyhow::Result<Option<Declared>> {
        let world = &launcher.world;
        let mut all = parsed(world)?;
        all.extend(others.into_iter().map(Parsed::logged));
        if all.is_empty() {
            return Ok(None);
        }
        let folders: BTreeSet<_> = all.iter().filter_map(|one| one.config.debug_files.clone()).collect();
        debug.add(folders);
        let number = |name: &String| world.nodes.iter().position(|node| node.name == *name);
        let (mut wanted, mut probes) = (Vec::new(), Vec::new());
        for Parsed { config, probe, value, always } in all {
            let nodes = config.nodes.as_ref().map(|nodes| nodes.iter().filter_map(number).collect());
            let declared_as = match config.at == config.name {
                true => String::new(),
                false => format!("{}: probe \"{}\": at: ", world.file.display(), config.name),
            };
            wanted.push(Wanted { probe, conditions: Vec::new(), nodes, declared_as });
            probes.push((config, value, always));
        }
        let probing = Arc::new(Probing::new(launcher, wanted, &debug)?);
        let found = Mutex::new((vec![Tally::default(); probes.len()], BTreeSet::new()));
        Ok(Some(Declared { probing, probes, found }))
    }

    /// Returns the numbers about each probe by its name, and the reasons why code was not probed.
    #[must_use]
    pub fn found(&self) -> (Vec<(String, Tally)>, Vec<String>) {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.probes.iter().map(|(config, ..)| config.name.clone());
        (names.zip(found.0.iter().copied()).collect(), found.1.iter().cloned().collect())
    }
}

/// Parses the probes of a world.
///
/// # Errors
/// Returns an error for the first invalid place or expression.
pub(crate) fn parsed(world: &World) -> anyhow::Result<Vec<Parsed>> {
    let parse = |config| {
        Parsed::new(config)
            .with_context(|| format!("probe \"{}\"", config.name))
            .with_context(|| world.file.display().to_string())
    };
    world.probes.iter().map(parse).collect()
}

/// Observer of the probes on a timeline.
pub(crate) struct Prober {
    declared: Arc<Declared>,
    stops: Stops,
    judged: Judged,
}

/// Effects of a segment's hits.
struct Judged {
    declared: Arc<Declared>,
    state: ProbeState,
    /// Events that were not taken yet.
    events: Vec<Event>,
    /// Probes that were violated in this segment. Their further violations are no events, because they are the same finding.
    violated: BTreeSet<usize>,
    /// Number of the segment's hits that are events only because the world file wants them among the log lines.
    logged: usize,
    tallies: Vec<Tally>,
}

impl Prober {
    pub(crate) fn new(declared: &Arc<Declared>) -> Prober {
        let judged = Judged {
            declared: Arc::clone(declared),
            state: ProbeState::default(),
            events: Vec::new(),
            violated: BTreeSet::new(),
            logged: 0,
            tallies: vec![Tally::default(); declared.probes.len()],
        };
        Prober { declared: Arc::clone(declared), stops: Stops::new(Arc::clone(&declared.probing)), judged }
    }

    /// Begins a segment of a timeline, which inherits `state`.
    ///
    /// # Errors
    /// Returns an error if the engine has no breakpoints, or if a program that runs lacks the place of a probe.
    pub(crate) fn begin(&mut self, timeline: &mut Timeline, state: &ProbeState) -> anyhow::Result<()> {
        *self = Prober::new(&Arc::clone(&self.declared));
        self.judged.state = state.clone();
        self.stops.begin(timeline)?;
        self.unless_lost()
    }

    /// Returns an error if a probe has no place in the program that it names.
    fn unless_lost(&self) -> anyhow::Result<()> {
        for (number, wanted) in self.declared.probing.probes.iter().enumerate() {
            let begins = format!("{}: ", wanted.probe.name);
            if !self.stops.placed[number]
                && let Some(problem) = self.stops.problems.iter().find(|problem| problem.starts_with(&begins))
            {
                bail!("{}{problem}", wanted.declared_as);
            }
        }
        Ok(())
    }

    /// Observes that a node's next instruction is at a breakpoint.
    ///
    /// # Errors
    /// See [`Prober::begin`].
    pub(crate) fn stopped(&mut self, timeline: &mut Timeline, node: usize) -> anyhow::Result<()> {
        let problems = self.stops.problems.len();
        self.stops.stopped(timeline, node, &mut self.judged)?;
        if self.stops.problems.len() == problems { Ok(()) } else { self.unless_lost() }
    }

    /// Takes the events since the last call, in the order of their vtimes.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.judged.events);
        events.sort_by(|a, b| (a.vtime_ns, &a.node).cmp(&(b.vtime_ns, &b.node)));
        events
    }

    /// Observes a fault of the timeline's plan. A node that loses its power or is reset loses its memory.
    pub(crate) fn fault(&mut self, plan: &Plan, id: u32, node: impl Fn(&str) -> Option<u16>) {
        let entry = usize::try_from(id).ok().and_then(|id| plan.entries().get(id));
        let Some(What::Fault(fault)) = entry.map(|entry| &entry.what) else { return };
        let loses = matches!(fault.kind(), FaultKind::PowerLoss | FaultKind::Reset);
        if let Some(node) = fault.node().filter(|_| loses).and_then(node) {
            self.judged.state.lost_memory(node);
        }
    }

    /// Returns the state that branches from here inherit.
    pub(crate) fn state(&self) -> &ProbeState {
        &self.judged.state
    }

    /// Ends the observation, and removes the breakpoints. `is_counted` is true if the hits belong to a branch that is
    /// reported.
    pub(crate) fn end(&mut self, timeline: &mut Timeline, is_counted: bool) {
        Stops::end(timeline);
        let mut found = self.declared.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (tallies, problems) = &mut *found;
        for problem in std::mem::take(&mut self.stops.problems) {
            note(problems, problem);
        }
        for (number, tally) in tallies.iter_mut().enumerate() {
            tally.is_placed |= self.stops.placed[number];
            if is_counted {
                let (count, of) = (self.stops.counts[number], self.judged.tallies[number]);
                tally.hits += count.hits;
                tally.undecided += count.undecided;
                tally.unknown += of.unknown;
                tally.unfollowed += of.unfollowed;
                tally.left_out += of.left_out;
            }
        }
    }
}

impl Sink for Judged {
    fn hit(&mut self, hit: &SceneOfHit<'_>) {
        let (Some((config, expression, always)), Some(wanted)) =
            (self.declared.probes.get(hit.probe), self.declared.probing.probes.get(hit.probe))
        else {
            return;
        };
        let scene = &hit.scene;
        let read = expression.as_ref().map(|expression| value(expression, scene));
        let known = read.as_ref().and_then(|read| read.as_ref().ok());
        let text = known.and_then(|value| plain(value, scene).ok());
        let number = known.and_then(|value| integer(value, scene).ok());
        let holds = always.as_ref().map(|always| is_true(always, scene));
        let needs_number = config.never_decreases.is_some() && number.is_none();
        let is_unknown = expression.is_some() && text.is_none() || matches!(holds, Some(Err(_)));
        let tally = &mut self.tallies[hit.probe];
        tally.unknown += u64::from(needs_number || is_unknown);
        let number_of = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let effects = self.state.judge(
            config,
            &ProbeHit {
                probe: number_of(hit.probe),
                node: number_of(hit.node),
                process: hit.memory().map(|memory| Process { pid: hit.pid, memory }),
                number,
                text: text.as_deref(),
                holds: holds.and_then(Result::ok),
            },
        );
        tally.unfollowed += u64::from(effects.is_unfollowed);
        let is_violation = effects.violated.is_some() && self.violated.insert(hit.probe);
        if !is_violation {
            if effects.variable.is_none() && !effects.is_first && !config.log {
                return;
            }
            let only_logged = effects.variable.is_none() && !effects.is_first;
            let is_full = self.events.len() >= EVENTS_WAITING_MAX && !effects.is_first;
            if is_full || only_logged && self.logged >= LOGGED_MAX {
                if effects.variable.is_some() {
                    // The next hit reports it.
                    self.state.forget_variable(number_of(hit.probe), number_of(hit.node));
                }
                tally.left_out += 1;
                return;
            }
            self.logged += usize::from(only_logged);
        }
        let mut text = hit.shown(&wanted.probe).0;
        if let Some(violated) = effects.violated.as_ref().filter(|_| is_violation) {
            let separator = if text.is_empty() { "" } else { ": " };
            text = format!("{} {violated}{separator}{text}", wanted.probe.name);
        }
        let separator = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{separator}({} {}/{})", hit.thread(), hit.pid, hit.tid);
        let mut tell = |text, violated, variable| {
            let what = event::What::Probe { probe: config.name.clone(), text, violated, variable };
            self.events.push(Event { vtime_ns: hit.vtime_ns, node: scene.machine.name().to_owned(), what });
        };
        if is_violation || wanted.probe.has_stack {
            // The stack comes first, so that it is in the evidence of the violation.
            let frames = match hit.stack() {
                Ok(stack) => stack.as_ref().map(frames).unwrap_or_default(),
                Err(_) => "cannot be read".to_owned(),
            };
            if !frames.is_empty() {
                tell(format!("stack: {frames}"), false, None);
            }
        }
        tell(text, is_violation, effects.variable);
    }

    fn loaded(&mut self, node: usize, pid: u32) {
        self.state.loaded(u16::try_from(node).unwrap_or(u16::MAX), pid);
    }
}

/// Returns the innermost frames of a stack in one line.
fn frames(stack: &HitStack) -> String {
    let user = stack.user.iter().map(|frame| {
        let name = frame.function.clone().unwrap_or_else(|| format!("{:#x}", frame.address));
        name + &frame.source.last().map(SourcePlace::at).unwrap_or_default()
    });
    // A frame of the kernel is its address, and in brackets its name.
    let kernel = stack.kernel.iter().map(|frame| match frame.split_once(" (") {
        Some((_, name)) => name.trim_end_matches(')').to_owned(),
        None => frame.clone(),
    });
    kernel.chain(user).take(STACK_FRAMES_MAX).collect::<Vec<String>>().join(" < ")
}

/// Checks the places and expressions of a world's probes.
///
/// # Errors
/// Returns an error for the first invalid one.
pub(crate) fn check(world: &World) -> anyhow::Result<()> {
    parsed(world).map(|_| ())
}
