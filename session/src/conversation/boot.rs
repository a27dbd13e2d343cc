//! From the agent's first word to a timeline under a seed.

use everett_explorer::property::builtin;
use everett_protocol::{self as protocol, Bytes, LineSplitter, Operation};

use super::state::{ConversationState, DriverState, Progress, StateError};
use super::{Conversation, Phase, Purpose, Said, What, Word};

impl Conversation {
    /// Go on from the restart point at `vtime_ns`, with random numbers that depend on `entropy`. Without effect anywhere
    /// else.
    pub fn join(&mut self, entropy: Vec<u8>, vtime_ns: u64) {
        if self.at.phase == Phase::Mounted {
            self.at.phase = Phase::Joining;
            let join = Box::new(self.plan.join(entropy, vtime_ns));
            self.request(Purpose::Join, Operation::Join(join), vtime_ns);
        }
    }

    /// Begin a timeline under `seed`, with random numbers that depend on `entropy`. Without effect unless the services
    /// are ready and it has not begun yet.
    pub fn begin(&mut self, seed: u64, entropy: Vec<u8>, vtime_ns: u64) {
        if self.at.phase == Phase::Ready {
            self.at.phase = Phase::Beginning;
            self.at.seed = Some(seed);
            self.request(Purpose::Reseed, Operation::Reseed { entropy: Bytes(entropy) }, vtime_ns);
        }
    }

    /// The machine has lost power: what follows is a conversation with its next boot, which is at its restart point if
    /// `mounted` says where a conversation was there.
    pub fn restart(&mut self, mounted: Option<&ConversationState>) {
        if self.at.phase == Phase::Broken {
            // It is what it was, whatever comes.
            return;
        }
        let mut progress = match mounted {
            Some(state) => state.progress.clone(),
            None => Progress::new(self.plan.drivers.len()),
        };
        progress.findings = self.at.findings;
        progress.no_drivers = self.at.no_drivers;
        progress.commands = self.at.commands.clone();
        // Numbers of requests are never given twice: lines name them.
        progress.next_id = self.at.next_id.max(progress.next_id);
        progress.drivers =
            self.at.drivers.iter().map(|driver| DriverState { runs: false, ..*driver }).collect();
        (self.at, self.control, self.log) = (progress, LineSplitter::control(), LineSplitter::log());
        self.history.restart();
        self.outgoing.clear();
    }

    /// Whether a conversation can go on from here after a loss of power: it is one with such a machine, at its restart point.
    ///
    /// # Errors
    /// Why not.
    pub fn check_restart(&self, mounted: &ConversationState) -> Result<(), StateError> {
        if mounted.progress.phase != Phase::Mounted {
            return Err(StateError::Inconsistent("a restart point at which the root is not mounted"));
        }
        // Of the workload nothing has happened there: one boot serves all of them.
        let drivers = vec![DriverState::default(); self.plan.drivers.len()];
        Progress { drivers, ..mounted.progress.clone() }.check(&self.plan)
    }

    /// From here on no driver is started, also when the machine comes back.
    pub fn start_no_more_drivers(&mut self) {
        self.at.no_drivers = true;
    }

    /// The machine has taken longer to get ready than any should.
    pub fn boot_took_too_long(&mut self, vtime_ns: u64, limit: &str) {
        if self.at.phase < Phase::Ready {
            let text = format!("{} after {limit}", self.waits_for());
            self.broken(vtime_ns, builtin::NOT_READY, text);
        }
    }

    pub(super) fn hello(&mut self, hello: protocol::Hello, vtime_ns: u64) {
        if self.at.phase != Phase::Booting {
            return self.broken(vtime_ns, builtin::AGENT_FAILURE, "the agent says hello a second time");
        }
        if hello.version != protocol::VERSION {
            let (theirs, ours) = (hello.version, protocol::VERSION);
            return self.broken(
                vtime_ns,
                builtin::AGENT_FAILURE,
                format!("the agent speaks protocol {theirs}, this host {ours}"),
            );
        }
        self.event(vtime_ns, What::Hello { release: hello.release });
        self.at.phase = Phase::Mounting;
        let mount = self.plan.mount.clone();
        self.request(Purpose::Mount, Operation::Mount(mount), vtime_ns);
    }

    pub(super) fn mounted(&mut self, vtime_ns: u64) {
        if self.at.phase == Phase::Mounting {
            self.event(vtime_ns, What::Mounted);
            self.at.phase = Phase::Mounted;
        }
    }

    /// The machine has joined and `files` are put: put the next one, or start the services, or go on behind them.
    pub(super) fn put_next(&mut self, files: usize, vtime_ns: u64) {
        if self.at.phase != Phase::Joining {
            return;
        }
        if let Some(piece) = self.plan.files.get(files) {
            let piece = piece.clone();
            self.request(Purpose::File(files), Operation::PutFile(piece), vtime_ns);
        } else if self.plan.services.is_empty() {
            self.list(vtime_ns);
        } else {
            let services = self.plan.services.clone();
            self.request(Purpose::Services, Operation::Start { services }, vtime_ns);
        }
    }

    /// The agent reports that all services are ready: of interest once they were started.
    pub(super) fn services_ready(&mut self, vtime_ns: u64) {
        if self.at.phase == Phase::Joining && self.at.services_started {
            self.list(vtime_ns);
        }
    }

    /// The services are ready. So is the machine, unless its test commands have to be listed.
    fn list(&mut self, vtime_ns: u64) {
        match self.plan.template.clone() {
            None => self.ready(vtime_ns),
            Some(path) if !self.at.is_listing() => {
                self.request(Purpose::List, Operation::List { path }, vtime_ns);
            }
            Some(_) => {}
        }
    }

    /// These are in the template's folder.
    pub(super) fn listed(&mut self, names: Vec<String>, vtime_ns: u64) {
        if self.at.phase == Phase::Joining {
            self.at.names = names;
            self.ready(vtime_ns);
        }
    }

    fn ready(&mut self, vtime_ns: u64) {
        self.event(vtime_ns, What::Ready);
        self.at.ready_ns = Some(vtime_ns);
        self.at.phase = Phase::Ready;
    }

    /// The guest's random numbers follow the seed.
    pub(super) fn begun(&mut self, vtime_ns: u64) {
        if self.at.phase == Phase::Beginning {
            self.at.phase = Phase::Running;
            self.at.rest_ns = vtime_ns;
            self.words.push(Word { vtime_ns, said: Said::Begun });
            if !self.at.no_drivers {
                self.start_drivers(vtime_ns);
            }
        }
    }

    /// A service will not be ready, so before the beginning nothing will.
    pub(super) fn service_not_ready(&mut self, service: &str, why: &str, vtime_ns: u64) {
        let text = format!("service {service}: {why}");
        if self.at.phase < Phase::Ready {
            self.broken(vtime_ns, builtin::NOT_READY, text);
        } else {
            self.finding(vtime_ns, builtin::NOT_READY, text);
        }
    }

    pub(super) fn service_exited(&mut self, exited: &protocol::Exited, vtime_ns: u64) {
        let (name, exit) = (&exited.service, exited.exit);
        self.event(vtime_ns, What::exit(name, exit));
        if exited.restarting {
            return;
        }
        if self.at.phase < Phase::Ready {
            let text = format!("service {name} ended with {exit} before all services were ready");
            self.broken(vtime_ns, builtin::NOT_READY, text);
        } else if !exit.success() {
            self.finding(vtime_ns, builtin::SERVICE_EXIT, format!("service {name} ended with {exit}"));
        }
    }
}
