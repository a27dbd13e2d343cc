//! One machine with the host's end of its conversation: what the guest says is answered where it was said.
//!
//! The host acts at two kinds of places: after the instruction with which the guest ended a line on its control port,
//! and at vtimes that were fixed before. Both are functions of the timeline, so however a run is cut into calls of
//! [`Timeline::run`], it is the same run.

use everett_protocol::{Exec, Exit, Port};
use everett_vmm::digest::Trail;
use everett_vmm::digest::bisect::Subject;
use everett_vmm::digest::trail::TRAIL_INTERVAL_NS;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::output::{Note, NoteEvent};
use everett_vmm::machine::{End, Machine, Stop, Until};

use super::agent::{Conversation, Phase};
use super::event::Event;
use super::plan::Plan;

/// Bytes that the guest's port did not take are offered again after so many nanoseconds of vtime.
const RETRY_NS: u64 = 1_000_000;
/// What Linux's panic() prints.
const PANIC: &[u8] = b"Kernel panic";
/// Stop where the agent ends a line.
const CONTROL_LINES: u8 = 1 << Port::Control as u8;

/// A machine and its conversation.
pub struct Timeline {
    machine: Machine<SoftEngine>,
    trail: Trail,
    conversation: Conversation,
    /// What the control port has not taken yet, and when it is offered again.
    unsent: Vec<u8>,
    retry_at_ns: Option<u64>,
    /// When the workload's time is over.
    end_at_ns: Option<u64>,
    /// A command to run once the services are ready; the machine powers off after it.
    command: Option<Exec>,
    end_reported: bool,
    /// The line with which the kernel panicked.
    last_words: Option<String>,
    events: Vec<Event>,
}

impl Timeline {
    /// A machine that has not executed anything yet.
    #[must_use]
    pub fn new(machine: Machine<SoftEngine>, plan: Plan) -> Timeline {
        Timeline {
            machine,
            trail: Trail::new(TRAIL_INTERVAL_NS),
            conversation: Conversation::new(plan),
            unsent: Vec::new(),
            retry_at_ns: None,
            end_at_ns: None,
            command: None,
            end_reported: false,
            last_words: None,
            events: Vec::new(),
        }
    }

    /// At `vtime_ns`, drivers stop and checks run.
    pub fn end_at(&mut self, vtime_ns: u64) {
        self.end_at_ns = Some(vtime_ns);
    }

    /// Run a command when the services are ready, and power off after it. Its output appears under [`COMMAND`].
    pub fn command_when_ready(&mut self, exec: Exec) {
        self.command = Some(exec);
    }

    /// Ask the guest to power off; if nobody answers there, nothing happens.
    pub fn power_off(&mut self) {
        self.conversation.power_off(self.machine.vtime());
        self.answer();
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
        &self.trail
    }

    /// The machine, for digests and output.
    pub fn machine_mut(&mut self) -> &mut Machine<SoftEngine> {
        &mut self.machine
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
        loop {
            self.act_if_due();
            let next = [self.retry_at_ns, self.end_at_ns].into_iter().flatten().min().unwrap_or(u64::MAX);
            let inner = Until {
                vtime: until.vtime.min(next),
                port_lines: until.port_lines | CONTROL_LINES,
                ..*until
            };
            let stop = self.trail.run(&mut self.machine, &inner);
            self.listen();
            match &stop {
                Stop::PortLines(ports) => {
                    self.answer();
                    if ports & until.port_lines != 0 {
                        return stop;
                    }
                }
                // `listen` has emptied it.
                Stop::OutputFull(_) => {}
                Stop::Time | Stop::Idle if self.machine.vtime() < until.vtime => {}
                Stop::End(end) => {
                    if !self.end_reported {
                        self.end_reported = true;
                        let asked = self.conversation.is_powering_off() && *end == End::PowerOff;
                        let why = match &self.last_words {
                            Some(words) => format!("{end}: {words}"),
                            None => end.to_string(),
                        };
                        self.conversation.machine_ended(self.machine.vtime(), asked, &why);
                        self.events.append(&mut self.conversation.take_events());
                    }
                    return stop;
                }
                _ => return stop,
            }
        }
    }

    /// Do what was planned for this vtime.
    fn act_if_due(&mut self) {
        let now = self.machine.vtime();
        if self.end_at_ns.is_some_and(|at| at <= now) {
            self.end_at_ns = None;
            self.conversation.end(now);
            self.answer();
        }
        if self.retry_at_ns.is_some_and(|at| at <= now) {
            self.send();
        }
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
                        self.last_words = Some(String::from_utf8_lossy(&text[at..]).into_owned());
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

    /// Say what the conversation has to say now.
    fn answer(&mut self) {
        let now = self.machine.vtime();
        if self.conversation.phase() == Phase::Running
            && let Some(exec) = self.command.take()
        {
            self.conversation.command(COMMAND, exec, now);
        }
        if self.conversation.command_exit().is_some() && !self.conversation.is_powering_off() {
            self.conversation.power_off(now);
        }
        self.events.append(&mut self.conversation.take_events());
        self.unsent.append(&mut self.conversation.take_outgoing());
        self.send();
    }

    fn send(&mut self) {
        if !self.unsent.is_empty() {
            let taken = self.machine.port_input(Port::Control as usize, &self.unsent);
            self.unsent.drain(..taken.min(self.unsent.len()));
        }
        self.retry_at_ns = (!self.unsent.is_empty()).then(|| self.machine.vtime() + RETRY_NS);
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
