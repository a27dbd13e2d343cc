//! One machine with the host's end of its conversation: what the guest says is answered where it was said.
//!
//! The host acts at two kinds of places: after the instruction with which the guest ended a line on its control port,
//! and at vtimes that were fixed before. Both are functions of the timeline, so however a run is cut into calls of
//! [`Timeline::run`], it is the same run. It acts when the machine is about to go on from such a place, never when it
//! arrives: a timeline that is stored there ([`state`]) and goes on elsewhere does what this one does.
//!
//! * here: running, listening, acting;
//! * `boot`: running up to the restart point or to *ready*, and beginning under a seed;
//! * [`state`]: what is kept of a timeline when its machine is stored.

mod boot;
pub mod state;

use everett_protocol::{Exec, Exit, Port};
use everett_vmm::digest::Trail;
use everett_vmm::digest::bisect::Subject;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::output::{Note, NoteEvent};
use everett_vmm::machine::{End, Machine, Stop, Until};

use super::agent::{Conversation, Phase};
use super::event::Event;
use super::plan::Plan;

pub use boot::{BOOT_NS_MAX, BegunAlready, BootError};
use state::Course;
pub use state::{SessionState, StateError};

/// Bytes that the guest's port did not take are offered again after so many nanoseconds of vtime.
const RETRY_NS: u64 = 1_000_000;
/// Most bytes that wait for the guest's port. An agent reads what it is asked; one that does not is given up.
pub const UNSENT_BYTES_MAX: usize = 64 << 20;
/// What Linux's panic() prints.
const PANIC: &[u8] = b"Kernel panic";
/// Stop where the agent ends a line.
const CONTROL_LINES: u8 = 1 << Port::Control as u8;

/// A machine and its conversation.
pub struct Timeline {
    machine: Machine<SoftEngine>,
    course: Course,
    conversation: Conversation,
    events: Vec<Event>,
}

impl Timeline {
    /// A machine that has not executed anything yet.
    #[must_use]
    pub fn new(machine: Machine<SoftEngine>, plan: Plan) -> Timeline {
        Timeline {
            machine,
            course: Course::default(),
            conversation: Conversation::new(plan),
            events: Vec::new(),
        }
    }

    /// `duration_ns` of vtime after *ready*, drivers stop and checks run.
    pub fn end_after(&mut self, duration_ns: u64) {
        self.course.duration_ns = Some(duration_ns);
    }

    /// When drivers stop and checks run, in nanoseconds of vtime; known once the services are ready.
    #[must_use]
    pub fn end_ns(&self) -> Option<u64> {
        Some(self.ready_ns()?.saturating_add(self.course.duration_ns?))
    }

    /// When the services were ready, in nanoseconds of vtime: the root of the timeline.
    #[must_use]
    pub fn ready_ns(&self) -> Option<u64> {
        self.conversation.ready_ns()
    }

    /// Run a command when the timeline has begun, and power off after it. Its output appears under [`COMMAND`].
    pub fn command_when_ready(&mut self, exec: Exec) {
        self.course.command = Some(exec);
    }

    /// Ask the guest to power off; if nobody answers there, nothing happens.
    pub fn power_off(&mut self) {
        self.conversation.power_off(self.machine.vtime());
        self.speak();
    }

    /// How the command of [`Timeline::command_when_ready`] ended.
    #[must_use]
    pub fn command_exit(&self) -> Option<Exit> {
        self.conversation.command_exit()
    }

    /// How far the conversation is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.conversation.phase()
    }

    /// How long the checks may take together, in nanoseconds of vtime.
    #[must_use]
    pub fn checks_ns(&self) -> u64 {
        self.conversation.checks_ns()
    }

    /// How many findings there were.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.conversation.findings()
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &Machine<SoftEngine> {
        &self.machine
    }

    /// The digests so far, at each multiple of 100 ms of vtime.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.course.trail
    }

    /// The machine, for digests and output.
    pub fn machine_mut(&mut self) -> &mut Machine<SoftEngine> {
        &mut self.machine
    }

    /// The machine, without its conversation.
    #[must_use]
    pub fn into_machine(self) -> Machine<SoftEngine> {
        self.machine
    }

    /// What happened before the moment from which this timeline goes on, to be taken as if it had just been.
    pub fn events_again(&mut self, events: &[Event]) {
        self.events.splice(0..0, events.iter().cloned());
    }

    /// Events since the last call, in the order of their vtime.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The workload's time is over and the guest does not do what it is asked.
    pub fn give_up(&mut self, why: &str) {
        self.conversation.give_up(self.machine.vtime(), why);
        self.events.append(&mut self.conversation.take_events());
    }

    /// Run until one of the ends in `until`, or the machine's own. Never ends for the conversation's sake.
    pub fn run(&mut self, until: &Until<'_>) -> Stop {
        self.run_until(until, None)
    }

    /// The same, and stop where the conversation comes to a phase, or to one beyond it.
    fn run_until(&mut self, until: &Until<'_>, wanted: Option<Phase>) -> Stop {
        loop {
            self.act();
            let inner = Until {
                vtime: until.vtime.min(self.next_act_ns()),
                port_lines: until.port_lines | CONTROL_LINES,
                ..*until
            };
            let stop = self.course.trail.run(&mut self.machine, &inner);
            self.listen();
            match &stop {
                Stop::PortLines(ports) => {
                    if ports & until.port_lines != 0 || wanted.is_some_and(|phase| self.phase() >= phase) {
                        return stop;
                    }
                }
                // `listen` has emptied it.
                Stop::OutputFull(_) => {}
                Stop::Time | Stop::Idle if self.machine.vtime() < until.vtime => {}
                Stop::End(end) => {
                    self.report_end(end);
                    return stop;
                }
                _ => return stop,
            }
        }
    }

    /// The next vtime at which the host does something by itself.
    fn next_act_ns(&self) -> u64 {
        [self.course.retry_at_ns, self.next_end_ns(), self.course.boot_until_ns]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(u64::MAX)
    }

    /// When the workload's time is over, while that is still to come: what has not begun does not end.
    fn next_end_ns(&self) -> Option<u64> {
        self.end_ns().filter(|_| !self.course.ended && self.phase() >= Phase::Running)
    }

    /// Do what is to be done here. Without effect when it was done.
    fn act(&mut self) {
        if self.machine.end().is_some() {
            return;
        }
        let now = self.machine.vtime();
        self.act_in_phase(now);
        if self.next_end_ns().is_some_and(|at| at <= now) {
            self.course.ended = true;
            self.conversation.end(now);
        }
        self.speak();
        if self.course.retry_at_ns.is_some_and(|at| at <= now) {
            self.send();
        }
    }

    /// Do what the phase asks for: each leads to another one, or to a request.
    fn act_in_phase(&mut self, now: u64) {
        match self.phase() {
            Phase::Mounted => {
                let entropy = self.draw_entropy();
                self.conversation.join(entropy, now);
            }
            Phase::Ready => {
                if let Some(seed) = self.course.begin_with.take() {
                    self.begin_here(seed, now);
                }
            }
            Phase::Running => {
                if let Some(exec) = self.course.command.take() {
                    self.conversation.command(COMMAND, exec, now);
                }
                if self.conversation.command_exit().is_some() && !self.conversation.is_powering_off() {
                    self.conversation.power_off(now);
                }
            }
            _ => {}
        }
        self.look_at_boot(now);
    }

    /// Take what the guest wrote. Lines are stamped with the vtime of the write that ended them.
    fn listen(&mut self) {
        let output = self.machine.output();
        let mut writes: Vec<_> = [Port::Log, Port::Control]
            .into_iter()
            .flat_map(|port| output.take_port(port as usize).into_iter().map(move |write| (port, write)))
            .collect();
        for port in [Port::History, Port::Sdk, Port::Debug, Port::Spare] {
            output.take_port(port as usize);
        }
        // Stable: writes of one port keep their order, and at one vtime the log comes before what the agent says of it.
        writes.sort_by_key(|(_, write)| write.vtime);
        for (port, write) in writes {
            self.conversation.received(port, &write.bytes, write.vtime);
        }
        self.look_at_notes();
        self.events.append(&mut self.conversation.take_events());
    }

    /// What the machine noticed: drivers that broke their device, and the kernel's last words.
    fn look_at_notes(&mut self) {
        for Note { vtime, event } in self.machine.output().take_notes() {
            match event {
                NoteEvent::Console { text, .. } => {
                    if let Some(at) = text.windows(PANIC.len()).position(|window| window == PANIC) {
                        self.course.last_words = Some(String::from_utf8_lossy(&text[at..]).into_owned());
                    }
                }
                NoteEvent::Device { slot, kind, error } => {
                    let text = format!("the driver of {kind} (virtio slot {slot}) broke its device: {error}");
                    self.conversation.noticed(vtime, &text);
                }
                NoteEvent::Unknown { .. } => {}
            }
        }
    }

    fn report_end(&mut self, end: &End) {
        if self.course.end_reported {
            return;
        }
        self.course.end_reported = true;
        let asked = self.conversation.is_powering_off() && *end == End::PowerOff;
        let why = match &self.course.last_words {
            Some(words) => format!("{end}: {words}"),
            None => end.to_string(),
        };
        self.conversation.machine_ended(self.machine.vtime(), asked, &why);
        self.events.append(&mut self.conversation.take_events());
    }

    /// Say what the conversation has to say now.
    fn speak(&mut self) {
        let outgoing = self.conversation.take_outgoing();
        if !outgoing.is_empty() {
            self.course.unsent.extend(outgoing);
            self.send();
            if self.course.unsent.len() > UNSENT_BYTES_MAX {
                self.course.unsent.clear();
                self.course.retry_at_ns = None;
                self.conversation.unusable(self.machine.vtime(), "the agent does not read what it is asked");
            }
        }
        self.events.append(&mut self.conversation.take_events());
    }

    fn send(&mut self) {
        if !self.course.unsent.is_empty() {
            let taken = self.machine.port_input(Port::Control as usize, &self.course.unsent);
            self.course.unsent.drain(..taken.min(self.course.unsent.len()));
        }
        self.course.retry_at_ns = (!self.course.unsent.is_empty()).then(|| self.machine.vtime() + RETRY_NS);
    }
}

/// The name under which the output of a command appears.
pub const COMMAND: &str = "command";

impl Subject for Timeline {
    type Engine = SoftEngine;

    fn run(&mut self, until: &Until<'_>) -> Stop {
        Timeline::run(self, until)
    }

    fn machine(&mut self) -> &mut Machine<SoftEngine> {
        &mut self.machine
    }
}
