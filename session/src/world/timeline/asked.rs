//! Requests of a caller outside the timeline to the agents (Everett's program in each guest), faults that a caller injects,
//! and an early end of faults.
//!
//! After the first such request, the timeline is no recorded one any more. Callers make the requests in a timeline that
//! they throw away.

use everett_explorer::plan::{self, Names, Plan, PlanEntry, PlanErrors};
use everett_protocol::{Exec, Operation};
use everett_vmm::machine::{Stop, Until};

use super::director::Stage;
use super::{Faults, Phase, Timeline};
use crate::world::conversation::{Answer, CannotAsk};

/// Vtime within which injected entries follow those that begin, in nanoseconds.
const TOGETHER_NS: u64 = 1_000;

/// Reason why a fault cannot be injected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotInject {
    /// The timeline did not begin under a fault plan.
    #[error("the timeline has no fault plan")]
    NoPlan,
    /// The workload has not begun or has ended, so no fault begins any more.
    #[error("faults begin only while the workload runs, and it has ended")]
    NoWorkload,
    /// The fault is invalid, or contradicts the plan.
    #[error("{0}")]
    Invalid(String),
    /// The fault would change what the plan has done already.
    #[error("the fault would end faults that have ended already")]
    Past,
}

/// Returns the first problem of a plan. The number of its line says nothing to a caller who gave one fault.
fn problem(errors: &PlanErrors) -> String {
    let Some(first) = errors.errors.first() else { return errors.to_string() };
    match first.field.is_empty() {
        true => first.what.to_string(),
        false => format!("{}: {}", first.field, first.what),
    }
}

impl Timeline {
    /// Sends a request to the agent of a node, and returns the number of the request. [`Timeline::take_answers`] has the
    /// answers.
    ///
    /// # Errors
    /// Returns an error if the node is off or paused, if its agent is not up, or if the request is invalid.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn ask_agent(&mut self, node: usize, op: Operation) -> Result<u64, CannotAsk> {
        let place = self.world.node_mut(node);
        if !place.is_on() {
            return Err(CannotAsk::Off);
        }
        if place.is_paused() {
            return Err(CannotAsk::Paused);
        }
        let session = &mut self.nodes[node];
        let request = session.conversation.ask(op)?;
        session.speak(place);
        Ok(request)
    }

    /// Takes the answers of a node's agent since the last call.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn take_answers(&mut self, node: usize) -> Vec<Answer> {
        self.nodes[node].conversation.take_answers()
    }

    /// Like [`Timeline::run_node`], but the run also stops when an agent has answered, so that few answers wait.
    pub fn run_to_answer(&mut self, until: &Until) -> (Option<usize>, Stop) {
        self.run_stopped(0, until, &|timeline| {
            timeline.nodes.iter().any(|session| session.conversation.has_answers())
        })
    }

    /// Returns true if the agent of a node can be asked, or will be up without any further request.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn is_agent_up(&self, node: usize) -> bool {
        self.nodes[node].conversation.is_agent_up()
    }

    /// Returns a command as the node's own programs run: with the environment, the user and the rights of the container if
    /// the node has a container image. `user` replaces the user.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn command_on(&self, node: usize, argv: Vec<String>, user: Option<&str>) -> Exec {
        let mut prefix = self.nodes[node].conversation.script().prefix.clone();
        if prefix.is_empty() {
            return Exec { user: user.map(str::to_owned), ..Exec::new(argv) };
        }
        // The last word of the prefix ends its options.
        let end = prefix.pop();
        prefix.extend(user.iter().flat_map(|user| ["--user".to_owned(), (*user).to_owned()]));
        Exec::new(prefix.into_iter().chain(end).chain(argv).collect())
    }

    /// Ends all faults for good, as the end of a workload does. Nodes without power start again. Nothing of the plan begins
    /// later.
    pub fn calm(&mut self) {
        self.end_faults();
        let Some(faults) = self.faults.take() else { return };
        let since_root_ns = self.vtime().saturating_sub(self.course.root_ns().unwrap_or(0));
        let (plan, cursor) = faults.plan().healed_at(since_root_ns);
        let faults = faults.with_plan(plan);
        if let Some(progress) = &mut self.course.faults {
            progress.cursor = cursor;
            progress.digest = faults.digest();
        }
        self.faults = Some(faults);
    }

    /// Returns the fault plan of the timeline.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.faults.as_ref().map(Faults::plan)
    }

    /// Adds an entry to the fault plan. The entry begins when the timeline goes on from the present vtime: its own `at_ns`
    /// is replaced. Entries take effect in the order in which they are injected. If others begin at the same vtime, an entry
    /// can therefore begin some nanoseconds later.
    /// Returns the entry's number in the plan, by which events name it.
    ///
    /// # Errors
    /// Returns an error if the timeline has no fault plan, if the workload does not run, or if the entry is invalid or
    /// contradicts the plan.
    pub fn inject(&mut self, entry: &PlanEntry, names: &Names) -> Result<u32, CannotInject> {
        let (Some(faults), Some(progress)) = (&self.faults, &self.course.faults) else {
            return Err(CannotInject::NoPlan);
        };
        if !matches!(self.course.stage, Stage::Running { .. }) || self.phase() == Phase::Broken {
            return Err(CannotInject::NoWorkload);
        }
        let root_ns = self.course.root_ns().ok_or(CannotInject::NoWorkload)?;
        let now_ns = self.vtime().saturating_sub(root_ns);
        // A heal comes before the faults that start at its vtime, so a heal that is injected after them is later.
        let soon = now_ns..=now_ns.saturating_add(TOGETHER_NS);
        let last = faults.plan().entries().iter().rev().find(|entry| soon.contains(&entry.at_ns));
        let later = u64::from(last.is_some() && !matches!(entry.what, plan::What::Fault(_)));
        let first_ns = last.map_or(now_ns, |last| last.at_ns).saturating_add(later);
        for at_ns in [first_ns, first_ns.saturating_add(1)] {
            let mut entries = faults.plan().entries().to_vec();
            // The new entry follows those of the same vtime.
            let number = entries.partition_point(|other| other.at_ns <= at_ns);
            entries.insert(number, PlanEntry { at_ns, ..entry.clone() });
            let plan = Plan::new(entries, names).map_err(|errors| CannotInject::Invalid(problem(&errors)))?;
            let new = faults.with_plan(plan);
            if faults.agrees_with(&new, &progress.cursor) {
                let digest = new.digest();
                self.faults = Some(new);
                if let Some(progress) = &mut self.course.faults {
                    progress.digest = digest;
                }
                return Ok(u32::try_from(number).unwrap_or(u32::MAX));
            }
        }
        Err(CannotInject::Past)
    }
}
