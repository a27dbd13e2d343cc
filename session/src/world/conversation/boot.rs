//! Everett's conversation with a guest's agent, from the agent's first message to the beginning of the timeline under
//! its seed.

use everett_explorer::property::builtin;
use everett_input::units::show_duration_ns;
use everett_protocol::{self as protocol, Bytes, Exit, LineSplitter, Operation};
use everett_streams::Seed;

use super::state::{ConversationProgress, ConversationState, DriverState};
use super::state_error::StateError;
use super::{Conversation, Phase, Purpose, Said, What, Word};

/// Label of the output lines of the command that starts the collector. The collector is a guest program that receives
/// the SDK's lines.
const COLLECTOR: &str = "sdk";

impl Conversation {
    /// Continues at `vtime_ns` from the restart point, at which the agent has mounted the root and waits. The agent
    /// seeds the guest's random numbers with `entropy`. Has an effect only in phase `Mounted`.
    pub fn join(&mut self, entropy: Vec<u8>, vtime_ns: u64) {
        if self.at.phase == Phase::Mounted {
            self.at.phase = Phase::Joining;
            let join = Box::new(self.script.join(entropy, vtime_ns));
            self.request(Purpose::Join, Operation::Join(join), vtime_ns);
        }
    }

    /// Begins the timeline under `seed`. The agent seeds the guest's random numbers with `entropy`. Has an effect only
    /// in phase `Ready`.
    pub fn begin(&mut self, seed: Seed, entropy: Vec<u8>, vtime_ns: u64) {
        if self.at.phase == Phase::Ready {
            self.at.phase = Phase::Beginning;
            self.at.seed = Some(seed);
            self.request(Purpose::Reseed, Operation::Reseed { entropy: Bytes(entropy) }, vtime_ns);
        }
    }

    /// Resets the conversation after a power loss. With `mounted`, the next boot continues from the restart point
    /// with this state. Otherwise it starts at power-on.
    pub fn restart(&mut self, mounted: Option<&ConversationState>) {
        if self.at.phase == Phase::Broken {
            // A broken conversation, i.e. one that ended with a finding, stays broken.
            return;
        }
        let mut progress = match mounted {
            Some(state) => state.progress.clone(),
            None => ConversationProgress::new(self.script.drivers.len()),
        };
        progress.findings = self.at.findings;
        progress.sdk = self.at.sdk.after_restart();
        progress.no_drivers = self.at.no_drivers;
        progress.commands = self.at.commands.clone();
        // Request numbers are not used again, because lines of output refer to them.
        progress.next_id = self.at.next_id.max(progress.next_id);
        progress.drivers =
            self.at.drivers.iter().map(|driver| DriverState { runs: false, ..*driver }).collect();
        (self.at, self.control, self.log) = (progress, LineSplitter::control(), LineSplitter::log());
        self.history.restart();
        self.outgoing.clear();
    }

    /// Checks that the conversation can continue from the restart point `mounted` after a power loss.
    ///
    /// # Errors
    /// Returns an error if `mounted` is in another phase or does not fit the agent script, i.e. what Everett asks of
    /// the agent.
    pub fn check_restart(&self, mounted: &ConversationState) -> Result<(), StateError> {
        if mounted.progress.phase != Phase::Mounted {
            return Err(StateError::Inconsistent("a restart point at which the root is not mounted"));
        }
        // Worlds with different workloads share a stored boot, so `mounted` can have another number of drivers (client
        // programs of the workload). At a restart point no driver has started, so this conversation's drivers are
        // checked in their initial state.
        let drivers = vec![DriverState::default(); self.script.drivers.len()];
        ConversationProgress { drivers, ..mounted.progress.clone() }.check(&self.script)
    }

    /// Starts no more drivers, even after a restart of the machine.
    pub fn start_no_more_drivers(&mut self) {
        self.at.no_drivers = true;
    }

    /// Breaks the conversation, i.e. ends it with a finding, if the machine is not ready at its time limit.
    pub fn boot_took_too_long(&mut self, vtime_ns: u64, limit: &str) {
        if self.at.phase < Phase::Ready {
            let text = format!("{} after {limit}", self.waits_for());
            self.broken(vtime_ns, builtin::NOT_READY, text);
        }
    }

    /// Breaks the conversation because a service ends again and again.
    pub fn boot_is_hopeless(&mut self, vtime_ns: u64, why: &str) {
        self.broken(vtime_ns, builtin::NOT_READY, why);
    }

    /// Breaks the conversation because no program reported in time that its setup is complete.
    pub fn setup_took_too_long(&mut self, vtime_ns: u64) {
        let limit = self.script.sdk.as_ref().and_then(|sdk| sdk.setup_timeout_ns).unwrap_or(0);
        let limit = show_duration_ns(limit);
        let text = format!(
            "its services are ready, but no program has sent that the setup is complete within {limit}; \
             let one send it, or set \"setup = false\" in [sdk]"
        );
        self.broken(vtime_ns, builtin::NOT_READY, text);
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
                format!("the agent speaks protocol {theirs}, this Everett {ours}"),
            );
        }
        self.event(vtime_ns, What::Hello { release: hello.release });
        self.at.phase = Phase::Mounting;
        let mount = self.script.mount.clone();
        self.request(Purpose::Mount, Operation::Mount(mount), vtime_ns);
    }

    pub(super) fn mounted(&mut self, vtime_ns: u64) {
        if self.at.phase == Phase::Mounting {
            self.event(vtime_ns, What::Mounted);
            self.at.phase = Phase::Mounted;
        }
    }

    /// Takes the next step of the setup after the restart point: writes the file with the index `files`. After the last
    /// file, starts the collector of SDK lines or goes on to the services.
    pub(super) fn put_next(&mut self, files: usize, vtime_ns: u64) {
        if self.at.phase != Phase::Joining {
            return;
        }
        if let Some(piece) = self.script.files.get(files) {
            let piece = piece.clone();
            self.request(Purpose::File(files), Operation::PutFile(piece), vtime_ns);
        } else if let Some(sdk) = &self.script.sdk {
            let collector = sdk.collector.clone();
            self.named_request(COLLECTOR, Purpose::Collector, collector, vtime_ns);
        } else {
            self.ready_for_services(vtime_ns);
        }
    }

    /// Goes on to the services after the collector has started, so that the collector receives their first lines.
    pub(super) fn collector_started(&mut self, exit: Exit, vtime_ns: u64) {
        if self.at.phase != Phase::Joining {
            return;
        }
        if exit.success() {
            self.ready_for_services(vtime_ns);
        } else {
            let text = format!("SDK: the collector of its lines ended with {exit}");
            self.broken(vtime_ns, builtin::MACHINE_STOPPED, text);
        }
    }

    /// Starts the services, unless they wait for other nodes or the node has jobs (services that run once).
    fn ready_for_services(&mut self, vtime_ns: u64) {
        if self.script.after.is_empty() && self.script.jobs.is_empty() {
            self.start_services(false, vtime_ns);
        }
    }

    /// Returns true if the services can start but wait for [`Conversation::start_services`]. Services wait if they
    /// depend on other nodes, or if the node has jobs, i.e. services that run once.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let has_order = !self.script.after.is_empty() || !self.script.jobs.is_empty();
        has_order
            && self.at.phase == Phase::Joining
            && self.at.pending.is_empty()
            && !self.at.services_started
    }

    /// Returns true if the agent has started the services.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.at.services_started || self.at.phase >= Phase::Ready && self.at.phase < Phase::Broken
    }

    /// Starts the services. If `jobs_done` is true, the jobs (services that run once) ended before a restart of the
    /// machine. A node with jobs then starts no services.
    pub fn start_services(&mut self, jobs_done: bool, vtime_ns: u64) {
        let is_done = jobs_done && !self.script.jobs.is_empty();
        let services = if is_done { Vec::new() } else { self.script.services.clone() };
        if services.is_empty() {
            self.at.services_started = true;
            self.list(vtime_ns);
        } else {
            self.request(Purpose::Services, Operation::Start { services }, vtime_ns);
        }
    }

    /// Handles the agent's report that all services are ready. A report before their start has no effect.
    pub(super) fn services_ready(&mut self, vtime_ns: u64) {
        self.ready_again(vtime_ns);
        // A node with a job becomes ready at the end of the job.
        if self.at.phase == Phase::Joining && self.at.services_started && self.script.jobs.is_empty() {
            self.list(vtime_ns);
        }
    }

    /// Requests the list of test commands. A machine without a test template is ready at once.
    fn list(&mut self, vtime_ns: u64) {
        match self.script.template.clone() {
            None => self.ready(vtime_ns),
            Some(path) if !self.at.is_listing() => {
                self.request(Purpose::List, Operation::List { path }, vtime_ns);
            }
            Some(_) => {}
        }
    }

    /// Handles the list of names in the template's folder.
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

    /// Handles the agent's answer that it has seeded the guest's random numbers with the `entropy` of
    /// [`Conversation::begin`]. From here on the guest's random numbers depend on the seed.
    pub(super) fn begun(&mut self, vtime_ns: u64) {
        if self.at.phase == Phase::Beginning {
            self.at.phase = Phase::Running;
            self.at.rest_ns = vtime_ns;
            self.repeat_violations(vtime_ns);
            self.words.push(Word { vtime_ns, said: Said::Begun });
            if !self.at.no_drivers {
                self.start_drivers(vtime_ns);
            }
        }
    }

    /// Handles a service that failed to become ready. The failure is a finding. Before all services are ready, it also
    /// breaks the conversation. Later, the conversation continues.
    pub(super) fn service_not_ready(&mut self, service: &str, why: &str, vtime_ns: u64) {
        self.restart_is_over(service, vtime_ns);
        self.goes_down(service, vtime_ns);
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
        if self.stopped(exited, vtime_ns) || exited.restarting {
            return;
        }
        self.goes_down(name, vtime_ns);
        if self.at.phase == Phase::Joining && exit.success() && self.script.jobs.contains(name) {
            return self.list(vtime_ns);
        }
        if self.at.phase < Phase::Ready {
            let text = format!("service {name} ended with {exit} before all services were ready");
            self.broken(vtime_ns, builtin::NOT_READY, text);
        } else if !exit.success() {
            self.finding(vtime_ns, builtin::SERVICE_EXIT, format!("service {name} ended with {exit}"));
        }
    }
}
