//! A timeline that goes on from a moment: commands run in its machines, faults are injected, and vtime passes.

use std::sync::Arc;

use everett_explorer::plan::PlanEntry;
use everett_protocol::limits::EXEC_TEXT_BYTES_MAX;
use everett_protocol::{Exit, Stream};
use everett_session::explore::witness::Inherited;
use everett_session::inside::fork::{self as session, ForkError, Progress};
use everett_session::inside::limits::ANSWER_NS_MAX;
use everett_vmm::Digest;

use super::error::Error;
use super::host::Host;
use super::judged::{self, Judged};
use super::limits::{ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, RUN_NS_MAX};
use super::observed::Observed;
use super::stage::Stage;
use super::view::View;

/// Vtime for which a fork runs before its events and messages are taken, in nanoseconds.
const SLICE_NS: u64 = 50_000_000;

/// A timeline that goes on from a moment. Nothing outside it changes.
pub struct Fork {
    stage: Arc<Stage>,
    fork: session::Fork,
    /// Observations of the explorer before the fork.
    before: Inherited,
    observed: Observed,
}

/// A command for a fork.
#[derive(Debug, Clone, Default)]
pub struct Command<'c> {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// User. Without one, root or the user of the node's container runs the command.
    pub user: Option<&'c str>,
    /// Standard input.
    pub input: Option<String>,
    /// Vtime after which the command is killed, in nanoseconds.
    pub limit_ns: u64,
}

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself, or another program killed it.
    Exited(Exit),
    /// The command was killed, because its time was over.
    Limit,
    /// The command was not killed when its time was over: the node is paused, or its agent does not answer. The command
    /// goes on with the fork.
    NoAnswer,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How the command ended.
    pub end: End,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// True if output is missing: a stream had more than [`OUTPUT_BYTES_MAX`] bytes, or a line was too long.
    pub is_cut: bool,
}

impl Fork {
    pub(crate) fn new(stage: Arc<Stage>, fork: session::Fork, before: Inherited) -> Fork {
        Fork { stage, fork, before, observed: Observed::default() }
    }

    /// Returns the vtime, in nanoseconds.
    #[must_use]
    pub fn vtime_ns(&self) -> u64 {
        self.fork.vtime()
    }

    /// Returns the names of the nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        self.stage.nodes()
    }

    /// Returns the digest of the world. Two forks of a moment in which the same was done have the same digest.
    pub fn digest(&mut self) -> Digest {
        self.fork.timeline().digest()
    }

    /// Lets vtime pass, in nanoseconds.
    ///
    /// # Errors
    /// Returns an error if the fork cannot go on, and [`Error::Interrupted`] if the call was interrupted: the fork then
    /// stands at an earlier vtime, and can go on.
    pub fn run_for(&mut self, host: &Host<'_>, ns: u64) -> Result<(), Error> {
        bounded(ns)?;
        self.fork.end_on(&host.interrupt);
        let until_ns = self.vtime_ns().saturating_add(ns);
        while self.vtime_ns() < until_ns {
            let slice_ns = SLICE_NS.min(until_ns - self.vtime_ns());
            let passed = self.fork.pass(slice_ns);
            self.observe();
            passed?;
        }
        Ok(())
    }

    /// Runs a command on a node to its end. The other machines go on meanwhile.
    ///
    /// # Errors
    /// Returns an error if the node's agent cannot run the command, if the machine loses its power, or if the call was
    /// interrupted: the command then goes on with the fork.
    pub fn exec(&mut self, host: &Host<'_>, node: &str, command: Command<'_>) -> Result<Finished, Error> {
        let number = self.stage.number_of(node)?;
        let Command { argv, user, input, limit_ns } = command;
        bounded(limit_ns)?;
        check(&argv, input.as_deref())?;
        self.fork.end_on(&host.interrupt);
        let mut exec = self.fork.command(number, argv, user);
        exec.stdin = input;
        exec.limit_ms = Some(limit_ns.div_ceil(1_000_000));
        let limit_ns = exec.limit_ms.unwrap_or(0).saturating_mul(1_000_000);
        let began_ns = self.vtime_ns();
        let until_ns = began_ns.saturating_add(limit_ns).saturating_add(ANSWER_NS_MAX);
        let named = |error: ForkError| match Error::from(error) {
            Error::Failed(why) => Error::Failed(format!("{node}: {why}")),
            other => other,
        };
        let job = self.fork.start(number, exec).map_err(named)?;
        let finished = self.finish(job, (began_ns, limit_ns, until_ns));
        self.fork.forget(job);
        finished.map_err(named)
    }

    /// Runs a command to its end, but at most up to the vtime `until_ns`.
    fn finish(
        &mut self,
        job: session::Job,
        (began_ns, limit_ns, until_ns): (u64, u64, u64),
    ) -> Result<Finished, ForkError> {
        let mut finished =
            Finished { end: End::NoAnswer, stdout: Vec::new(), stderr: Vec::new(), is_cut: false };
        loop {
            let slice_ns = self.vtime_ns().saturating_add(SLICE_NS).min(until_ns);
            let progress = self.fork.next(job, slice_ns);
            self.observe();
            match progress? {
                Progress::Output(output) => finished.add(output),
                Progress::Ended(exit) => {
                    let was_killed =
                        exit == Exit::Signal(9) && self.vtime_ns().saturating_sub(began_ns) >= limit_ns;
                    finished.end = if was_killed { End::Limit } else { End::Exited(exit) };
                    return Ok(finished);
                }
                Progress::Runs if self.vtime_ns() >= until_ns => return Ok(finished),
                Progress::Runs => {}
            }
        }
    }

    /// Injects a fault, a heal or a quiet period. `line` is a line of a fault plan without `at`: it begins when the fork
    /// goes on. Returns its number, by which events name it.
    ///
    /// # Errors
    /// Returns an error if the line is invalid, if it contradicts other faults, or if the workload has ended.
    pub fn inject(&mut self, line: &str) -> Result<u32, Error> {
        let entry = PlanEntry::parse(line).map_err(Error::Argument)?;
        if entry.at_ns != 0 {
            return Err(Error::Argument("at: an injected fault begins when the fork goes on".to_owned()));
        }
        match self.fork.inject(&entry, &self.stage.setting.abstractions.names) {
            Ok(number) => Ok(number),
            Err(ForkError::Fault(why)) => Err(Error::Argument(why.to_string())),
            Err(other) => Err(other.into()),
        }
    }

    /// Ends all faults for good, and switches on machines that have no power.
    pub fn calm(&mut self) {
        self.fork.calm();
        self.observe();
    }

    /// Returns the events and messages of the fork so far.
    #[must_use]
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Judges the properties of the world on the fork so far.
    ///
    /// # Errors
    /// Returns an error if the fork has had more events than are kept.
    pub fn judge(&mut self) -> Result<Judged, Error> {
        let plan = self.fork.timeline().plan().cloned().unwrap_or_default();
        judged::judge(&self.stage.setting, &self.before, &plan, self.observed.events()?)
    }

    /// Calls `look` with the fork's machines as they are now.
    ///
    /// # Errors
    /// Returns the error of `look`.
    pub fn look<T>(
        &mut self,
        host: &Host<'_>,
        look: impl FnOnce(&View<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        host.goes_on()?;
        let timeline = self.fork.timeline();
        look(&View { stage: &self.stage, timeline, interrupt: &host.interrupt })
    }

    /// Takes the events and messages of the fork since the last call.
    fn observe(&mut self) {
        self.fork.take_events().into_iter().for_each(|event| self.observed.event(event));
        let abstractions = &self.stage.setting.abstractions;
        let messages = self.fork.take_messages().into_iter().filter(|step| abstractions.is_message(step));
        messages.for_each(|step| self.observed.message(step));
        self.observed.dropped(self.fork.dropped());
    }
}

impl Finished {
    fn add(&mut self, output: session::Output) {
        let stream = match output.stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let room = OUTPUT_BYTES_MAX.saturating_sub(stream.len());
        stream.extend(output.bytes.iter().take(room));
        self.is_cut |= output.truncated || output.bytes.len() > room;
    }
}

fn bounded(ns: u64) -> Result<(), Error> {
    match ns <= RUN_NS_MAX {
        true => Ok(()),
        false => Err(Error::Argument("one call runs a fork for at most one hour of vtime".to_owned())),
    }
}

fn check(argv: &[String], input: Option<&str>) -> Result<(), Error> {
    let bytes = argv.iter().fold(0, |sum: usize, word| sum.saturating_add(word.len()));
    let problem = if argv.first().is_none_or(String::is_empty) {
        "the command is empty".to_owned()
    } else if argv.len() > ARGUMENTS_MAX || bytes > ARGUMENT_BYTES_MAX {
        format!("a command has at most {ARGUMENTS_MAX} arguments and {ARGUMENT_BYTES_MAX} bytes")
    } else if argv.iter().any(|word| word.contains('\0')) {
        "an argument has a zero byte".to_owned()
    } else if input.is_some_and(|input| input.len() > INPUT_BYTES_MAX.min(EXEC_TEXT_BYTES_MAX)) {
        format!("standard input has at most {INPUT_BYTES_MAX} bytes")
    } else {
        return Ok(());
    };
    Err(Error::Argument(problem))
}
