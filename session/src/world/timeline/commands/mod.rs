//! Commands of a test template on all nodes.
//!
//! The composer (`everett_explorer::composer`) decides when each command runs. This module passes messages from the
//! nodes to the composer and executes its decisions. A message takes one wire latency (the shortest delay of a frame
//! between nodes) to reach the composer. The composer receives messages ordered by vtime of arrival, then by node.
//! Everett's own actions on a node, such as removing its power, are reported to the composer at once.
//!
//! - Commands start when the timeline has begun on every node that is on.
//! - After the end of the workload, no command starts until all nodes are back. So the last commands, which have the
//!   prefix `eventually_` or `finally_`, start in a world at rest.
//!
//! **Invariant.** Random draws come only from [`Commands::streams`], and actions happen only at scheduled vtimes.

use std::collections::BTreeSet;

use everett_explorer::composer::limits::{COMMANDS_MAX, FINISH_NS_MAX, KILL_NS_MAX, LAST_NS_MAX};
use everett_explorer::composer::{Act, Composer, ComposerState, Counts, Prefix, Start, Tally, Template};
use everett_explorer::property::builtin;
use everett_input::causes::with_causes;
use everett_input::units::show_duration_ns;
use everett_streams::{Lineage, Owner, Purpose, Streams};
use everett_vmm::clock::VTIME_MAX;
use serde::{Deserialize, Serialize};

use super::Timeline;
use super::director::{STOP_NS_MAX, Stage};
use super::stored::StateError;
use crate::world::conversation::{Said, Word};

/// Longest time from the end of the workload to the end of all commands, in nanoseconds of vtime.
const END_NS_MAX: u64 = FINISH_NS_MAX + KILL_NS_MAX + LAST_NS_MAX + STOP_NS_MAX;
/// Maximum number of messages from a node that have not reached the composer.
const WORDS_OF_NODE_MAX: usize = 64;

/// Stored state of a timeline's commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Commands {
    /// Pairs of a node's index and a command name. A command has one pair for each node on which it exists.
    pub files: Vec<(u16, String)>,
    pub composer: ComposerState,
    /// Counts of starts and results so far, for each command.
    pub tally: Tally,
    pub streams: Streams,
    /// Messages that have not reached the composer: vtime of arrival, node, message. Ordered by vtime and node.
    pub words: Vec<(u64, u16, Said)>,
    /// Nodes on which the timeline has not begun.
    pub awaited: BTreeSet<u16>,
    /// Vtime by which killed commands must have ended, in nanoseconds. When the composer has no command left to start,
    /// Everett kills the commands that still run.
    pub gone_ns: Option<u64>,
}

/// Values derived from [`Commands`]. Moments do not store them.
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
    /// Checks a stored state of a timeline with `nodes` nodes. Returns the derived values.
    pub(super) fn check(&self, nodes: usize) -> Result<Composing, StateError> {
        let fail = |what| Err(StateError::Inconsistent(what));
        let is_node = |node: u16| usize::from(node) < nodes;
        if self.files.len() > COMMANDS_MAX.saturating_mul(nodes) {
            return fail("it has too many test commands");
        }
        if self.words.len() > WORDS_OF_NODE_MAX.saturating_mul(nodes) {
            return fail("it has too many messages in transit");
        }
        let at = self.words.iter().map(|&(at, ..)| at).chain(self.gone_ns);
        if at.max().is_some_and(|at| at > VTIME_MAX) {
            return fail("a vtime is larger than the maximum");
        }
        let of_files = self.files.iter().map(|(node, _)| *node);
        let mut named =
            of_files.chain(self.words.iter().map(|&(_, node, _)| node)).chain(self.awaited.iter().copied());
        if !named.all(is_node) {
            return fail("it has test commands on nodes that do not exist");
        }
        if !self.words.is_sorted_by_key(|&(at, node, _)| (at, node)) {
            return fail("the messages of its nodes are out of order");
        }
        match Template::new(self.files.iter().cloned()) {
            Ok(template) => Composing::new(template, self),
            Err(_) => fail("its test template is invalid"),
        }
    }

    /// Updates the derived values after a change of the composer.
    fn look(&self, composing: &mut Composing) -> Result<(), StateError> {
        let Composing { template, due_ns, is_over, faults_allowed } = composing;
        let composer = self.go_on(template)?;
        (*due_ns, *is_over, *faults_allowed) =
            (composer.due(), composer.is_over(), composer.faults_allowed());
        Ok(())
    }

    fn go_on<'t>(&self, template: &'t Template) -> Result<Composer<'t>, StateError> {
        Composer::go_on(template, self.composer.clone())
            .map_err(|_| StateError::Inconsistent("the state of its test composer is invalid"))
    }

    /// Calls the composer with `tell` and keeps its new state.
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
    /// Returns the counts of the test template's commands so far, or `None` without a template.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.course.commands.as_ref().map(|commands| &commands.tally)
    }

    /// Returns the longest time from the end of the workload to the end of all commands, in nanoseconds of vtime, or 0
    /// without a test template.
    #[must_use]
    pub fn last_commands_ns(&self) -> u64 {
        if self.composing.is_some() { END_NS_MAX } else { 0 }
    }

    /// Creates the template from the commands that the nodes listed. Called when the timeline begins. The composer's
    /// random streams are derived from `lineage`.
    pub(super) fn begin_commands(&mut self, lineage: &Lineage) -> Result<(), String> {
        let script = self.nodes.first().map(|session| session.conversation.script());
        let Some(folder) = script.and_then(|script| script.template.clone()) else { return Ok(()) };
        let nodes = (0..).zip(&self.nodes);
        let files = nodes.flat_map(|(node, session)| {
            session.conversation.names().iter().map(move |name| (node, name.clone()))
        });
        let template = Template::new(files)
            .map_err(|error| format!("test template {folder}: {}", with_causes(&error)))?;
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
        self.composing = Some(Composing::new(template, &commands).map_err(|error| with_causes(&error))?);
        self.course.commands = Some(commands);
        Ok(())
    }

    /// Makes the composer draw its random choices anew after a fork, so that branches of one moment differ.
    pub(super) fn fork_commands(&mut self) {
        self.tell_composer(|composer, streams| composer.fork(streams.get(Purpose::Commands)));
    }

    /// Returns true if faults may be applied now. With a test template, faults may be applied until the end of the
    /// workload. If the template has a `first_` command, they may be applied only after its end.
    pub(super) fn faults_allowed(&self) -> bool {
        self.composing.as_ref().is_none_or(|composing| composing.faults_allowed)
    }

    /// Returns true without a template, or if the template is done. Each driver and `anytime_` command must have ended
    /// by itself once. If there are `first_` commands, one of them must have ended.
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

    /// Adds messages of a node that are on their way to the composer.
    pub(super) fn take_words(&mut self, node: usize, words: Vec<Word>) {
        let distance_ns = self.distance_ns();
        // A world has at most 64 nodes, so the number fits.
        let (Some(commands), Ok(node)) = (&mut self.course.commands, u16::try_from(node)) else { return };
        let words =
            words.into_iter().map(|word| (word.vtime_ns.saturating_add(distance_ns), node, word.said));
        commands.words.extend(words);
        // The sort is stable, so the messages of one node stay in order.
        commands.words.sort_by_key(|&(at, node, _)| (at, node));
    }

    /// Drops a node's messages that are on their way to the composer, and tells the composer that the commands on the
    /// node are lost. Called after Everett or the guest has switched off the node.
    pub(super) fn lose_commands(&mut self, node: usize) {
        let (Some(commands), Ok(node)) = (&mut self.course.commands, u16::try_from(node)) else { return };
        commands.words.retain(|&(_, of, _)| of != node);
        commands.awaited.remove(&node);
        let now = self.world.vtime();
        self.tell_composer(|composer, _| composer.lost(node, now));
    }

    /// Returns the next vtime at which a command, a message or a time limit is due, in nanoseconds.
    pub(super) fn next_command_ns(&self) -> Option<u64> {
        let (commands, composing) = (self.course.commands.as_ref()?, self.composing.as_ref()?);
        let said = commands.words.first().map(|&(at, ..)| at);
        let due = composing.due_ns.filter(|_| commands.awaited.is_empty());
        let gone = commands.gone_ns.filter(|_| matches!(self.course.stage, Stage::Last { .. }));
        [said, due, gone].into_iter().flatten().min()
    }

    /// Delivers the messages that reach the composer at `now` or before.
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

    /// Executes the composer's decisions up to `now`.
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

    /// Tells the composer that the workload has ended. Also reports all nodes as down, so that the composer starts no
    /// command before [`Self::start_last_commands`].
    pub(super) fn stop_commands(&mut self, now: u64) {
        let nodes = 0..self.nodes.len() as u16;
        self.tell_composer(|composer, _| {
            composer.stop(now);
            nodes.for_each(|node| composer.down(node));
        });
    }

    /// Tells the composer that all nodes are up, so that the last commands start. Called when all nodes are back.
    pub(super) fn start_last_commands(&mut self) {
        if let Some(commands) = &mut self.course.commands {
            commands.awaited.clear();
        }
        let nodes = 0..self.nodes.len() as u16;
        self.tell_composer(|composer, _| nodes.for_each(|node| composer.up(node)));
    }

    /// Returns true if all commands have ended.
    ///
    /// # Errors
    /// Returns an error that names a command that survived its kill.
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
            // The guest has powered off its machine.
            _ => self.lose_commands(usize::from(node)),
        }
    }

    fn kill_commands(&mut self, now: u64) {
        for session in self.nodes.iter_mut().filter(|session| session.conversation.takes_commands()) {
            session.conversation.kill_commands(now);
        }
    }

    /// Kills the commands that still run. Called when the composer has no command left to start.
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

    /// Calls the composer, if there is one.
    fn tell_composer<T>(&mut self, tell: impl FnOnce(&mut Composer<'_>, &mut Streams) -> T) -> Option<T> {
        let (Some(commands), Some(composing)) = (&mut self.course.commands, &mut self.composing) else {
            return None;
        };
        match commands.tell(composing, tell) {
            Ok(answer) => Some(answer),
            // A state is checked when it is restored, so this cannot happen.
            Err(error) => {
                self.composing = None;
                self.give_up(&with_causes(&error));
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
