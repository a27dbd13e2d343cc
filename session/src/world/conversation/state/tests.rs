//! Tests of conversations that are stored and restored. A conversation is Everett's side of the exchange with a guest's
//! agent (Everett's program in the guest).

use everett_protocol::{Exit, Exited, Hello, Message, Output, Port, Reply, Response, Stream, Unit};
use everett_protocol::{encode_message, encode_output};
use everett_streams::Seed;
use proptest::prelude::*;

use super::super::restarts::{Restart, Stage};
use super::super::tests::script;
use super::super::{AgentScript, Conversation, Phase, Word};
use super::{ConversationState, StateError};
use crate::world::event::Event;

/// Action of the scripted agent, its guest or Everett.
#[derive(Debug, Clone)]
enum Step {
    /// The agent answers the oldest unanswered request.
    Answer(u8),
    Ready,
    /// A service, the driver (the workload's program), or one of two runs of a test command ends.
    Exited(u8, i32),
    Print(String),
    Garbage(Vec<u8>),
    /// A program writes to the port for histories, i.e. for records of the clients' operations.
    Write(Vec<u8>),
    Join,
    Begin(u64),
    End,
    Command,
    TestCommand(u64, bool),
    Kill,
    PowerOff,
    /// Everett restarts the service.
    Restart,
    /// Everett kills the services that have not exited in time.
    KillLate,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..13u8).prop_map(Step::Answer),
        4 => Just(Step::Ready),
        3 => (0..4u8, 0..2i32).prop_map(|(service, code)| Step::Exited(service, code)),
        3 => (0..9u64, any::<bool>()).prop_map(|(run, known)| Step::TestCommand(run, known)),
        1 => Just(Step::Kill),
        3 => "\\PC{0,20}".prop_map(Step::Print),
        1 => prop::collection::vec(any::<u8>(), 0..30).prop_map(Step::Garbage),
        3 => "[a{\n]{0,20}".prop_map(|text| Step::Write(text.into_bytes())),
        4 => Just(Step::Join),
        4 => any::<u64>().prop_map(Step::Begin),
        1 => Just(Step::End),
        1 => Just(Step::Command),
        1 => Just(Step::PowerOff),
        2 => Just(Step::Restart),
        1 => Just(Step::KillLate),
    ]
}

/// Returns the agent script that other tests use, but with a test template.
fn with_template() -> AgentScript {
    AgentScript { template: Some("/t".to_owned()), ..script() }
}

/// Actions from power-on to a running timeline.
const BEGUN: [Step; 9] = [
    Step::Answer(0),
    Step::Join,
    Step::Answer(0),
    Step::Answer(0),
    Step::Answer(0),
    Step::Ready,
    Step::Answer(12),
    Step::Begin(3),
    Step::Answer(0),
];

/// Returns a conversation whose guest has not answered the request to seed its random numbers.
pub(crate) fn beginning() -> ConversationState {
    let run = asked_to_seed(&[]);
    assert_eq!(run.host.phase(), Phase::Beginning);
    run.host.save()
}

/// Returns a conversation in phase `Running` whose driver has ended.
pub(crate) fn driven() -> ConversationState {
    let run = asked_to_seed(&[Step::Answer(0), Step::Exited(1, 1)]);
    assert!(run.host.has_driven());
    run.host.save()
}

/// Returns a conversation in phase `Running` whose driver has ended. Everett has asked its service to exit.
pub(crate) fn restarting() -> ConversationState {
    let run = asked_to_seed(&[Step::Answer(0), Step::Exited(1, 1), Step::Restart]);
    assert!(run.host.has_driven() && run.host.is_restarting());
    run.host.save()
}

/// Returns a conversation whose guest answered that it cannot seed its random numbers.
pub(crate) fn broken() -> ConversationState {
    let run = asked_to_seed(&[Step::Answer(11)]);
    assert_eq!(run.host.phase(), Phase::Broken);
    run.host.save()
}

fn asked_to_seed(then: &[Step]) -> Run {
    let steps: Vec<Step> =
        BEGUN[..8].iter().filter(|step| !matches!(step, Step::Answer(12))).cloned().collect();
    run(Run::new(script()), &[&steps, then].concat(), 1000, |_| false)
}

/// Draws a list of actions. It begins with a part of [`BEGUN`], so that all phases occur often.
fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    (0..=BEGUN.len(), prop::collection::vec(step(), 0..25)).prop_map(move |(length, tail)| {
        let mut steps = BEGUN[..length].to_vec();
        steps.extend(tail);
        steps
    })
}

/// Conversation with its output so far.
struct Run {
    host: Conversation,
    sent: Vec<u8>,
    events: Vec<Event>,
    words: Vec<Word>,
    answered: u64,
    vtime_ns: u64,
}

impl Run {
    fn new(script: AgentScript) -> Run {
        let (sent, events, words) = (Vec::new(), Vec::new(), Vec::new());
        Run { host: Conversation::new(script), sent, events, words, answered: 0, vtime_ns: 0 }
    }

    fn hear(&mut self, port: Port, bytes: &[u8], cut: usize, stored: bool) {
        for piece in bytes.chunks(cut) {
            self.vtime_ns += 1;
            self.host.received(port, piece, self.vtime_ns);
            self.pause(stored);
        }
    }

    /// Takes the output between two actions. With `stored`, also stores and restores the conversation.
    fn pause(&mut self, stored: bool) {
        self.events.append(&mut self.host.take_events());
        self.words.append(&mut self.host.take_words());
        if stored {
            let bytes = postcard::to_stdvec(&self.host.save()).unwrap();
            let state: ConversationState = postcard::from_bytes(&bytes).unwrap();
            self.host = Conversation::resume(self.host.script().clone(), state).unwrap();
        }
        self.sent.append(&mut self.host.take_outgoing());
    }

    fn step(&mut self, step: &Step, cut: usize, stored: bool) {
        let control = |message: &Message| (Port::Control, encode_message(message).unwrap());
        let (port, bytes) = match step {
            Step::Answer(kind) => {
                self.answered += 1;
                let reply = match kind {
                    0..9 => Reply::Done,
                    9 => Reply::Exited(Exit::Code(0)),
                    10 => Reply::Exited(Exit::Code(1)),
                    12 => Reply::Names(vec!["parallel_driver_p".to_owned()]),
                    _ => Reply::Error { message: "no".to_owned() },
                };
                control(&Message::Response(Response { id: self.answered, reply }))
            }
            Step::Ready => control(&Message::Ready),
            Step::Exited(service, code) => {
                let services = ["server", "load", "@0.0", "@0.1"];
                let service = services[usize::from(*service)].to_owned();
                control(&Message::Exited(Exited { service, exit: Exit::Code(*code), restarting: false }))
            }
            Step::Print(text) => {
                let output = Output {
                    unit: Unit::Service("server".to_owned()),
                    stream: Stream::Stdout,
                    text: text.as_str().into(),
                    truncated: false,
                    unfinished: false,
                };
                (Port::Log, encode_output(&output).unwrap())
            }
            Step::Garbage(bytes) => (Port::Control, bytes.clone()),
            Step::Write(bytes) => (Port::History, bytes.clone()),
            Step::Join => return self.host.join(vec![1; 64], self.vtime_ns),
            Step::Begin(seed) => return self.host.begin(Seed::new(*seed), vec![2; 64], self.vtime_ns),
            Step::End => return self.host.end(self.vtime_ns),
            Step::Command => {
                return self.host.command("command", script().checks[0].exec.clone(), self.vtime_ns);
            }
            // Like the composer, which decides when test commands start, the test starts at most RUNS_MAX runs at a
            // time, and simultaneous runs have different numbers.
            Step::TestCommand(run, known) => {
                let at = &self.host.save().progress;
                if self.host.takes_commands()
                    && at.runs.len() < super::RUNS_MAX
                    && at.runs.iter().all(|other| other.run != *run)
                {
                    let name = if *known { "parallel_driver_p" } else { "anytime_gone" };
                    self.host.start_command(*run, name, self.vtime_ns);
                }
                return;
            }
            Step::Kill => return self.host.kill_commands(self.vtime_ns),
            Step::PowerOff => return self.host.power_off(self.vtime_ns),
            Step::Restart => return self.host.restart_service("server", self.vtime_ns),
            Step::KillLate => return self.host.kill_late(self.vtime_ns),
        };
        self.hear(port, &bytes, cut, stored);
    }
}

fn run(mut run: Run, steps: &[Step], cut: usize, stored: impl Fn(usize) -> bool) -> Run {
    let hello = Hello { version: everett_protocol::VERSION, release: "6.1".to_owned() };
    run.hear(Port::Control, &encode_message(&Message::Hello(hello)).unwrap(), cut, stored(0));
    for (index, step) in steps.iter().enumerate() {
        run.step(step, cut, stored(index));
        run.pause(stored(index));
    }
    run
}

proptest! {
    /// A conversation may be stored and restored between any two bytes that the guest sends. It then sends the same
    /// requests and reports the same events as a conversation that was never stored.
    #[test]
    fn storing_changes_nothing(steps in any_steps(), cut in 1..60usize, places: u32) {
        let straight = run(Run::new(with_template()), &steps, cut, |_| false);
        let stored = run(Run::new(with_template()), &steps, cut, |index| places >> (index % 32) & 1 == 1);
        prop_assert_eq!(&straight.sent, &stored.sent);
        prop_assert_eq!(&straight.events, &stored.events);
        prop_assert_eq!(&straight.words, &stored.words);
        prop_assert_eq!(straight.host.save(), stored.host.save());
    }

    /// A real state with changed bytes is refused, or continues to the end of the workload without a panic. A
    /// conversation that continues from a state can be stored, and the new state passes the check again.
    #[test]
    fn damaged_states_cause_no_panic(
        steps in any_steps(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let state = run(Run::new(with_template()), &steps, 1000, |_| false).host.save();
        let mut bytes = postcard::to_stdvec(&state).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let Ok(state) = postcard::from_bytes::<ConversationState>(&bytes) else { return Ok(()) };
        let Ok(host) = Conversation::resume(with_template(), state) else { return Ok(()) };
        prop_assert!(Conversation::resume(with_template(), host.save()).is_ok());
        let mut run = Run { host, ..Run::new(with_template()) };
        for step in &steps {
            run.step(step, 1000, false);
        }
        run.host.end(99);
        prop_assert_ne!(run.host.phase(), Phase::Running);
        run.host.boot_took_too_long(99, "a minute");
    }

    /// A state that passes the check passes it again after storing.
    #[test]
    fn garbage_is_refused_or_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(state) = postcard::from_bytes::<ConversationState>(&bytes) {
            let resumed = Conversation::resume(with_template(), state);
            prop_assert!(resumed.is_err() || Conversation::resume(with_template(), resumed.unwrap().save()).is_ok());
        }
    }
}

/// Returns a restart whose service is killed at `kill_ns`.
fn asked(kill_ns: u64) -> Restart {
    Restart { stage: Stage::Asked, kill_ns, request: 1 }
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let begun = || {
        let steps = [&BEGUN[..], &[Step::TestCommand(0, true)]].concat();
        let run = run(Run::new(with_template()), &steps, 1000, |_| false);
        assert_eq!(run.host.phase(), Phase::Running);
        run.host.save()
    };
    let refused = |change: fn(&mut ConversationState)| {
        let mut state = begun();
        change(&mut state);
        Conversation::resume(with_template(), state).unwrap_err()
    };
    assert!(Conversation::resume(with_template(), begun()).is_ok());
    let mut restarting = begun();
    restarting.progress.restarts = [("server".to_owned(), asked(1))].into();
    restarting.progress.down = ["server", "load", "@0.5"].map(str::to_owned).into();
    assert!(Conversation::resume(with_template(), restarting).is_ok());
    let error = Conversation::resume(script(), begun()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the stored conversation asked for a test template, which the world does not have"
    );
    let error = refused(|state| state.progress.names.insert(0, "z".to_owned()));
    assert!(matches!(error, StateError::List(_)), "{error}");
    let error = refused(|state| state.progress.runs = vec![state.progress.runs[0]; 7]);
    assert!(matches!(error, StateError::TooMany { count: 7, max: 6, .. }), "{error}");
    let error = refused(|state| state.progress.drivers.clear());
    assert!(matches!(error, StateError::Drivers { stored: 0, of_world: 1 }), "{error}");
    let error = refused(|state| {
        state.progress.pending.insert(1, super::Purpose::Check(7));
    });
    assert!(matches!(error, StateError::Unknown { .. }), "{error}");
    for change in [
        (|state| state.progress.restarts = [("load".to_owned(), asked(1))].into())
            as fn(&mut ConversationState),
        |state| state.progress.down = ["other".to_owned()].into(),
        |state| state.progress.down = ["@1.0".to_owned()].into(),
        |state| state.progress.down = ["@0.6".to_owned()].into(),
        |state| state.progress.down = ["@00.0".to_owned()].into(),
        |state| state.progress.pending = [(1, super::Purpose::Again("load".to_owned()))].into(),
    ] {
        let error = refused(change);
        assert!(matches!(error, StateError::Unknown { .. }), "{error}");
    }
    let error = refused(|state| {
        state.progress.pending = (0..5000).map(|id| (id, super::Purpose::Command)).collect();
    });
    assert!(matches!(error, StateError::TooMany { count: 5000, .. }), "{error}");
    for change in [
        (|state| state.progress.next_id = 0) as fn(&mut ConversationState),
        |state| state.progress.seed = None,
        |state| state.progress.ready_ns = None,
        |state| state.progress.ready_ns = Some(u64::MAX),
        |state| state.progress.phase = Phase::Mounted,
        |state| state.progress.runs[0].command = 1,
        |state| state.progress.runs[0].slot = usize::MAX,
        |state| state.progress.names.clear(),
        |state| state.progress.restarts = [("server".to_owned(), asked(u64::MAX))].into(),
        |state| {
            let restart = Restart { request: state.progress.next_id, ..asked(1) };
            state.progress.restarts = [("server".to_owned(), restart)].into();
        },
        |state| (state.progress.phase, state.progress.seed) = (Phase::Ready, None),
    ] {
        let error = refused(change);
        assert!(matches!(error, StateError::Inconsistent(_)), "{error}");
    }
    for change in [(|state| state.log.bytes = b"a\n".to_vec()) as fn(&mut ConversationState), |state| {
        state.history.partial.bytes = b"a\n".to_vec()
    }] {
        let error = refused(change);
        assert!(matches!(error, StateError::Line(_)), "{error}");
    }
    let error = refused(|state| state.history.flooded = true);
    assert!(matches!(error, StateError::Inconsistent(_)), "{error}");
}
