//! Observer of a branch: coverage, properties, histories and evidence.
//!
//! **Invariant.** The result for a branch is a function of the inherited state ([`Inherited`]) and the branch's events.
//! Every worker stops the branch at the same vtimes and takes the events there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use everett_explorer::coverage::{
    Delta, DiskEvent, Observed, Observer, ObserverState, OtherWorld, Outcome, ProcessChange, What as Shown,
};
use everett_explorer::plan::{self, Plan};
use everett_explorer::probe::ProbeState;
use everett_explorer::property::limits::RECORD_LINES_MAX;
use everett_explorer::property::{Event as Seen, Judge, JudgeState, PropertyHit, What as Saw};
use everett_explorer::run::Evidence;
use everett_explorer::run::limits::EVIDENCE_LINE_BYTES_MAX;
use everett_explorer::sdk;
use everett_fault::{DiskFault, Fault, FaultKind, Group, MediumFault, NodeFault};
use everett_input::units::Vtime;
use everett_linearizability::HistoryLine;
use everett_vmm::wire::log::FrameStep;
use serde_json::Value;

use super::abstractions::Abstractions;
use super::history_chain::{HistoryChain, HistoryWriter};
use super::wire::arrives;
use crate::output::show;
use crate::world::event::{Event, StreamName, What, merged};
use crate::world::timeline::Timeline;

/// Maximum number of lines in the evidence of a hit (a violation of a property). If the hit is a log record of several
/// lines, the evidence can have more lines.
const LINES_MAX: usize = 60;
/// Maximum number of messages in the evidence of a hit.
const PACKETS_MAX: usize = 40;
/// Maximum number of faults in the evidence of a hit.
const FAULTS_MAX: usize = 60;

/// Observer state that a branch inherits from its parent moment.
#[derive(Debug, Clone)]
pub struct Inherited {
    /// State of coverage.
    pub observer: ObserverState,
    /// State of the judge, which checks the properties.
    pub judge: JudgeState,
    /// State of the world's probes.
    pub probes: ProbeState,
    /// Lines so far that drivers and checks wrote to histories, the records of operations and their results.
    pub chain: HistoryChain,
    /// Vtimes of the last faults that began, each with the fault's number in the plan.
    begun: VecDeque<(u64, u32)>,
    /// Active faults with an end, by plan number: kind, and indices of the affected nodes.
    lasting: BTreeMap<u32, (String, Vec<u16>)>,
    /// Nodes that stay without power until the end of the workload.
    off: BTreeSet<u16>,
}

impl Inherited {
    /// Returns the state before any event.
    #[must_use]
    pub fn new(abstractions: &Abstractions) -> Inherited {
        Inherited {
            observer: ObserverState::new(&abstractions.abstraction),
            judge: JudgeState::default(),
            probes: ProbeState::default(),
            chain: HistoryChain::default(),
            begun: VecDeque::new(),
            lasting: BTreeMap::new(),
            off: BTreeSet::new(),
        }
    }
}

/// A hit with its evidence.
#[derive(Debug, Clone)]
pub struct HitWithEvidence {
    /// Violation of a property.
    pub hit: PropertyHit,
    /// Lines, messages and faults before the hit.
    pub evidence: Evidence,
}

/// Results of observing a branch.
#[derive(Debug)]
pub struct Testimony {
    /// Coverage points of the branch.
    pub delta: Delta,
    /// Hits on the branch, with their evidence.
    pub found: Vec<HitWithEvidence>,
    /// Names of `sometimes` properties that held.
    pub sometimes: Vec<String>,
    /// Number of faults that began.
    pub faults: u64,
    /// Number of power losses in which a disk lost unflushed data.
    pub losses: u64,
    /// Number of messages that arrived before the end of all faults.
    pub messages: u64,
    /// Number of bytes that programs and kernels printed.
    pub log_bytes: u64,
    /// True if programs and kernels printed more bytes than the world file's bound, so that coverage did not see all
    /// lines.
    pub log_cut: bool,
}

/// Event or message that a witness takes from a timeline.
#[derive(Debug, Clone, Copy)]
pub enum Observation<'o> {
    /// An event.
    Event(&'o Event),
    /// Fate of a message between two nodes.
    Message(&'o FrameStep),
}

/// Observer of one branch.
pub struct Witness<'s> {
    abstractions: &'s Abstractions,
    plan: &'s Plan,
    observer: Observer<'s>,
    judge: Judge<'s>,
    probes: ProbeState,
    history: HistoryWriter,
    lasting: BTreeMap<u32, (String, Vec<u16>)>,
    off: BTreeSet<u16>,
    found: Vec<HitWithEvidence>,
    /// Number of the judge's hits that are already in `found`.
    reported: usize,
    recent: VecDeque<Event>,
    packets: VecDeque<FrameStep>,
    begun: VecDeque<(u64, u32)>,
    faults: u64,
    losses: u64,
    messages: u64,
    is_calm: bool,
    log_bytes: u64,
    log_cut: bool,
}

impl<'s> Witness<'s> {
    /// Creates the observer of a branch that inherits `memory` and runs under `plan`.
    ///
    /// # Errors
    /// Returns an error if `memory` belongs to another world.
    pub fn new(
        abstractions: &'s Abstractions,
        plan: &'s Plan,
        memory: &Inherited,
    ) -> Result<Witness<'s>, OtherWorld> {
        Ok(Witness {
            abstractions,
            plan,
            observer: Observer::start(&abstractions.abstraction, memory.observer.clone())?,
            judge: Judge::start(&abstractions.properties, memory.judge.clone()),
            probes: memory.probes.clone(),
            history: HistoryWriter::after(&memory.chain),
            lasting: memory.lasting.clone(),
            off: memory.off.clone(),
            found: Vec::new(),
            reported: 0,
            recent: VecDeque::new(),
            packets: VecDeque::new(),
            begun: memory.begun.clone(),
            faults: 0,
            losses: 0,
            messages: 0,
            is_calm: false,
            log_bytes: 0,
            log_cut: false,
        })
    }

    /// Takes the events and the outcomes of frames that the timeline has recorded since its last stop, and the events of
    /// its probes, `probed`. Also passes each event and message to `also`.
    pub fn take(
        &mut self,
        timeline: &mut Timeline,
        probed: Vec<Event>,
        also: &mut dyn FnMut(Observation<'_>),
    ) {
        let events = merged(timeline.take_events(), probed);
        let nodes = timeline.world().nodes().len();
        for node in 0..nodes {
            // The events already contain the lines of the console, so its bytes are dropped.
            timeline.machine_mut(node).output().take_console();
        }
        let steps = timeline.world_mut().wire().take_steps();
        let mut steps = steps.into_iter().peekable();
        for event in events {
            while let Some(step) = steps.next_if(|step| step.vtime < event.vtime_ns) {
                self.step(step, nodes, also);
            }
            also(Observation::Event(&event));
            self.event(event);
        }
        steps.for_each(|step| self.step(step, nodes, also));
    }

    /// Returns the branch's fault plan.
    #[must_use]
    pub fn plan(&self) -> &'s Plan {
        self.plan
    }

    /// Observes an event.
    pub fn hear(&mut self, event: &Event) {
        self.event(event.clone());
    }

    /// Records that no more faults will come.
    pub fn calm(&mut self, vtime_ns: u64) {
        self.is_calm = true;
        self.judge.calm(vtime_ns);
        self.hits();
    }

    /// Records the end of the timeline, after its checks.
    pub fn over(&mut self, vtime_ns: u64) {
        self.judge.end(vtime_ns);
        self.hits();
    }

    /// Returns the hits on the branch so far.
    #[must_use]
    pub fn found(&self) -> &[HitWithEvidence] {
        &self.found
    }

    /// Returns the state of coverage so far.
    #[must_use]
    pub fn state(&self) -> &ObserverState {
        self.observer.state()
    }

    /// Returns the history lines so far.
    pub fn chain(&mut self) -> &HistoryChain {
        self.history.chain()
    }

    /// Returns true if the event is a violation that does not become a finding. Either the world file ignores the
    /// property, or a fault explains the violation.
    #[must_use]
    pub fn excuses(&self, event: &Event) -> bool {
        let What::Finding { property, .. } = &event.what else { return false };
        self.judge.excuses(self.abstractions.node(&event.node), property)
    }

    /// Records that a history violates `property`. `cause` tells different violations apart.
    pub fn history_hit(&mut self, vtime_ns: u64, property: &str, cause: &str, text: &str) {
        self.judge.observe(&Seen { vtime_ns, node: None, what: Saw::History { property, cause, text } });
        self.hits();
    }

    /// Returns the state that a child (a branch that starts here) inherits. Also closes log records of several lines
    /// that are still unfinished.
    pub fn memory(&mut self) -> Inherited {
        self.judge.end_records();
        self.hits();
        Inherited {
            chain: self.chain().clone(),
            observer: self.observer.state().clone(),
            judge: self.judge.state().clone(),
            probes: self.probes.clone(),
            begun: self.begun.clone(),
            lasting: self.lasting.clone(),
            off: self.off.clone(),
        }
    }

    /// Ends the observation and returns the results.
    #[must_use]
    pub fn finish(mut self) -> Testimony {
        self.judge.end_records();
        self.hits();
        let (delta, _) = self.observer.finish();
        let (_, state) = self.judge.finish();
        Testimony {
            delta,
            found: self.found,
            sometimes: state.seen().map(str::to_owned).collect(),
            faults: self.faults,
            losses: self.losses,
            messages: self.messages,
            log_bytes: self.log_bytes,
            log_cut: self.log_cut,
        }
    }

    fn step(&mut self, step: FrameStep, nodes: usize, also: &mut dyn FnMut(Observation<'_>)) {
        if let Some(observed) = self.abstractions.ports.observed(&step, nodes) {
            also(Observation::Message(&step));
            self.observer.observe(&observed);
            self.messages += u64::from(!self.is_calm && arrives(step.kind));
            if self.packets.len() >= PACKETS_MAX {
                self.packets.pop_front();
            }
            self.packets.push_back(step);
        }
    }

    fn event(&mut self, event: Event) {
        let node = self.abstractions.node(&event.node);
        let vtime_ns = event.vtime_ns;
        match &event.what {
            What::Line { unit, text, stream, .. } => {
                let what = || Shown::LogLine { unit: unit.clone(), text: text.clone() };
                self.log(vtime_ns, node, text.len(), what);
                let is_error = *stream == StreamName::Stderr;
                self.judge.observe(&Seen { vtime_ns, node, what: Saw::Line { unit, is_error, text } });
            }
            What::Kernel { text } => {
                self.log(vtime_ns, node, text.len(), || Shown::Console(text.clone()));
                self.judge.observe(&Seen { vtime_ns, node, what: Saw::Console(text) });
            }
            What::Finding { property, text } => {
                self.judge.observe(&Seen { vtime_ns, node, what: Saw::Found { property, text } });
            }
            What::Start { unit, .. } => {
                let change = ProcessChange::Started;
                self.show(vtime_ns, node, Shown::Process { unit: unit.clone(), change });
            }
            What::Exit { unit, success, .. } => {
                let change = ProcessChange::Exited { success: *success };
                self.show(vtime_ns, node, Shown::Process { unit: unit.clone(), change });
            }
            What::Loss(loss) => {
                let lost = loss.lost_anything();
                self.losses += u64::from(lost);
                self.show(vtime_ns, node, Shown::Disk(DiskEvent::Loss { lost }));
            }
            What::Fault { id, .. } => self.fault(vtime_ns, *id),
            What::Healed { id } => self.healed(vtime_ns, *id),
            What::History { text, .. } => self.history(vtime_ns, node, &event.node, text),
            What::Sdk { text } => self.sdk(vtime_ns, node, text),
            What::Edge { module, edge } => {
                self.show(vtime_ns, node, Shown::Edge { module: module.clone(), edge: *edge });
                // Does not keep the event for the evidence: a branch can execute thousands of edges (jumps in
                // instrumented programs), which would displace all other events.
                return;
            }
            What::Probe { probe, text, violated, variable } => {
                self.probe(vtime_ns, node, probe, text, *violated, variable.as_ref());
            }
            What::End => self.all_on(vtime_ns),
            What::Hello { .. }
            | What::Mounted
            | What::Ready
            | What::Begin { .. }
            | What::Fork { .. }
            | What::Effect { .. }
            | What::Access { .. } => {}
        }
        if self.recent.len() >= LINES_MAX + RECORD_LINES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(event);
        self.hits();
    }

    fn show(&mut self, vtime_ns: u64, node: Option<u16>, what: Shown) {
        self.observer.observe(&Observed { vtime_ns, node, what });
    }

    /// Counts a line's bytes. Passes the line to coverage only if the lines so far have at most as many bytes as the
    /// world file allows.
    fn log(&mut self, vtime_ns: u64, node: Option<u16>, bytes: usize, what: impl FnOnce() -> Shown) {
        self.log_bytes = self.log_bytes.saturating_add(bytes as u64);
        if self.log_bytes <= self.abstractions.world.explore.log.0 {
            self.show(vtime_ns, node, what());
        } else {
            self.log_cut = true;
        }
    }

    fn sdk(&mut self, vtime_ns: u64, node: Option<u16>, text: &str) {
        match sdk::parse(text) {
            Ok(sdk::SdkLine::Assertion(assertion)) => {
                let outcome = match (assertion.hit, assertion.condition && !assertion.is_violated()) {
                    (false, _) => Outcome::Registered,
                    (true, true) => Outcome::Held,
                    (true, false) => Outcome::Failed,
                };
                let (name, kind) = (assertion.name.clone(), assertion.kind);
                self.show(vtime_ns, node, Shown::Assertion { name, kind, outcome });
                if assertion.is_violated() {
                    let text = assertion.evidence();
                    let what = Saw::Asserted { name: &assertion.name, text: &text };
                    self.judge.observe(&Seen { vtime_ns, node, what });
                }
            }
            Ok(sdk::SdkLine::Guidance(Some(guidance))) => {
                self.show(vtime_ns, node, Shown::Guidance(guidance))
            }
            Ok(sdk::SdkLine::Event { name, details }) => {
                self.log(vtime_ns, node, text.len(), || Shown::Sdk { name, details });
            }
            // Everett reported invalid lines when it received them (`world/conversation/sdk.rs`).
            Ok(_) | Err(_) => {}
        }
    }

    fn probe(
        &mut self,
        vtime_ns: u64,
        node: Option<u16>,
        name: &str,
        text: &str,
        is_violated: bool,
        variable: Option<&String>,
    ) {
        let capture = self.abstractions.world.probes.iter().find(|probe| probe.name == name);
        if let (Some(capture), Some(value)) = (capture.and_then(|probe| probe.state), variable) {
            let what = Shown::Variable { name: name.to_owned(), text: value.clone(), capture };
            self.show(vtime_ns, node, what);
        }
        self.judge.observe(&Seen { vtime_ns, node, what: Saw::Reached { name } });
        if is_violated {
            self.judge.observe(&Seen { vtime_ns, node, what: Saw::Asserted { name, text } });
        }
    }

    fn history(&mut self, vtime_ns: u64, node: Option<u16>, name: &str, text: &str) {
        self.history.push(HistoryLine { vtime_ns, node: name.to_owned(), text: text.to_owned() });
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return };
        let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let process = fields.get("process").and_then(Value::as_u64).unwrap_or(0);
        self.show(vtime_ns, node, Shown::History { process, f: field("f"), kind: field("type") });
    }

    fn fault(&mut self, vtime_ns: u64, id: u32) {
        self.faults += 1;
        if self.begun.len() >= FAULTS_MAX {
            self.begun.pop_front();
        }
        self.begun.push_back((vtime_ns, id));
        let entry = self.plan.entries().get(id as usize);
        let Some((entry, fault)) = entry.and_then(|entry| match &entry.what {
            plan::What::Fault(fault) => Some((entry, fault)),
            plan::What::Heal | plan::What::Quiet => None,
        }) else {
            return;
        };
        let (kind, targets) = (fault.kind().name().to_owned(), self.targets(fault));
        self.show(
            vtime_ns,
            None,
            Shown::Fault { kind: kind.clone(), targets: targets.clone(), begins: true },
        );
        let lasts = fault.kind().lasts() && !fault.is_for_good();
        if lasts {
            self.lasting.insert(id, (kind, targets.clone()));
        } else {
            self.show(vtime_ns, None, Shown::Fault { kind, targets: targets.clone(), begins: false });
        }
        if fault.is_for_good() {
            self.off.extend(targets);
            return;
        }
        let until_ns = || {
            let horizon_ns = self.abstractions.world.explore.horizon.0;
            vtime_ns.saturating_add(entry.for_ns.unwrap_or(horizon_ns))
        };
        let saw = match fault {
            Fault::Node {
                fault: NodeFault::Pause | NodeFault::SlowCpu { .. } | NodeFault::Stalls { .. },
                ..
            } => {
                vec![Saw::StandsStill { until_ns: until_ns() }]
            }
            Fault::Node { fault: NodeFault::Reset { .. }, .. } => vec![Saw::Restarted],
            // After a power loss, the node restarts when the fault ends (`healed`). A clock drift explains no failure.
            Fault::Node { fault: NodeFault::PowerLoss { .. } | NodeFault::ClockDrift { .. }, .. } => {
                Vec::new()
            }
            Fault::Disk { fault, .. } => {
                let mut saw = vec![Saw::StandsStill { until_ns: until_ns() }];
                match fault {
                    DiskFault::Error { .. } => saw.push(Saw::DiskErrors { begins: true }),
                    DiskFault::Latency { .. } | DiskFault::Full => {}
                }
                saw
            }
            Fault::Medium { fault: MediumFault::BitRot { .. }, .. } => vec![Saw::BitRot],
            Fault::Network(_) | Fault::Guest { .. } => Vec::new(),
        };
        for node in targets {
            for what in saw.clone() {
                self.judge.observe(&Seen { vtime_ns, node: Some(node), what });
            }
        }
    }

    fn healed(&mut self, vtime_ns: u64, id: u32) {
        let Some((kind, targets)) = self.lasting.remove(&id) else { return };
        if kind == FaultKind::DiskError.name() {
            let lasts = |node: &u16| {
                self.lasting.values().any(|(other, targets)| *other == kind && targets.contains(node))
            };
            for &node in targets.iter().filter(|node| !lasts(node)) {
                let what = Saw::DiskErrors { begins: false };
                self.judge.observe(&Seen { vtime_ns, node: Some(node), what });
            }
        }
        if kind == FaultKind::PowerLoss.name() {
            for &node in &targets {
                self.judge.observe(&Seen { vtime_ns, node: Some(node), what: Saw::Restarted });
            }
        }
        self.show(vtime_ns, None, Shown::Fault { kind, targets, begins: false });
    }

    /// Records the end of the workload. Nodes without power start now, because the checks need them.
    fn all_on(&mut self, vtime_ns: u64) {
        for node in std::mem::take(&mut self.off) {
            self.judge.observe(&Seen { vtime_ns, node: Some(node), what: Saw::Restarted });
        }
    }

    /// Returns the nodes that a fault affects. A fault on links affects the nodes that its fault entry names as ends of
    /// the links, or all nodes if the entry names none.
    fn targets(&self, fault: &Fault) -> Vec<u16> {
        if let Some(node) = fault.node() {
            return self.abstractions.node(node).into_iter().collect();
        }
        let Some(links) = fault.links() else { return Vec::new() };
        let named = |group: &Group| match group {
            Group::All => Vec::new(),
            Group::Nodes(nodes) => nodes.iter().filter_map(|name| self.abstractions.node(name)).collect(),
        };
        let mut targets: Vec<u16> = [named(&links.from), named(&links.to)].concat();
        if targets.is_empty() {
            targets = (0..).take(self.abstractions.world.nodes.len()).collect();
        }
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Adds the judge's new hits to `found`, with their evidence.
    fn hits(&mut self) {
        let new: Vec<PropertyHit> =
            self.judge.hits().skip(self.reported).map(|(_, hit)| hit.clone()).collect();
        if new.is_empty() {
            return;
        }
        for hit in new {
            let begun_ns = self.judge.begun_ns(self.reported).unwrap_or(hit.vtime_ns);
            self.reported += 1;
            let evidence = self.evidence(begun_ns);
            self.found.push(HitWithEvidence { hit, evidence });
        }
    }

    /// Returns the evidence of a hit whose first line was printed at `begun_ns`.
    fn evidence(&self, begun_ns: u64) -> Evidence {
        let several = self.abstractions.world.nodes.len() > 1;
        let plain = |event: &Event| {
            let mut line = plain_line(event, several);
            line.truncate(line.floor_char_boundary(EVIDENCE_LINE_BYTES_MAX));
            line
        };
        let name =
            |port: u8| self.abstractions.world.nodes.get(usize::from(port)).map_or("?", |node| &*node.name);
        let packet = |step: &FrameStep| message_line(step, &name);
        let fault = |&(vtime_ns, id): &(u64, u32)| {
            let entry = self.plan.entries().get(id as usize)?;
            let text = Plan::new(vec![entry.clone()], &self.abstractions.names).ok()?.write();
            Some(format!("{} #{id} {}", Vtime(vtime_ns), text.trim_end()))
        };
        let own = self.recent.iter().rev().take_while(|event| event.vtime_ns >= begun_ns).count();
        let skipped = self.recent.len().saturating_sub(own.max(LINES_MAX));
        Evidence {
            lines: self.recent.iter().skip(skipped).map(plain).collect(),
            packets: self.packets.iter().map(packet).collect(),
            faults: self.begun.iter().filter_map(fault).collect(),
        }
    }
}

/// Formats an event as a line of evidence, without colours.
#[must_use]
pub fn plain_line(event: &Event, several: bool) -> String {
    anstream::adapter::strip_str(&show::line(event, several)).to_string()
}

/// Formats the fate of a message as a line of evidence. `name` maps ports to names of nodes.
#[must_use]
pub fn message_line<'n>(step: &FrameStep, name: &dyn Fn(u8) -> &'n str) -> String {
    let (from, to) = (name(step.from), step.to.map_or("?", name));
    let kind = format!("{:?}", step.kind).split([' ', '{']).next().unwrap_or_default().to_uppercase();
    format!("{} {kind} {from} > {to} {}", Vtime(step.vtime), step.summary)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use everett_explorer::property::builtin::FILE_SYSTEM_DAMAGED;

    use super::*;
    use everett_world_file as world_file;

    /// Returns true if a file system that cannot be mounted is a finding after these events under this plan.
    fn is_found(plan: &str, events: &[(u64, What)]) -> bool {
        let world = "[[node]]\nname = \"a\"\ndisk = { path = \"/data\", size = \"64M\" }\n";
        let world = world_file::parse(world, Path::new("w.toml")).unwrap();
        let abstractions = Abstractions::new(&world).unwrap();
        let plan = Plan::parse(plan, &abstractions.names).unwrap();
        let mut witness = Witness::new(&abstractions, &plan, &Inherited::new(&abstractions)).unwrap();
        let event = |vtime_ns, what| Event { vtime_ns, node: "a".to_owned(), what };
        for (vtime_ns, what) in events {
            witness.hear(&event(*vtime_ns, what.clone()));
        }
        let (property, text) = (FILE_SYSTEM_DAMAGED.to_owned(), "the ext4 at /data: bad".to_owned());
        witness.hear(&event(100, What::Finding { property, text }));
        !witness.found().is_empty()
    }

    #[test]
    fn faults_of_disks_explain_file_systems_that_are_not_mounted() {
        let begins = |id| (1, What::Fault { id, line: String::new() });
        let ends = |id| (2, What::Healed { id });
        let rot = "{\"at\":1,\"fault\":\"bit_rot\",\"node\":\"a\",\"bits\":1}\n{\"at\":2,\"fault\":\"reset\",\"node\":\"a\"}\n";
        assert!(!is_found(rot, &[begins(0), begins(1)]));
        assert!(is_found(rot, &[begins(1)]));
        let errors = "{\"at\":1,\"for\":1,\"fault\":\"disk_error\",\"node\":\"a\",\"requests\":\"read\"}\n\
                      {\"at\":1,\"for\":9,\"fault\":\"disk_error\",\"node\":\"a\",\"requests\":\"write\"}\n\
                      {\"at\":4,\"fault\":\"reset\",\"node\":\"a\"}\n";
        let begun = [begins(0), begins(1)];
        assert!(!is_found(errors, &begun));
        assert!(
            !is_found(errors, &[&begun[..], &[ends(0), begins(2)]].concat()),
            "the other fault is still active"
        );
        assert!(is_found(errors, &[&begun[..], &[ends(0), ends(1), begins(2)]].concat()), "both are over");
    }

    /// A node that stays off starts at the end of the workload, because the checks need it. The start counts as its
    /// first start after the fault, as if the plan had scheduled it.
    #[test]
    fn a_node_that_stays_off_has_no_excuse_when_the_checks_switch_it_on() {
        let begins = |id| (1, What::Fault { id, line: String::new() });
        let ends = |id| (2, What::Healed { id });
        let end = (5, What::End);
        let stays_off = |errors_for: u64| {
            format!(
                "{{\"at\":1,\"for\":{errors_for},\"fault\":\"disk_error\",\"node\":\"a\"}}\n\
                 {{\"at\":3,\"fault\":\"power_loss\",\"node\":\"a\",\"restart\":\"never\"}}\n"
            )
        };
        assert!(is_found(&stays_off(1), &[begins(0), ends(0), begins(1), end.clone()]), "over before");
        assert!(is_found(&stays_off(9), &[begins(0), begins(1), ends(0), end.clone()]), "over at the end");
        assert!(!is_found(&stays_off(9), &[begins(0), ends(0), end]), "it was on all the time");
    }
}
