//! Commands of a test template, on all nodes: the composer decides which run when, here it is told what happens and obeyed.
//!
//! What a node says comes to the composer as late as it could come to another node (see `director`), and in the order in which it
//! was said, at one vtime in the order of the nodes. What the host does to a node by itself, as taking its power, comes at once.
//!
//! * Commands begin when the timeline has begun on every node that is there.
//! * When the workload is over no node gets a command until all are back: the last ones find a world at rest.
//!
//! **Invariant.** Nothing is drawn but from the stream in the state, and nothing is done but at vtimes that were fixed before.

use std::collections::BTreeSet;

use everett_explorer::composer::limits::{COMMANDS_MAX, FINISH_NS_MAX, KILL_NS_MAX, LAST_NS_MAX};
use everett_explorer::composer::{Act, Composer, ComposerState, Counts, Prefix, Start, Tally, Template};
use everett_explorer::property::builtin;
use everett_input::units::show_duration_ns;
use everett_streams::{Lineage, Owner, Purpose, Streams};
use everett_vmm::clock::VTIME_MAX;
use serde::{Deserialize, Serialize};

use super::director::{STOP_NS_MAX, Stage};
use super::{StateError, Timeline};
use crate::conversation::{Said, Word};

/// How long it takes from the end of the workload until nothing runs any more, in nanoseconds of vtime.
const END_NS_MAX: u64 = FINISH_NS_MAX + KILL_NS_MAX + LAST_NS_MAX + STOP_NS_MAX;
/// The most words of a node that are on their way at one time.
const WORDS_OF_NODE_MAX: usize = 64;

/// What is stored of a timeline's commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Commands {
    /// The template: each command with the number of a node that has it.
    pub files: Vec<(u16, String)>,
    pub composer: ComposerState,
    /// What has become of commands so far.
    pub tally: Tally,
    pub streams: Streams,
    /// What nodes have said, by the vtime at which it comes to the composer, and node.
    pub words: Vec<(u64, u16, Said)>,
    /// Nodes on which the timeline has not begun yet.
    pub awaited: BTreeSet<u16>,
    /// What ran when the composer was done was killed, and is gone at this vtime.
    pub gone_ns: Option<u64>,
}

/// What follows from the stored state.
#[derive(Debug)]
pub(super) struct Composing {
    template: Template,
    due_ns: Option<u64>,
    is_over: bool,
    faults_allowed: bool,
}

impl Composing {
    fn new(template: Template, commands: &Commands) -> Result<Composing, StateError> {
        let mut composing = Composing { template, due_ns: None, is_over: false, faults_allowed: true };
        commands.look(&mut composing)?;
        Ok(composing)
    }
}

impl Commands {
    /// Whether a timeline of so many nodes can have them.
    pub(super) fn check(&self, nodes: usize) -> Result<Composing, StateError> {
        let fail = |what| Err(StateError::Inconsistent(what));
        let is_node = |node: u16| usize::from(node) < nodes;
        if self.files.len() > COMMANDS_MAX.saturating_mul(nodes) {
            return fail("it has more test commands than there can be");
        }
        if self.words.len() > WORDS_OF_NODE_MAX.saturating_mul(nodes) {
            return fail("its nodes have said more than they can have");
        }
        let at = self.words.iter().map(|&(at, ..)| at).chain(self.gone_ns);
        if at.max().is_some_and(|at| at > VTIME_MAX) {
            return fail("it has a time beyond the end of time");
        }
        let of_files = self.files.iter().map(|(node, _)| *node);
        let mut named =
            of_files.chain(self.words.iter().map(|&(_, node, _)| node)).chain(self.awaited.iter().copied());
        if !named.all(is_node) {
            return fail("it has test commands on nodes that there are not");
        }
        if !self.words.is_sorted_by_key(|&(at, node, _)| (at, node)) {
            return fail("what its nodes have said is in no order");
        }
        match Template::new(self.files.iter().cloned()) {
            Ok(template) => Composing::new(template, self),
            Err(_) => fail("its test template is none"),
        }
    }

    /// Look at the composer's state.
    fn look(&self, composing: &mut Composing) -> Result<(), StateError> {
        let Composing { template, due_ns, is_over, faults_allowed } = composing;
        let composer = self.go_on(template)?;
        (*due_ns, *is_over, *faults_allowed) =
            (composer.due(), composer.is_over(), composer.faults_allowed());
        Ok(())
    }

    fn go_on<'t>(&self, template: &'t Template) -> Result<Composer<'t>, StateError> {
        Composer::go_on(template, self.composer.clone())
            .map_err(|_| StateError::Inconsistent("its test composer cannot be there"))
    }

    /// Tell the composer something.
    fn tell<T>(
        &mut self,
        composing: &mut Composing,
        tell: impl FnOnce(&mut Composer<'_>, &mut Streams) -> T,
    ) -> Result<T, StateError> {
        let mut composer = self.go_on(&composing.template)?;
        let answer = tell(&mut composer, &mut self.streams);
        let (state, tally) = composer.finish();
        self.composer = state;
        self.tally.merge(&tally);
        self.look(composing)?;
        Ok(answer)
    }
}

impl Timeline {
    /// What has become of the test template's commands so far; none if there are none.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.course.commands.as_ref().map(|commands| &commands.tally)
    }

    /// How long the last commands of a test template may take, in nanoseconds of vtime.
    #[must_use]
    pub fn last_commands_ns(&self) -> u64 {
        if self.composing.is_some() { END_NS_MAX } else { 0 }
    }

    /// The timeline begins with this lineage: make a template of what the nodes have.
    pub(super) fn begin_commands(&mut self, lineage: &Lineage) -> Result<(), String> {
        let plan = self.nodes.first().map(|session| session.conversation.plan());
        let Some(folder) = plan.and_then(|plan| plan.template.clone()) else { return Ok(()) };
        let nodes = (0..).zip(&self.nodes);
        let files = nodes.flat_map(|(node, session)| {
            session.conversation.names().iter().map(move |name| (node, name.clone()))
        });
        let template = Template::new(files).map_err(|error| format!("test template {folder}: {error}"))?;
        let of_command = template.commands().iter();
        let files = of_command
            .flat_map(|command| command.nodes().iter().map(|node| (*node, command.name().to_owned())));
        let files = files.collect();
        let mut streams = Streams::new(lineage, Owner::Composer);
        let composer = Composer::begin(&template, self.vtime(), streams.get(Purpose::Commands));
        let (composer, tally) = composer.finish();
        let awaited = (0..).zip(&self.nodes).map(|(node, _)| node).collect();
        let commands =
            Commands { files, composer, tally, streams, words: Vec::new(), awaited, gone_ns: None };
        self.composing = Some(Composing::new(template, &commands).map_err(|error| error.to_string())?);
        self.course.commands = Some(commands);
        Ok(())
    }

    /// The timeline has become a child, and its streams are the child's.
    pub(super) fn fork_commands(&mut self) {
        self.tell_composer(|composer, streams| composer.fork(streams.get(Purpose::Commands)));
    }

    /// Whether faults are done: not beside the first command.
    pub(super) fn faults_allowed(&self) -> bool {
        self.composing.as_ref().is_none_or(|composing| composing.faults_allowed)
    }

    /// Whether each driver and `anytime_` command of the test template has ended by itself at least once, and a first command if
    /// there are some. True without a template.
    pub(super) fn template_is_done(&self) -> bool {
        let Some(commands) = &self.course.commands else { return true };
        let all = commands.tally.commands().map(|(name, counts)| (Prefix::of(name), counts));
        let ended = |counts: Counts| counts.succeeded.saturating_add(counts.failed) > 0;
        let (mut firsts, mut first_ended) = (false, false);
        for (prefix, counts) in all {
            match prefix {
                Some(Prefix::First) => (firsts, first_ended) = (true, first_ended || ended(counts)),
                Some(Prefix::Eventually | Prefix::Finally | Prefix::Helper) | None => {}
                Some(_) if !ended(counts) => return false,
                Some(_) => {}
            }
        }
        first_ended || !firsts
    }

    /// These are on their way to the composer.
    pub(super) fn take_words(&mut self, node: usize, words: Vec<Word>) {
        let distance_ns = self.distance_ns();
        // A world has at most 64 nodes.
        let (Some(commands), Ok(node)) = (&mut self.course.commands, u16::try_from(node)) else { return };
        let words =
            words.into_iter().map(|word| (word.vtime_ns.saturating_add(distance_ns), node, word.said));
        commands.words.extend(words);
        // Stable: a node's words keep their order.
        commands.words.sort_by_key(|&(at, node, _)| (at, node));
    }

    /// A node has no power any more, and nothing that it said will be heard.
    pub(super) fn lose_commands(&mut self, node: usize) {
        let (Some(commands), Ok(node)) = (&mut self.course.commands, u16::try_from(node)) else { return };
        commands.words.retain(|&(_, of, _)| of != node);
        commands.awaited.remove(&node);
        let now = self.world.vtime();
        self.tell_composer(|composer, _| composer.lost(node, now));
    }

    /// When something is due, in nanoseconds of vtime.
    pub(super) fn next_command_ns(&self) -> Option<u64> {
        let (commands, composing) = (self.course.commands.as_ref()?, self.composing.as_ref()?);
        let said = commands.words.first().map(|&(at, ..)| at);
        let due = composing.due_ns.filter(|_| commands.awaited.is_empty());
        let gone = commands.gone_ns.filter(|_| matches!(self.course.stage, Stage::Last { .. }));
        [said, due, gone].into_iter().flatten().min()
    }

    /// Tell the composer what has come to it by now.
    pub(super) fn hear_words(&mut self, now: u64) {
        let Some(commands) = &mut self.course.commands else { return };
        let heard = commands.words.partition_point(|&(at, ..)| at <= now);
        let words: Vec<_> = commands.words.drain(..heard).collect();
        let goes_on = matches!(self.course.stage, Stage::Running { .. });
        for (_, node, said) in words {
            match said {
                Said::Begun => {
                    if let Some(commands) = &mut self.course.commands {
                        commands.awaited.remove(&node);
                    }
                    if goes_on {
                        self.tell_composer(|composer, _| composer.up(node));
                    }
                }
                Said::Ended { run, success, killed } => {
                    self.tell_composer(|composer, _| composer.ended(run, now, success, killed));
                }
            }
        }
    }

    /// Do what the composer wants here.
    pub(super) fn do_commands(&mut self, now: u64) {
        while self.course.commands.as_ref().is_some_and(|commands| commands.awaited.is_empty())
            && self.composing.as_ref().is_some_and(|composing| composing.due_ns.is_some_and(|at| at <= now))
        {
            let acts =
                self.tell_composer(|composer, streams| composer.act(now, streams.get(Purpose::Commands)));
            for act in acts.unwrap_or_default() {
                match act {
                    Act::Start(start) => self.start_command(start, now),
                    Act::KillAll => self.kill_commands(now),
                    Act::Over => self.end_commands(now),
                }
            }
        }
    }

    /// The workload is over.
    pub(super) fn stop_commands(&mut self, now: u64) {
        let nodes = 0..self.nodes.len() as u16;
        self.tell_composer(|composer, _| {
            composer.stop(now);
            nodes.for_each(|node| composer.down(node));
        });
    }

    /// All nodes are back, and the last commands can start.
    pub(super) fn start_last_commands(&mut self) {
        if let Some(commands) = &mut self.course.commands {
            commands.awaited.clear();
        }
        let nodes = 0..self.nodes.len() as u16;
        self.tell_composer(|composer, _| nodes.for_each(|node| composer.up(node)));
    }

    /// Whether the last commands are over, and nothing runs any more; or what does so in spite of all.
    pub(super) fn last_commands_are_over(&mut self, now: u64) -> Result<bool, String> {
        let (Some(commands), Some(composing)) = (&self.course.commands, &self.composing) else {
            return Ok(true);
        };
        let runs = commands.composer.runs();
        match (runs.first(), commands.gone_ns) {
            (None, _) => Ok(composing.is_over),
            (Some(run), Some(gone_ns)) if gone_ns <= now => {
                Err(format!("command {} did not end when it was killed", composing.name(run.command)))
            }
            _ => Ok(false),
        }
    }

    fn start_command(&mut self, start: Start, now: u64) {
        let Start { run, command, node } = start;
        let name = self.composing.as_ref().map_or("", |composing| composing.name(command)).to_owned();
        match self.nodes.get_mut(usize::from(node)) {
            Some(session) if session.conversation.takes_commands() => {
                session.conversation.start_command(run, &name, now);
                let words = session.conversation.take_words();
                self.take_words(usize::from(node), words);
            }
            // Its machine was switched off by its own guest.
            _ => self.lose_commands(usize::from(node)),
        }
    }

    fn kill_commands(&mut self, now: u64) {
        for session in self.nodes.iter_mut().filter(|session| session.conversation.takes_commands()) {
            session.conversation.kill_commands(now);
        }
    }

    /// The composer is done. What still runs is killed.
    fn end_commands(&mut self, now: u64) {
        let Some(commands) = &mut self.course.commands else { return };
        let runs = commands.composer.runs().to_vec();
        if runs.is_empty() {
            return;
        }
        commands.gone_ns = Some(now.saturating_add(STOP_NS_MAX));
        for run in runs {
            let Some(composing) = &self.composing else { return };
            let command = composing.template.command(run.command);
            if command.is_some_and(|command| matches!(command.prefix(), Prefix::Eventually | Prefix::Finally))
            {
                let (name, limit) = (composing.name(run.command), show_duration_ns(LAST_NS_MAX));
                let text = format!("command {name} did not end in {limit}");
                self.finding_at(usize::from(run.node), builtin::FAILED_CHECK, &text);
            }
        }
        self.kill_commands(now);
    }

    /// Tell the composer something, if there is one.
    fn tell_composer<T>(&mut self, tell: impl FnOnce(&mut Composer<'_>, &mut Streams) -> T) -> Option<T> {
        let (Some(commands), Some(composing)) = (&mut self.course.commands, &mut self.composing) else {
            return None;
        };
        match commands.tell(composing, tell) {
            Ok(answer) => Some(answer),
            // Not of a state that was checked when it came here.
            Err(error) => {
                self.composing = None;
                self.give_up(&error.to_string());
                None
            }
        }
    }
}

impl Composing {
    fn name(&self, command: usize) -> &str {
        self.template.command(command).map_or("", |command| command.name())
    }
}

#[cfg(test)]
pub(super) mod tests;
