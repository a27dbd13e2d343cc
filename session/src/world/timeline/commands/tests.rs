//! Tests of the stored state of test commands, valid and damaged. The tests that run commands in guests are in
//! `everett/tests/guest`.

use everett_streams::Seed;
use proptest::prelude::*;

use super::*;

fn files() -> Vec<(u16, String)> {
    let name = |node, name: &str| (node, name.to_owned());
    vec![name(0, "first_a"), name(0, "parallel_driver_b"), name(1, "parallel_driver_b"), name(1, "finally_c")]
}

/// Returns the state after the command `first_a` has ended, but before the composer has received the message that the
/// command ended. The composer decides when commands run.
pub(in crate::world::timeline) fn commands() -> Commands {
    let template = Template::new(files()).unwrap();
    let mut streams = Streams::new(&Lineage::new(Seed::new(1)), Owner::Composer);
    let mut composer = Composer::begin(&template, 5, streams.get(Purpose::Commands));
    assert_eq!(composer.act(6, streams.get(Purpose::Commands)).len(), 1);
    let (composer, tally) = composer.finish();
    let words = vec![(7, 1, Said::Begun), (9, 0, Said::Ended { run: 0, success: true, killed: false })];
    Commands { files: files(), composer, tally, streams, words, awaited: BTreeSet::from([1]), gone_ns: None }
}

#[test]
fn stored_commands_continue() {
    let mut commands = commands();
    let mut composing = commands.check(2).unwrap();
    assert!(!composing.faults_allowed && !composing.is_over);
    assert_eq!(composing.due_ns, None, "it must wait for the `first_` command");
    commands.tell(&mut composing, |composer, _| composer.ended(0, 9, true, false)).unwrap();
    assert!(composing.faults_allowed);
    assert_eq!(composing.due_ns, Some(9));
    let counts = commands.tally.get("first_a").unwrap();
    assert_eq!(
        (counts.started, counts.succeeded),
        (1, 1),
        "the tally covers the time before and after storing"
    );
}

#[test]
fn impossible_states_are_refused() {
    type Change = fn(&mut Commands);
    let changes: [Change; 9] = [
        |commands| commands.files.retain(|(_, name)| !name.starts_with("first_")),
        |commands| commands.files[0].1 = "run.sh".to_owned(),
        |commands| commands.files[0].0 = 2,
        |commands| commands.files = vec![commands.files[0].clone(); 2 * COMMANDS_MAX + 1],
        |commands| commands.words[1].1 = 2,
        |commands| commands.words.reverse(),
        |commands| commands.words = vec![commands.words[0]; 2 * WORDS_OF_NODE_MAX + 1],
        |commands| commands.words[1].0 = u64::MAX,
        |commands| _ = commands.awaited.insert(7),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut commands = commands();
        change(&mut commands);
        assert!(commands.check(2).is_err(), "change {number}");
    }
    assert!(commands().check(1).is_err());
}

proptest! {
    #[test]
    fn damage_is_refused_or_survived(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = postcard::to_stdvec(&commands()).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(mut commands) = postcard::from_bytes::<Commands>(&bytes)
            && let Ok(mut composing) = commands.check(2)
        {
            let told = commands.tell(&mut composing, |composer, streams| {
                composer.ended(0, 9, true, false);
                composer.stop(10);
                composer.act(11, streams.get(Purpose::Commands)).len()
            });
            prop_assert!(told.is_ok());
        }
    }
}
