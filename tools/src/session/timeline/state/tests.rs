//! Stored sessions, real and damaged. That storing changes nothing is tested where there is a guest to store.

use everett_vmm::digest::Digest;
use proptest::prelude::*;

use super::*;
use crate::session::agent::Conversation;
use crate::session::agent::tests::plan;

/// A trail is opaque: one with these points, by way of its stored form.
fn trail(interval_ns: u64, points: &[u64]) -> Trail {
    let points: Vec<_> = points.iter().map(|&at| (at, Digest([7; 32]))).collect();
    postcard::from_bytes(&postcard::to_stdvec(&(interval_ns, points)).unwrap()).unwrap()
}

fn state() -> SessionState {
    SessionState {
        version: SESSION_VERSION,
        node: "a".to_owned(),
        conversation: Conversation::new(plan()).save(),
        course: course(),
    }
}

fn course() -> Course {
    Course {
        trail: trail(TRAIL_INTERVAL_NS, &[0, 100_000_000, 200_000_001]),
        unsent: b"{}\n".to_vec(),
        retry_at_ns: Some(200_000_007),
        begin_with: Some(9),
        boot_until_ns: None,
        duration_ns: Some(5),
        ended: false,
        command: Some(plan().checks[0].exec.clone()),
        end_reported: false,
        last_words: None,
    }
}

#[test]
fn a_state_survives_its_stored_form() {
    let bytes = state().to_bytes().unwrap();
    let read = SessionState::from_bytes(&bytes).unwrap();
    assert_eq!(read, state());
    assert!(read.check(&plan()).is_ok());
}

#[test]
fn another_version_is_named_and_so_is_what_follows() {
    let other = SessionState { version: 77, ..state() }.to_bytes().unwrap();
    assert!(matches!(SessionState::from_bytes(&other), Err(StateError::Version(77))));
    // Whatever follows the version.
    assert!(matches!(SessionState::from_bytes(&[78]), Err(StateError::Version(78))));
    let mut longer = state().to_bytes().unwrap();
    longer.extend([0, 0]);
    assert!(matches!(SessionState::from_bytes(&longer), Err(StateError::Trailing(2))));
    assert!(matches!(SessionState::from_bytes(&[]), Err(StateError::Malformed(_))));
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let refused = |state: SessionState| state.check(&plan()).unwrap_err();
    let error = refused(SessionState { node: "b".to_owned(), ..state() });
    assert_eq!(error.to_string(), "the stored session is of node \"b\", not \"a\"");
    for changed in [
        Course { trail: trail(0, &[]), ..course() },
        Course { trail: trail(TRAIL_INTERVAL_NS, &[5, 5]), ..course() },
        Course { trail: trail(TRAIL_INTERVAL_NS, &[u64::MAX]), ..course() },
        Course { retry_at_ns: Some(u64::MAX), ..course() },
        Course { retry_at_ns: None, ..course() },
        Course { unsent: Vec::new(), ..course() },
        Course { boot_until_ns: Some(u64::MAX), ..course() },
        Course { unsent: vec![0; UNSENT_BYTES_MAX + 1], ..course() },
    ] {
        let error = refused(SessionState { course: changed, ..state() });
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
    #[test]
    fn garbage_is_refused_or_checked(mut bytes in prop::collection::vec(any::<u8>(), 0..300), versioned: bool) {
        if let (true, Some(first)) = (versioned, bytes.first_mut()) {
            *first = SESSION_VERSION as u8;
        }
        if let Ok(state) = SessionState::from_bytes(&bytes) {
            let _ = state.check(&plan());
        }
    }

    /// A real state with some bytes changed is refused, or checked without a panic. What passes can be stored again.
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
            && state.check(&plan()).is_ok()
        {
            prop_assert!(state.to_bytes().is_ok());
        }
    }
}
