//! Course of the whole world: beginning, workload, end of the workload, time to settle, last commands (those with the
//! prefix `eventually_` or `finally_`), checks.
//!
//! All vtimes here derive from the vtimes of events. The vtime at which Everett notices an event is not used, because
//! it depends on the vtimes at which callers of [`Timeline::run`] stop.
//!
//! A message from one node can make Everett act on another node or on the wire. Everett acts one wire latency (the
//! shortest delay of a frame between nodes) after the message. When Everett receives the message, no node can have
//! passed that vtime.

use everett_explorer::property::builtin;
use everett_input::units::show_duration_ns;
use serde::{Deserialize, Serialize};

use super::{COMMAND, Timeline};
use crate::guest::agent_script::WorldCheck;
use crate::guest::sdk;
use crate::world::conversation::{Conversation, Phase};
use crate::world::event::{Event, What};
use crate::world::node::earlier;

/// Time limit for a world to come to rest after the workload, in nanoseconds of vtime: two minutes. All nodes and
/// restarted services must then be up and idle.
pub const CALM_NS_MAX: u64 = 120_000_000_000;
/// Time that a machine has to report a check after the check's time limit, in nanoseconds of vtime. At the time limit
/// the agent (Everett's program in the guest) kills the check.
pub const ANSWER_NS_MAX: u64 = 10_000_000_000;
/// Time limit within which agents must stop the drivers (programs of the workload), in nanoseconds of vtime. It applies
/// if no node or service is restarting.
pub(super) const STOP_NS_MAX: u64 = 10_000_000_000;

/// Stage of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// Some nodes are not ready.
    Booting,
    /// All nodes are ready. The root moment, from which all timelines of the world fork, is at vtime `at`.
    Ready { at: u64 },
    /// Drivers run. The root moment was at vtime `root`.
    Running { root: u64 },
    /// The agents kill the drivers. Nodes come back after faults, and services after restarts. The time limit is vtime
    /// `until`.
    Stopping { root: u64, until: u64 },
    /// No driver runs, and all nodes and services are back. The world settles until vtime `at`, when the last commands
    /// of the test template can start.
    Calm { root: u64, at: u64 },
    /// The last commands of the test template run.
    Last { root: u64 },
    /// The checks before number `next` are done. Check `next` starts at vtime `at`. `started` is true if it runs
    /// already.
    Checking { root: u64, next: usize, at: u64, started: bool },
    /// The timeline is over.
    Done { root: u64 },
}

impl Timeline {
    /// Returns the phase that all nodes have reached.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let conversations = || self.nodes.iter().map(|session| session.conversation.phase());
        if self.is_broken() {
            return Phase::Broken;
        }
        match self.course.stage {
            Stage::Booting => conversations().min().unwrap_or(Phase::Done).min(Phase::Joining),
            Stage::Ready { at } if self.vtime() < at => Phase::Joining,
            Stage::Ready { .. } => Phase::Ready,
            Stage::Running { .. } => {
                conversations().min().unwrap_or(Phase::Done).clamp(Phase::Beginning, Phase::Running)
            }
            Stage::Stopping { .. } | Stage::Calm { .. } | Stage::Last { .. } => Phase::Stopping,
            Stage::Checking { .. } => Phase::Stopped,
            Stage::Done { .. } => Phase::Done,
        }
    }

    /// True if an agent or its machine is unusable.
    fn is_broken(&self) -> bool {
        for session in &self.nodes {
            if session.conversation.phase() == Phase::Broken {
                return true;
            }
        }
        false
    }

    /// Returns the vtime of the root moment, at which all services were ready, in nanoseconds.
    #[must_use]
    pub fn ready_ns(&self) -> Option<u64> {
        self.course.root_ns()
    }

    /// Returns the latest vtime at which the workload ends, in nanoseconds. `None` if the services are not ready, or if
    /// the workload has no end.
    #[must_use]
    pub fn end_ns(&self) -> Option<u64> {
        Some(self.ready_ns()?.saturating_add(self.course.duration_ns?))
    }

    /// Returns true if the workload should have ended by itself and its time limit ended it instead.
    #[must_use]
    pub fn was_not_done(&self) -> bool {
        let goes_on =
            matches!(self.course.stage, Stage::Booting | Stage::Ready { .. } | Stage::Running { .. });
        self.until_done && !goes_on
    }

    /// Returns the pause before the last commands and the checks, in nanoseconds of vtime.
    #[must_use]
    pub fn settle_ns(&self) -> u64 {
        self.nodes.first().map_or(0, |session| session.conversation.script().settle_ns)
    }

    /// Returns the sum of the checks' time limits, in nanoseconds of vtime.
    #[must_use]
    pub fn checks_ns(&self) -> u64 {
        let limit_ns = |check: &WorldCheck| match check {
            WorldCheck::Host(check) => check.timeout_ns,
            WorldCheck::Agent(node, number) => {
                self.nodes[*node].conversation.check_limit_ns(*number).unwrap_or(0)
            }
        };
        self.checks.iter().map(limit_ns).fold(0, u64::saturating_add)
    }

    /// Returns [`Timeline::icount`] and the vtime in nanoseconds at which the last commands or the checks began.
    /// Returns `None` before that, and after a later call of [`Timeline::end_after`].
    #[must_use]
    pub fn checks_begun(&self) -> Option<(u64, u64)> {
        self.checks_begun
    }

    /// Ends the timeline with a finding, because the guests did not do what Everett asked.
    pub fn give_up(&mut self, why: &str) {
        if let Some(root) = self.course.root_ns()
            && !matches!(self.course.stage, Stage::Done { .. })
        {
            // A finding belongs to a node. A finding about the whole world goes to the first node.
            self.finding_at(0, builtin::NOT_CALM, why);
            self.course.stage = Stage::Done { root };
        }
    }

    pub(super) fn finding_at(&mut self, node: usize, property: &str, text: &str) {
        let vtime_ns = self.vtime();
        if let Some(session) = self.nodes.get_mut(node) {
            session.conversation.noticed(vtime_ns, property, text);
            self.reporting.of_host(session.conversation.take_events());
        }
    }

    /// Returns the delay of a message from one node to another by way of Everett, in nanoseconds of vtime.
    pub(super) fn distance_ns(&mut self) -> u64 {
        self.world.wire().lookahead_ns()
    }

    /// Returns the next vtime at which an action on the whole world is due.
    pub(super) fn next_direction_ns(&self) -> Option<u64> {
        match self.course.stage {
            Stage::Booting => self.setup_limit_ns(),
            Stage::Done { .. } => None,
            // If an agent or its machine is unusable, the world is broken. During the workload, Everett still applies
            // faults to a broken world. Everett does nothing else with it.
            Stage::Running { .. } if self.is_broken() => self.next_fault_ns(),
            _ if self.is_broken() => None,
            Stage::Checking { next, at, started: true, .. } => {
                earlier(self.talk.as_ref().map(|talk| talk.next_ns), self.hangs_ns(next, at))
            }
            Stage::Ready { at } => Some(at),
            Stage::Running { .. } => {
                let workload = earlier(self.end_ns(), self.next_command_ns());
                let faults = earlier(self.next_fault_ns(), self.next_quiet_ns());
                earlier(earlier(workload, faults), self.next_restart_ns())
            }
            Stage::Stopping { until: at, .. } | Stage::Calm { at, .. } => {
                earlier(Some(at), self.next_command_ns())
            }
            Stage::Last { .. } => self.next_command_ns(),
            Stage::Checking { at, .. } => Some(at),
        }
    }

    /// Enters the stage `Ready` if all nodes are ready. No other action is taken, so the timeline can be stored here.
    pub(super) fn observe(&mut self) {
        if self.course.stage != Stage::Booting {
            return;
        }
        let Some(last) = self.services_ready_ns() else { return };
        // If the world waits for the SDK's "setup complete" line, the first line from any program counts.
        let setup = match self.setup_timeout_ns() {
            Some(_) => self.nodes.iter().filter_map(|session| session.conversation.setup_ns()).min(),
            None => Some(last),
        };
        if let Some(setup) = setup {
            let at = last.max(setup).saturating_add(self.distance_ns());
            self.course.stage = Stage::Ready { at };
        }
    }

    /// Returns the vtime at which the last node became ready, or `None` if some node is not ready.
    fn services_ready_ns(&self) -> Option<u64> {
        let ready = self.nodes.iter().map(|session| session.conversation.ready_ns());
        ready.collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().max())
    }

    /// Returns the time limit for the SDK's "setup complete" line, in nanoseconds of vtime. The limit starts when all
    /// services are ready. Returns `None` if the world does not wait for this line.
    fn setup_timeout_ns(&self) -> Option<u64> {
        self.nodes.first()?.conversation.script().sdk.as_ref()?.setup_timeout_ns
    }

    /// Returns the vtime at which the world fails if its setup is still not complete.
    fn setup_limit_ns(&self) -> Option<u64> {
        Some(self.services_ready_ns()?.saturating_add(self.setup_timeout_ns()?))
    }

    /// Performs all due actions. Each may lead to the next stage.
    pub(super) fn direct(&mut self) {
        if self.is_broken() {
            return;
        }
        loop {
            let before = self.course.stage;
            self.direct_once();
            if self.course.stage == before {
                return;
            }
        }
    }

    fn direct_once(&mut self) {
        // The world's vtime decides whether an action is due, not a node's vtime. The world stops at the vtime of the
        // action, but a single node may already be far past it.
        let now = self.world.vtime();
        match self.course.stage {
            Stage::Booting => {
                if self.setup_limit_ns().is_some_and(|at| at <= now)
                    && let Some(first) = self.nodes.first_mut()
                {
                    first.conversation.setup_took_too_long(now);
                }
            }
            Stage::Done { .. } => {}
            Stage::Ready { at } => {
                if at <= now
                    && let Some(seed) = self.course.begin_with.take()
                {
                    self.course.stage = match self.begin_here(seed) {
                        Ok(()) => Stage::Running { root: at },
                        Err(why) => {
                            self.finding_at(0, builtin::NOT_READY, &why);
                            Stage::Done { root: at }
                        }
                    };
                }
            }
            Stage::Running { root } => {
                self.look_at_command();
                self.hear_words(now);
                self.look_whether_done(root, now);
                if self.end_ns().is_some_and(|at| at <= now) {
                    self.end_faults();
                    self.course.restarts.clear();
                    self.stop_drivers(now);
                    self.stop_commands(now);
                    let until = self.calm_limit_ns(now);
                    self.course.stage = Stage::Stopping { root, until };
                } else {
                    self.restart_dependents(now);
                    self.do_commands(now);
                }
            }
            Stage::Stopping { root, until } => {
                self.go_on_with_commands(now);
                let end_ns = self.end_ns().unwrap_or(root);
                let calm = self.nodes.iter_mut().fold(true, |all, session| {
                    // This also keeps a node that comes back later from starting drivers.
                    session.conversation.end(end_ns);
                    all & session.conversation.is_calm()
                });
                if calm {
                    // The pause begins when the last node came to rest. `now` would depend on where the caller stops.
                    let last = self.nodes.iter().map(|session| session.conversation.rest_ns()).max();
                    let at = last.unwrap_or(now).saturating_add(self.distance_ns());
                    self.course.stage = Stage::Calm { root, at: at.saturating_add(self.settle_ns()) };
                } else if until <= now {
                    self.report_nodes_not_calm(until.saturating_sub(end_ns));
                    self.course.stage = Stage::Done { root };
                }
            }
            Stage::Calm { root, at } => {
                self.go_on_with_commands(now);
                if at <= now {
                    self.checks_begun = Some((self.icount(), now));
                    self.start_last_commands();
                    self.course.stage = Stage::Last { root };
                }
            }
            Stage::Last { root } => {
                self.go_on_with_commands(now);
                match self.last_commands_are_over(now) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.course.stage = Stage::Checking { root, next: 0, at: now, started: false };
                    }
                    Err(why) => self.give_up(&why),
                }
            }
            Stage::Checking { root, next, at, started: false } => match self.checks.get(next) {
                None => self.course.stage = Stage::Done { root },
                Some(check) if at <= now => {
                    match check.clone() {
                        WorldCheck::Agent(node, number) => {
                            self.nodes[node].conversation.check(number, now);
                        }
                        WorldCheck::Host(check) => self.start_talk(&check),
                    }
                    self.course.stage = Stage::Checking { root, next, at, started: true };
                }
                Some(_) => {}
            },
            Stage::Checking { root, next, at, started: true } => {
                if let Some(end_ns) = self.end_of_check(next, now) {
                    let at = end_ns.saturating_add(self.distance_ns());
                    self.course.stage = Stage::Checking { root, next: next + 1, at, started: false };
                } else if self.hangs_ns(next, at).is_some_and(|limit_ns| limit_ns <= now) {
                    self.report_hanging_check(next, now);
                    self.course.stage = Stage::Done { root };
                }
            }
        }
    }

    /// Returns the vtime at which nodes count as failed if they are not calm after the end of the workload. `now` is
    /// the vtime of this end.
    fn calm_limit_ns(&self, now: u64) -> u64 {
        let conversations = || self.nodes.iter().map(|session| &session.conversation);
        let waits = |one: &Conversation| one.phase() < Phase::Ready || one.is_restarting();
        // Before a restart, a service gets time to exit. Everett kills the service if it still runs at the end of this
        // time. The limit starts after the latest of these kill times.
        let killed = conversations().flat_map(Conversation::kills_ns).max();
        let limit = if conversations().any(waits) { CALM_NS_MAX } else { STOP_NS_MAX };
        killed.unwrap_or(now).max(now).saturating_add(limit)
    }

    /// Sets the end of the workload if the workload ends by itself and is done.
    fn look_whether_done(&mut self, root: u64, now: u64) {
        if self.until_done
            && let Some(at) = self.done_ns(now)
        {
            self.until_done = false;
            let most = self.course.duration_ns.unwrap_or(u64::MAX);
            self.course.duration_ns = Some(at.saturating_sub(root).min(most));
        }
    }

    /// Returns the vtime at which the workload was done, in nanoseconds, or `None` if it is not.
    ///
    /// The workload is done when no fault will start or end, no service is restarting, and all drivers have ended. If
    /// the world has a test template, each of its driver commands and `anytime_` commands must also have ended once. If
    /// it has `first_` commands, one of them must have ended.
    ///
    /// The result does not depend on how late Everett calls this function. Drivers and restarts record the vtimes at
    /// which they end. If a fault or command ends last, the world stops at this end, and `now` is its vtime.
    fn done_ns(&mut self, now: u64) -> Option<u64> {
        if self.next_fault_ns().is_some() || self.next_restart_ns().is_some() || !self.template_is_done() {
            return None;
        }
        let distance_ns = self.distance_ns();
        let nodes = self.nodes.iter().zip(self.world.nodes());
        // Only nodes with power must finish. Other nodes stay off, because no fault is left that would switch them on.
        let on = nodes.filter(|(_, node)| node.is_on()).map(|(session, _)| &session.conversation);
        let is_done = |one: &Conversation| one.has_driven() && !one.is_restarting();
        on.map(|conversation| is_done(conversation).then(|| conversation.rest_ns()))
            .try_fold(now, |last, rest| Some(last.max(rest?.saturating_add(distance_ns))))
    }

    fn go_on_with_commands(&mut self, now: u64) {
        self.hear_words(now);
        self.do_commands(now);
    }

    /// Returns the vtime at which a started check ended, if it has ended.
    fn end_of_check(&mut self, number: usize, now: u64) -> Option<u64> {
        match self.checks.get(number).cloned() {
            Some(WorldCheck::Host(check)) => self.go_on_talking(&check).then_some(now),
            Some(WorldCheck::Agent(node, _)) => {
                let conversation = &self.nodes[node].conversation;
                (!conversation.is_checking()).then(|| conversation.rest_ns())
            }
            None => Some(now),
        }
    }

    /// Returns the vtime at which a check on a node counts as hanging. The check started at `begun_ns`. By then the
    /// agent should have killed the check and reported it.
    fn hangs_ns(&self, number: usize, begun_ns: u64) -> Option<u64> {
        let Some(WorldCheck::Agent(node, number)) = self.checks.get(number) else { return None };
        let limit_ns = self.nodes.get(*node)?.conversation.check_limit_ns(*number)?;
        Some(begun_ns.saturating_add(limit_ns).saturating_add(ANSWER_NS_MAX))
    }

    fn report_hanging_check(&mut self, number: usize, now: u64) {
        let Some(WorldCheck::Agent(node, number)) = self.checks.get(number).cloned() else { return };
        let conversation = &mut self.nodes[node].conversation;
        conversation.check_hangs(number, ANSWER_NS_MAX, now);
        self.reporting.of_host(conversation.take_events());
    }

    /// Reports a finding, with the reason, for each node that was not at rest within `limit_ns` of vtime.
    fn report_nodes_not_calm(&mut self, limit_ns: u64) {
        let vtime_ns = self.vtime();
        for session in &mut self.nodes {
            if session.conversation.is_calm() {
                continue;
            }
            let phase = session.conversation.phase();
            let node = &session.conversation.script().node;
            let back = if phase < Phase::Ready { "is not back" } else { "is not calm" };
            let (limit, waits) = (show_duration_ns(limit_ns), session.conversation.waits_for());
            let text = format!("node {node} {back} {limit} after the workload ended: {waits}");
            session.conversation.noticed(vtime_ns, builtin::NOT_CALM, &text);
            self.reporting.of_host(session.conversation.take_events());
        }
    }

    /// Starts the command of [`Timeline::command_when_ready`] on the first node. Powers this node off when the command
    /// has ended.
    fn look_at_command(&mut self) {
        let Some(first) = self.nodes.first_mut() else { return };
        let node = self.world.node_mut(0);
        if first.conversation.phase() != Phase::Running {
            return;
        }
        if let Some(mut exec) = self.course.command.take() {
            let script = first.conversation.script();
            exec.argv = [script.prefix.clone(), exec.argv].concat();
            if script.sdk.is_some() {
                exec.env.extend(sdk::variables(COMMAND));
            }
            first.conversation.command(COMMAND, exec, node.vtime());
        }
        if first.conversation.command_exit().is_some() && !first.conversation.is_powering_off() {
            first.conversation.power_off(node.vtime());
        }
    }

    fn stop_drivers(&mut self, now: u64) {
        self.reporting.of_host([Event { vtime_ns: now, node: String::new(), what: What::End }]);
        for session in &mut self.nodes {
            session.conversation.start_no_more_drivers();
            session.conversation.end(now);
        }
    }
}
