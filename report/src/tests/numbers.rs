//! Compares the numbers of a report with values computed by hand.

use super::sample::{self, ROOT_NS, SEGMENT_NS, Sample, data, header, records};
use crate::data::State;
use crate::scene::{Event, Outcome, Scene};
use crate::{page, text};

const MINUTE: u64 = 60_000_000_000;

#[test]
fn figures_of_a_small_run() {
    let sample = Sample::new(&header("x"), &records("x"), "x");
    let data = sample.data(&[]);
    let s = &data.summary;
    assert_eq!((s.branches, s.subtrees, s.checked, s.broken), (7, 4, 3, 1));
    assert_eq!((s.world.as_str(), s.cpu_ns, s.vtime_ns), ("lock x", 7 * MINUTE, 7 * SEGMENT_NS));
    assert_eq!(s.host_ns, Some(5_000_000_000));
    assert_eq!((s.failed, s.never_reached), (2, 1));
    // The branches 1, 3 and 5 each had a final phase, in which the world comes to rest and checks run. The seven
    // branches took 7 billion instructions. Of these, the final phases took 0.3 billion until the world was at rest,
    // and 0.36 billion for checks.
    let told = "3 final phases take 9 % of all instructions: 4 % until the world is at rest, 5 % for checks; the longest checks \
                take 5.00 s of vtime, after branch 5";
    assert_eq!(s.final_phases_told.as_deref(), Some(told));
    assert!(text::brief(&data).iter().any(|line| line == told));
    assert_eq!(data.tree.final_m, [0, 140, 0, 220, 0, 300, 0]);
    assert_eq!(
        s.verdict,
        "2 problems were found: linearizability, no corruption x; 1 property was never reached."
    );
    let [lin, corrupt] = data.findings.as_slice() else { panic!("{:?}", data.findings) };
    assert_eq!((lin.id, lin.branch, lin.branches, lin.subtrees), (1, 2, 2, 2));
    // Branches 0, 1, 2 and 6 start at the root moment, so there are four subtrees. Those of branches 0 and 6 have no
    // hit, i.e. do not show the finding, and take a minute each. The subtree of branch 2 takes a minute up to its hit.
    // The subtree of branch 1 takes two minutes up to its hit, in branch 3.
    assert_eq!((lin.cpu.time, lin.cpu.hits), (5 * MINUTE, 2));
    assert_eq!(lin.instructions.time, 5_000_000_000);
    assert_eq!((corrupt.cpu.time, corrupt.cpu.hits), (7 * MINUTE, 1));
    assert_eq!((lin.status, data.older.len(), data.gone.len()), (None, 0, 0));
    // Finding 2 was shrunk, finding 1 was not.
    assert_eq!(corrupt.plan.as_ref().unwrap().faults[0].begin_ns, ROOT_NS + 1_000_000_000);
    assert!(
        corrupt
            .story
            .starts_with("After db stood still at 1.70 s for 2.00 s, \"no corruption x\" does not hold: "),
        "{}",
        corrupt.story
    );
    assert!(
        lin.plan.is_none() && lin.commands[1].starts_with("everett shrink runs/x 1"),
        "{:?}",
        lin.commands
    );
    let scene = lin.scene.as_ref().unwrap();
    assert_eq!((scene.events.len(), scene.messages.len(), scene.faults.len()), (2, 1, 1));
    assert_eq!((scene.operations[0].outcome, scene.operations[0].marked), (Outcome::Ok, true));
}

/// Returns the text of a page between two texts, without markup.
fn shown(page: &str, from: &str, to: &str) -> String {
    let part = page.split_once(from).unwrap().1.split_once(to).unwrap().0;
    part.split('<').map(|tag| tag.split_once('>').map_or(tag, |(_, text)| text)).collect()
}

#[test]
fn the_page_has_the_budget_and_what_was_used_of_it() {
    let mut data = data("x");
    let budget = |data: &crate::data::Data| {
        shown(&page::html(data).unwrap(), "<dt>Budget</dt>", "<dt>").replace("</dd>", "")
    };
    assert_eq!(
        budget(&data),
        "5.00 s of 60.0 s; 7 of 400 branchesrecorded: timelines of 0 of 1 finding and 1 other branch, in 2.00 s of 60.0 s"
    );
    let page = page::html(&data).unwrap();
    assert!(
        shown(&page, "id=\"explored\"", "</section>")
            .contains("The replay of branch b4 differs from the exploration: x")
    );
    let limits = data.summary.budget.as_mut().unwrap();
    (limits.branches, limits.until_found) = (None, true);
    data.summary.recordings = None;
    assert_eq!(budget(&data), "5.00 s of 60.0 s; until the first finding");
    // The last branches end after the budget, but the used time is shown as at most the budget.
    data.summary.host_ns = Some(61_000_000_000);
    assert!(budget(&data).starts_with("60.0 s of 60.0 s;"));
    data.summary.host_ns = None;
    assert!(budget(&data).starts_with("60.0 s; until"), "it has not ended: {}", budget(&data));
    data.summary.budget =
        Some(everett_explorer::run::Budget { branches: None, host_ns: None, until_found: false });
    assert_eq!(budget(&data), "none: it runs until it is stopped");
    data.summary.budget = None;
    assert_eq!(budget(&data), "not recorded");
}

/// Returns the y coordinate of the first circle in the SVG text `circle`.
fn height(circle: &str) -> &str {
    circle.split_once(" cy=\"").unwrap().1.split_once('"').unwrap().0
}

#[test]
fn likelihoods_are_plotted_at_their_height() {
    let page = page::html(&data("x")).unwrap();
    let plot = page.split_once("<svg class=\"likelihood\"").unwrap().1.split_once("</svg>").unwrap().0;
    let heights: Vec<&str> = plot.split("<circle").skip(1).map(height).collect();
    // The axis runs from y = 186 (no future shows the finding) to y = 22 (all futures do). The points lie a sixteenth,
    // an eighth and fifteen sixteenths of the way up.
    assert_eq!(heights, ["175.8", "165.5", "32.3"]);
}

#[test]
fn the_table_of_lines_has_faults_with_their_ends_and_the_last_lines() {
    let sample = Sample::new(&header("x"), &records("x"), "x");
    let lines = |scene: Scene| {
        let page = page::html(&sample.data_with(&[], [(1, scene)].into())).unwrap();
        (shown(&page, "id=\"logs-1\"", "</table>"), page)
    };
    let nodes = ["a".to_owned(), "db".to_owned()];
    let fault = |at: &str| {
        format!("   {at} #0 {{\"at\":\"1s\",\"for\":\"500ms\",\"fault\":\"power_loss\",\"node\":\"db\"}}")
    };
    let found = sample::hit("linearizability", "x");
    let hit = |faults: &[&str]| everett_explorer::run::Hit {
        evidence: everett_explorer::run::Evidence {
            faults: faults.iter().map(|at| fault(at)).collect(),
            ..found.evidence.clone()
        },
        ..found.clone()
    };
    // The finding is at 2.5 s. The second fault lasts beyond it.
    let (table, _) = lines(Scene::of_hit(&nodes, &hit(&["1.700000000", "2.100000000"])));
    let places: Vec<Option<usize>> =
        ["1.700▲db lost power", "2.200▲end of: db lost power", "2.100▲db lost power"]
            .map(|row| table.find(row))
            .to_vec();
    assert!(places.iter().all(Option::is_some) && places[0] < places[2] && places[2] < places[1], "{table}");
    assert_eq!(table.matches("end of: ").count(), 1, "{table}");
    let line = |n: u64| Event { at_ns: n, lane: Some(0), unit: "p".to_owned(), text: format!("line {n}.") };
    let long = Scene {
        lanes: nodes.to_vec(),
        found_ns: found.vtime_ns,
        events: (0..700).map(line).collect(),
        ..Scene::default()
    };
    let (table, page) = lines(long);
    assert!(page.contains("The last 600 of 701 lines."), "the finding is a line, too");
    assert!(table.contains("line 699.") && table.contains("line 101.") && !table.contains("line 100."));
}

#[test]
fn properties_have_results_and_examples() {
    let data = Sample::new(&header("x"), &records("x"), "x").data(&[]);
    let of = |name: &str| data.properties.iter().find(|property| property.name == name).unwrap();
    let lin = of("linearizability");
    // Branch 1 is the first branch with checks, and has no finding.
    assert_eq!(
        (lin.state, lin.branches, lin.example, lin.counterexample),
        (State::Failed, 2, Some(1), Some(2))
    );
    assert_eq!(
        (of("no corruption x").kind.as_str(), of("no corruption x").findings.as_slice()),
        ("never", [2].as_slice())
    );
    assert_eq!((of("kernel panic").state, of("kernel panic").example), (State::Passed, Some(1)));
    assert_eq!((of("a leader comes back").state, of("fail-over").state), (State::Passed, State::Passed));
    assert_eq!((of("never x").state, of("never x").why.as_str()), (State::NeverReached, "it was never seen"));
    assert!(
        data.properties.iter().all(|property| property.name != "out of memory"),
        "an ignored property is listed"
    );
    assert!(data.properties.is_sorted_by_key(|property| match property.state {
        State::Failed => 0,
        State::NeverReached => 1,
        State::Passed => 2,
    }));
    // Without histories and checks, properties that only they can violate are never reached.
    let mut records = records("x");
    for record in &mut records {
        (record.history, record.checked) = (None, false);
        record.hits.clear();
    }
    let data = Sample::new(&header("x"), &records, "x").data(&[]);
    let why = |name: &str| {
        data.properties
            .iter()
            .find(|property| property.name == name)
            .map(|p| (p.state, p.why.clone()))
            .unwrap()
    };
    assert_eq!(why("lost write"), (State::NeverReached, "no branch had a history of operations".to_owned()));
    assert_eq!(why("not calm"), (State::NeverReached, "no branch had checks".to_owned()));
    assert_eq!(why("a leader comes back").0, State::NeverReached);
    assert_eq!(why("kernel panic").0, State::Passed);
}

#[test]
fn columns_of_the_tree() {
    let data = data("x");
    let tree = &data.tree;
    assert_eq!(tree.from, [-1, -1, -1, 1, 1, 3, -1]);
    assert_eq!(tree.child, [1, 2, 3, 1, 2, 1, 4]);
    assert_eq!(tree.begin_ns, [0, 0, 0, SEGMENT_NS, SEGMENT_NS, 2 * SEGMENT_NS, 0]);
    assert_eq!((tree.length_ns[5], tree.cpu_ms[5], tree.instructions_m[5]), (SEGMENT_NS, 60_000, 1_000));
    assert_eq!(tree.flags, [1, 3, 1, 3, 1, 7, 1]);
    assert_eq!(tree.findings, [(2, 1), (2, 2), (3, 1)]);
    assert_eq!(tree.fault_kinds, ["power_loss", "clog"]);
    assert_eq!(tree.kinds, [1, 2, 1, 2, 1, 2, 1]);
    assert_eq!(
        tree.new_points.iter().sum::<u64>(),
        data.coverage.kinds.iter().map(|kind| kind.figures.points).sum::<u64>()
    );
}

#[test]
fn the_matrix_has_empty_cells() {
    let coverage = data("x").coverage;
    assert_eq!(coverage.faults, ["power_loss", "clog", "pause"]);
    let row = |phase: &str| coverage.phases.iter().find(|row| row.phase == phase).unwrap();
    // Branches 0, 3 and 6 reach phase 0.
    assert_eq!((row("phase 0").branches, row("phase 0").cells.as_slice()), (3, [2, 1, 0].as_slice()));
    assert_eq!(coverage.empty_cells, 3);
    assert_eq!((coverage.one_way[0].first.as_str(), coverage.one_way[0].then.as_str()), ("b", "x"));
}

#[test]
fn code_is_counted_by_binary_and_function() {
    let code = data("").code.unwrap();
    assert_eq!((code.edges, code.binaries_count), (4, 3));
    let kernel = &code.binaries[0];
    assert_eq!((kernel.name.as_str(), kernel.edges, kernel.places), ("kernel", 2, 2));
    assert_eq!((kernel.functions[0].name.as_str(), kernel.functions[0].edges), ("do_idle", 2));
    assert!(code.binaries[1..].iter().all(|binary| binary.functions.is_empty()));
}

#[test]
fn the_text_fits_a_screen() {
    let mut records = sample::records("x");
    records[0].hits = (0..60)
        .map(|n| everett_explorer::run::Hit {
            signature: n.to_string(),
            ..sample::hit("kernel oops", &"long ".repeat(400))
        })
        .collect();
    let lines = text::brief(&Sample::new(&header("x"), &records, "x").data(&[]));
    assert!(lines.len() < 48, "{} lines", lines.len());
    assert!(lines.iter().all(|line| line.chars().count() < 500), "{lines:#?}");
    assert!(lines.iter().any(|line| line == "and 54 more findings"), "{lines:#?}");
}
