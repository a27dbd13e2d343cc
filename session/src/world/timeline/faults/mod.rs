//! Execution of a fault plan: starts each fault when all nodes have reached its vtime, and ends it after its duration.
//!
//! Everett applies faults of the wire, disks, power, clock drift and CPUs without the guest. The agent of a node
//! (Everett's program in the guest) steps clocks, changes scheduling priorities, reseeds the kernel's random number
//! generator, restarts services, and runs commands. A fault that needs an agent is not applied if the agent is not up
//! (no power, or still booting).
//!
//! Also, no fault is applied while the `first_` command of a test template runs, i.e. the command that runs before all
//! others, or in a quiet period, for which a program asked through the SDK ([`super::quiet`]). An event reports each
//! fault that is not applied.
//!
//! - [`disk_copy`]: copies of disks as a power loss would leave them
//! - `effects`: changes of the world when a fault starts and ends

pub mod disk_copy;
mod effects;

use std::fmt;
use std::sync::Arc;

use everett_explorer::plan::{Cursor, Event as Due, Events, Happening, Plan};
use everett_fault::{Fault, Restart};
use everett_input::causes::with_causes;
use everett_streams::{BootSeed, Lineage, Owner, Streams};
use everett_vmm::machine::Machine;
use serde::{Deserialize, Serialize};

use super::Timeline;
use super::director::Stage;
use crate::machines::EngineOptions;
use crate::world::event::{Event, What};
use crate::world::timeline::restart_point::RestartPoint;

const NS_PER_S: u64 = 1_000_000_000;

/// Source of the machines with which switched-off nodes start again.
pub trait Restarts: Send + Sync {
    /// Returns the restart point of a node: a stored machine whose kernel and agent are up, but no service.
    ///
    /// # Errors
    /// Returns a message of one line if there is none.
    fn warm(&self, node: usize) -> Result<&RestartPoint, String>;
    /// Makes a machine that has executed nothing yet, for a node that is switched on when the world is at vtime
    /// `world_ns`. The machine draws its random numbers from `boot_seed`.
    ///
    /// # Errors
    /// Returns a message of one line if the machine cannot be created.
    fn cold(
        &self,
        node: usize,
        boot_seed: BootSeed,
        world_ns: u64,
        options: &EngineOptions,
    ) -> Result<Machine, String>;
}

/// Fault plan of a timeline, and the sources from which its nodes restart.
#[derive(Clone)]
pub struct Faults {
    plan: Arc<Plan>,
    /// Lines of the plan in its canonical form.
    lines: Arc<[String]>,
    events: Arc<Events>,
    restarts: Arc<dyn Restarts>,
    options: EngineOptions,
}

impl Faults {
    /// Creates the faults of a plan. Restarted nodes get default engine options.
    #[must_use]
    pub fn new(plan: Plan, restarts: Arc<dyn Restarts>) -> Faults {
        let lines = plan.write().lines().map(str::to_owned).collect();
        let options = EngineOptions::default();
        Faults { events: Arc::new(plan.events()), plan: Arc::new(plan), lines, restarts, options }
    }

    /// Returns these faults with `options` as the engine options of restarted nodes.
    #[must_use]
    pub fn on(self, options: EngineOptions) -> Faults {
        Faults { options, ..self }
    }

    /// Returns another plan with the same sources of restarts.
    #[must_use]
    pub(super) fn with_plan(&self, plan: Plan) -> Faults {
        Faults::new(plan, Arc::clone(&self.restarts)).on(self.options)
    }

    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns true if both plans are equal up to `cursor`, the place that this timeline has reached in its plan.
    pub(super) fn agrees_with(&self, other: &Faults, cursor: &Cursor) -> bool {
        self.events.agree_up_to(cursor, &other.events)
    }

    /// Returns the BLAKE3 hash of the plan's canonical form.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        *blake3::hash(self.plan.write().as_bytes()).as_bytes()
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({} entries)", self.plan.entries().len())
    }
}

/// Error for a timeline that should continue under another fault plan than the one under which it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the timeline has begun under another fault plan, or under none")]
pub struct OtherPlan;

/// Progress of a fault plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FaultProgress {
    /// Digest of the plan.
    pub digest: [u8; 32],
    pub cursor: Cursor,
    /// Active faults with the numbers of their plan entries, in order of their starts.
    pub active: Vec<(u32, Fault)>,
    pub streams: Streams,
}

impl FaultProgress {
    pub(super) fn new(lineage: &Lineage, digest: [u8; 32]) -> FaultProgress {
        let streams = Streams::new(lineage, Owner::Faults);
        FaultProgress { digest, cursor: Cursor::default(), active: Vec::new(), streams }
    }
}

/// Converts a node's index to the type of the index in a [`Purpose`](everett_streams::Purpose). A world has at most 64
/// nodes.
fn stream_number(node: usize) -> u16 {
    u16::try_from(node).unwrap_or(u16::MAX)
}

impl Timeline {
    /// Sets the fault plan. Call this before the timeline begins. A continued timeline needs the same plan again.
    ///
    /// # Errors
    /// Returns an error if the timeline has begun under another plan.
    pub fn apply_faults(&mut self, faults: Option<Faults>) -> Result<(), OtherPlan> {
        let digest = faults.as_ref().map(Faults::digest);
        let begun = self.course.faults.as_ref().map(|progress| progress.digest);
        if self.course.begun.is_some() && begun != digest {
            return Err(OtherPlan);
        }
        self.faults = faults;
        Ok(())
    }

    /// Returns the vtime of the plan's next event, in nanoseconds.
    pub(super) fn next_fault_ns(&self) -> Option<u64> {
        let (faults, root) = (self.faults.as_ref()?, self.course.root_ns()?);
        let progress = self.course.faults.as_ref()?;
        Some(root.saturating_add(faults.events.next(&progress.cursor)?.at_ns))
    }

    /// Starts and ends the faults that are due. Does nothing after the end of the workload.
    pub(super) fn do_faults(&mut self) {
        if !matches!(self.course.stage, Stage::Running { .. }) {
            return;
        }
        self.begin_quiet();
        let Some(faults) = self.faults.clone() else { return };
        let now = self.world.vtime();
        let Some(since_root) = self.course.root_ns().and_then(|root| now.checked_sub(root)) else { return };
        while let Some(due) = self
            .course
            .faults
            .as_mut()
            .and_then(|progress| faults.events.due(&mut progress.cursor, since_root))
        {
            self.do_fault(&faults, due);
        }
    }

    fn do_fault(&mut self, faults: &Faults, due: &Due) {
        match &due.what {
            Happening::Start(fault) => {
                let line = faults.lines.get(due.id as usize).cloned().unwrap_or_default();
                self.tell(What::Fault { id: due.id, line });
                let started = match self.faults_allowed() {
                    true if self.is_quiet() => Err("a program asked for a time without faults".to_owned()),
                    true => self.start(faults, due.id, fault),
                    false => Err("the first command still runs".to_owned()),
                };
                match started {
                    Ok(effect) => {
                        if let Some(text) = effect {
                            self.tell(What::Effect { text });
                        }
                        // A power loss without a restart ends only with the workload (`end_faults`).
                        if fault.kind().lasts()
                            && !fault.is_for_good()
                            && let Some(progress) = &mut self.course.faults
                        {
                            progress.active.push((due.id, fault.clone()));
                        }
                    }
                    Err(why) => self.tell(What::Effect { text: format!("not done: {why}") }),
                }
            }
            Happening::End => self.end_fault(faults, due.id),
            Happening::HealAll => self.heal(faults),
        }
    }

    /// Ends all active faults.
    pub(super) fn heal(&mut self, faults: &Faults) {
        let ids: Vec<u32> =
            self.course.faults.iter().flat_map(|progress| &progress.active).map(|&(id, _)| id).collect();
        for id in ids {
            self.end_fault(faults, id);
        }
    }

    /// Ends all faults at the end of the workload and switches all nodes on.
    pub(super) fn end_faults(&mut self) {
        let Some(faults) = self.faults.take() else { return };
        self.heal(&faults);
        // The checks need all nodes, even nodes that the plan never switches on.
        for node in 0..self.nodes.len() {
            if !self.world.nodes()[node].is_on() && self.nodes[node].course.switched_off {
                self.switch_on(&faults, node, Restart::Warm);
            }
        }
        self.faults = Some(faults);
    }

    fn end_fault(&mut self, faults: &Faults, id: u32) {
        let Some(progress) = &mut self.course.faults else { return };
        let Some(place) = progress.active.iter().position(|&(active, _)| active == id) else { return };
        let (_, fault) = progress.active.remove(place);
        self.tell(What::Healed { id });
        self.undo(faults, id, &fault);
    }

    /// Switches off a node after a power loss or before a reset.
    fn switch_off(&mut self, node: usize) {
        // Reads the output that the node wrote before.
        self.listen();
        self.world.power_off(node);
        let now = self.world.vtime();
        self.nodes[node].restart(None, now);
        self.nodes[node].course.switched_off = true;
        self.lose_commands(node);
    }

    /// Switches a node on. Its disks keep their contents.
    fn switch_on(&mut self, faults: &Faults, node: usize, restart: Restart) {
        let now = self.world.vtime();
        let Some(progress) = &mut self.course.faults else { return };
        let boot_seed = progress.streams.next_boot_seed(stream_number(node));
        let place = self.world.node_mut(node);
        let machine = place.machine_mut();
        let disks = machine.disks().to_vec();
        let console = machine.output().take_console();
        let conversation = &self.nodes[node].conversation;
        let started = match restart {
            Restart::Warm => faults.restarts.warm(node).and_then(|point| {
                conversation.check_restart(&point.conversation).map_err(|error| with_causes(&error))?;
                machine.restore(&point.machine).map_err(|error| with_causes(&error))?;
                machine.restart_streams(&Lineage::boot(boot_seed));
                machine.shift_clock(now / NS_PER_S);
                Ok(Some(&point.conversation))
            }),
            Restart::Cold => faults.restarts.cold(node, boot_seed, now, &faults.options).map(|cold| {
                place.replace(cold);
                None
            }),
        };
        let put = |timeline: &mut Timeline| {
            timeline.machine_mut(node).put_disks(disks).map_err(|e| with_causes(&e))
        };
        match started.and_then(|mounted| put(self).map(|()| mounted)) {
            Ok(mounted) => {
                self.nodes[node].restart(mounted, now);
                self.world.power_on(node);
                self.nodes[node].limit_boot(now);
                self.disturb_again(node);
                // Keeps console output from before the restart that was not shown yet.
                self.machine_mut(node).output().console_again(&console);
            }
            Err(error) => {
                let text = format!("it cannot start again: {error}");
                self.nodes[node].conversation.unusable(now, &text);
            }
        }
    }

    /// Applies the active faults of CPU and clock to a node's new machine.
    fn disturb_again(&mut self, node: usize) {
        let active = self.course.faults.iter().flat_map(|progress| &progress.active);
        let of_node = active.filter_map(|(_, fault)| match fault {
            Fault::Node { node: name, fault } if self.number_of(name) == Some(node) => Some(fault.clone()),
            Fault::Node { .. }
            | Fault::Network(_)
            | Fault::Disk { .. }
            | Fault::Medium { .. }
            | Fault::Guest { .. } => None,
        });
        for fault in of_node.collect::<Vec<_>>() {
            self.disturb_cpu(node, &fault);
        }
    }

    fn number_of(&self, name: &str) -> Option<usize> {
        self.world.nodes().iter().position(|node| node.machine().name() == name)
    }

    pub(super) fn tell(&mut self, what: What) {
        let vtime_ns = self.world.vtime();
        self.reporting.of_host([Event { vtime_ns, node: String::new(), what }]);
    }
}
