//! Tests of the maximum size of a report's data, and of the lines in which the report names the parts that it leaves
//! out.

use everett_explorer::run::Hit;

use super::sample::{Sample, header, hit, records};
use crate::data::limits::{ENTRIES_MAX, SCENES_MAX};
use crate::scene::{Event, Scene};

fn recorded(lines: usize) -> Scene {
    let line = Event { at_ns: 1, lane: None, unit: "world".to_owned(), text: "x".to_owned() };
    Scene { events: vec![line; lines], is_recorded: true, ..Scene::default() }
}

/// If the second recorded timeline does not fit beside the first, its finding shows only its evidence, i.e. the last
/// lines and messages before it.
#[test]
fn recorded_timelines_share_the_room_of_a_report() {
    let sample = Sample::new(&header("x"), &records("x"), "x");
    let data = |lines: [usize; 2]| {
        let data = sample.data_with(&[], [(1, recorded(lines[0])), (2, recorded(lines[1]))].into());
        let whole: Vec<bool> =
            data.findings.iter().map(|finding| finding.scene.as_ref().unwrap().is_recorded).collect();
        (whole, data.missing)
    };
    let shortened = "the whole timelines of 1 findings";
    let (whole, missing) = data([ENTRIES_MAX - 10, 10]);
    assert_eq!(whole, [true, true]);
    assert!(!missing.iter().any(|line| line.starts_with(shortened)), "{missing:?}");
    let (whole, missing) = data([ENTRIES_MAX - 10, 11]);
    assert_eq!(whole, [true, false]);
    assert!(missing.iter().any(|line| line.starts_with(shortened)), "{missing:?}");
    let (whole, _) = data([ENTRIES_MAX + 1, 11]);
    assert_eq!(whole, [false, true], "a timeline that does not fit takes no room");
}

#[test]
fn findings_beyond_a_bound_have_figures_only() {
    let mut records = records("x");
    records[0].hits =
        (0..SCENES_MAX + 3).map(|n| Hit { signature: n.to_string(), ..hit("kernel oops", "x") }).collect();
    let data = Sample::new(&header("x"), &records, "x").data(&[]);
    let scenes = data.findings.iter().filter(|finding| finding.scene.is_some()).count();
    let beyond = data.findings.len() - SCENES_MAX;
    assert!(scenes == SCENES_MAX && beyond >= 3);
    let said = format!("diagrams and logs of {beyond} of {} findings", data.findings.len());
    assert!(data.missing.contains(&said), "{:?}", data.missing);
}
