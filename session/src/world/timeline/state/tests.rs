//! Tests of stored sessions, valid and damaged. A session is the part of a timeline's state that Everett keeps outside
//! the simulated world, such as the current check. The tests in
//! `everett/tests/guest` check, with guests, that storing a session does not change its timeline.

use everett_streams::Seed;
use everett_vmm::digest::Digest;
use proptest::prelude::*;

use super::*;
use crate::world::conversation::Conversation;
use crate::world::conversation::tests::script;

/// Returns a trail with a digest at each of these vtimes. `Trail` has no constructor for given digests, so the function
/// decodes the trail from its stored form.
fn trail(interval_ns: u64, points: &[u64]) -> Trail {
    let points: Vec<_> = points.iter().map(|&at| (at, Digest([7; 32]))).collect();
    postcard::from_bytes(&postcard::to_stdvec(&(interval_ns, points)).unwrap()).unwrap()
}

fn state() -> SessionState {
    let conversation = Conversation::new(script()).save();
    let nodes = vec![SessionOfNode { node: "a".to_owned(), conversation, course: node_course() }];
    let reporting = Reporting::default();
    SessionState { version: SESSION_VERSION, nodes, course: course(), reporting, talk: None }
}

fn node_course() -> NodeCourse {
    NodeCourse {
        unsent: b"{}\n".to_vec(),
        retry_at_ns: Some(200_000_007),
        boot_until_ns: None,
        begun: None,
        wall_ns: Some(7),
        priorities: Vec::new(),
        switched_off: false,
        end_reported: false,
        last_words: None,
    }
}

fn course() -> Course {
    Course {
        trail: trail(TRAIL_INTERVAL_NS, &[0, 100_000_000, 200_000_001]),
        stage: Stage::Running { root: 150_000_000 },
        begin_with: None,
        begun: Some(Seed::new(9)),
        duration_ns: Some(5),
        path: "150000000.3".parse().unwrap(),
        fork_with: None,
        command: Some(script().checks[0].exec.clone()),
        faults: None,
        commands: None,
        endpoint_streams: Streams::new(&Lineage::new(Seed::new(9)), Owner::Endpoint),
        quiet: Vec::new(),
        restarts: vec![(300_000_000, 0)],
    }
}

fn check(state: &SessionState) -> Result<(), StateError> {
    state.check(std::iter::once(&script()), &[WorldCheck::Agent(0, 0)])
}

#[test]
fn test_commands_must_match_the_template() {
    let with = |template: Option<&str>, commands: bool, stage: Stage| {
        let script = |node: &str| AgentScript {
            node: node.to_owned(),
            template: template.map(str::to_owned),
            ..script()
        };
        let node = |node: &str| SessionOfNode { node: node.to_owned(), ..state().nodes.remove(0) };
        let commands = commands.then(super::super::commands::tests::commands);
        let course = Course { commands, stage, ..course() };
        let state = SessionState { nodes: vec![node("a"), node("b")], course, ..state() };
        let read = SessionState::from_bytes(&state.to_bytes().unwrap()).unwrap();
        assert_eq!(read, state);
        read.check([&script("a"), &script("b")].into_iter(), &[WorldCheck::Agent(0, 0)]).is_ok()
    };
    let running = Stage::Running { root: 1 };
    assert!(with(Some("/t"), true, running) && with(None, false, running));
    assert!(!with(None, true, running) && !with(Some("/t"), false, running));
    assert!(with(Some("/t"), false, Stage::Done { root: 1 }), "an invalid template may end the timeline");
    assert!(!with(Some("/t"), true, Stage::Calm { root: 1, at: u64::MAX }));
}

#[test]
fn a_state_survives_its_stored_form() {
    let bytes = state().to_bytes().unwrap();
    let read = SessionState::from_bytes(&bytes).unwrap();
    assert_eq!(read, state());
    assert!(check(&read).is_ok());
}

#[test]
fn other_versions_and_trailing_bytes_are_refused() {
    let other = SessionState { version: 77, ..state() }.to_bytes().unwrap();
    assert!(matches!(SessionState::from_bytes(&other), Err(StateError::Version(77))));
    // The version is decoded first, so the other bytes can be invalid.
    assert!(matches!(SessionState::from_bytes(&[78]), Err(StateError::Version(78))));
    let mut longer = state().to_bytes().unwrap();
    longer.extend([0, 0]);
    assert!(matches!(SessionState::from_bytes(&longer), Err(StateError::Trailing(2))));
    assert!(matches!(SessionState::from_bytes(&[]), Err(StateError::Malformed(_))));
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let refused = |state: SessionState| check(&state).unwrap_err();
    let mut other = state();
    other.nodes[0].node = "b".to_owned();
    assert_eq!(refused(other).to_string(), "the stored session is of the nodes b, not a");
    for course in [
        Course { trail: trail(0, &[]), ..course() },
        Course { trail: trail(TRAIL_INTERVAL_NS, &[5, 5]), ..course() },
        Course { trail: trail(TRAIL_INTERVAL_NS, &[u64::MAX]), ..course() },
        Course { stage: Stage::Running { root: u64::MAX }, ..course() },
        Course { stage: Stage::Stopping { root: 1, until: u64::MAX }, ..course() },
        Course { stage: Stage::Checking { root: 1, next: 2, at: 3, started: false }, ..course() },
        Course { stage: Stage::Booting, ..course() },
        Course { begun: None, ..course() },
        Course { begin_with: Some(Seed::new(1)), ..course() },
        Course { restarts: vec![(1, 1)], ..course() },
        Course { restarts: vec![(1, 0), (2, 0)], ..course() },
        Course { restarts: vec![(2, 0), (1, 0)], ..course() },
        Course { restarts: vec![(u64::MAX, 0)], ..course() },
    ] {
        let error = refused(SessionState { course, ..state() });
        assert!(matches!(error, StateError::Inconsistent(_)), "{error}");
    }
    for course in [
        NodeCourse { retry_at_ns: Some(u64::MAX), ..node_course() },
        NodeCourse { retry_at_ns: None, ..node_course() },
        NodeCourse { unsent: Vec::new(), ..node_course() },
        NodeCourse { boot_until_ns: Some(u64::MAX), ..node_course() },
        NodeCourse { unsent: vec![0; UNSENT_BYTES_MAX + 1], ..node_course() },
    ] {
        let mut state = state();
        state.nodes[0].course = course;
        let error = refused(state);
        assert!(matches!(error, StateError::Inconsistent(_)), "{error}");
    }
    let argv = |argv: &[&str]| Exec::new(argv.iter().copied().map(str::to_owned).collect());
    for command in [argv(&[]), Exec { limit_ms: Some(99_999_999_999), ..argv(&["a"]) }] {
        let error =
            refused(SessionState { course: Course { command: Some(command), ..course() }, ..state() });
        assert!(matches!(error, StateError::Command(_)), "{error}");
    }
}

proptest! {
    /// If random bytes decode as a state, even an invalid one, storing and decoding the state gives an equal state.
    #[test]
    fn garbage_is_refused_or_checked(mut bytes in prop::collection::vec(any::<u8>(), 0..300), versioned: bool) {
        if let (true, Some(first)) = (versioned, bytes.first_mut()) {
            *first = SESSION_VERSION as u8;
        }
        if let Ok(state) = SessionState::from_bytes(&bytes) {
            let _ = check(&state);
            prop_assert_eq!(SessionState::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);
        }
    }

    /// The check of a real state with some changed bytes does not panic. A state that passes can be stored again.
    #[test]
    fn a_damaged_state_is_refused_or_checked(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = state().to_bytes().unwrap();
        prop_assert!(SessionState::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(state) = SessionState::from_bytes(&bytes)
            && check(&state).is_ok()
        {
            prop_assert!(state.to_bytes().is_ok());
        }
    }
}
