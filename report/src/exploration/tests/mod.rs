//! Tests of reports on explorations, with handmade records (the results of branches).

#[path = "../../../../explorer/src/run/tests/sample.rs"]
mod sample;

use proptest::prelude::*;
use serde_json::Value;

use self::sample::{delta, header, hit, record, state, tally};
use super::*;
use everett_explorer::coverage::{FaultGap, Listed, OrderGap, Point, ValueGap};
use everett_explorer::run::{EndReason, Evidence, FinalPhase, Hit, Record, Span, StrategyName};

const MINUTE_NS: u64 = 60_000_000_000;

fn merged(records: &[Record]) -> Merged {
    let mut merged = Merged::default();
    for record in records {
        merged.merge(record.clone()).unwrap();
    }
    merged
}

/// Returns records of eight branches in three subtrees. Most texts from guests contain `word`.
fn records(word: &str) -> Vec<Record> {
    let froms = [None, None, Some(0), Some(2), None, Some(1), Some(3), Some(4)];
    let paths = [
        "1000.1",
        "1000.2",
        "1000.1/1000001000.1",
        "1000.1/1000001000.1/2000001000.1",
        "1000.3",
        "1000.2/1000001000.1",
        "1000.1/1000001000.1/2000001000.1/3000001000.1",
        "1000.3/1000001000.1",
    ];
    let mut records: Vec<Record> = (0..)
        .zip(froms.into_iter().zip(paths))
        .map(|(choice, (from, path))| {
            let mut points = vec![(state(&format!("{word}{}", choice / 2 * choice % 5)), 2_000)];
            points.push((Point::Phase { phase: format!("up {word}") }, 2_000));
            Record {
                cpu_ns: (choice + 1) * MINUTE_NS,
                instructions: (choice + 1) * 1_000_000_000,
                final_phase: (choice % 2 == 1).then_some(FinalPhase {
                    calm: Span { instructions: choice * 50_000_000, vtime_ns: 1_000_000_000 },
                    checks: Span { instructions: choice * 100_000_000, vtime_ns: choice * 1_000_000_000 },
                }),
                executed: (choice + 2) * 1_000_000_000,
                checked: choice % 2 == 1,
                delta: delta(&points),
                ..record(choice, from, path)
            }
        })
        .collect();
    let evidence = Evidence {
        lines: vec![format!("db | lost {word}")],
        packets: vec![format!("n1 > n2 {word}")],
        faults: vec![format!("power_loss {word}")],
    };
    let lost = |vtime_ns| {
        let text = format!("key \"a\": read 3 cannot be\n  it is {word}");
        Hit { text, evidence: evidence.clone(), ..hit(&format!("lost_writes {word}"), word, vtime_ns) }
    };
    records[3].hits = vec![lost(2_500_001_000)];
    records[6].hits = vec![lost(3_000_002_000)];
    records[5].hits =
        vec![Hit { node: None, evidence: Evidence::default(), ..hit("oops", "oops", 1_200_000_000) }];
    records[2].sometimes = vec![format!("elected {word}")];
    records[1].history =
        Some(HistoryCount { operations: 12_000, acknowledged: 11_200, failed: 300, problems: 7, unknown: 5 });
    // A command's name is a file name, so it contains neither a slash nor a NUL.
    let named = |prefix: &str| format!("{prefix}of {}", word.replace(['/', '\0'], "|"));
    let (fails, hangs) = (named("anytime_"), named("parallel_driver_"));
    let early =
        [(fails.as_str(), [3, 0, 2]), (&hangs, [1, 0, 0]), ("finally_all", [0; 3]), ("first_a", [0; 3])];
    records[0].commands = tally(&early);
    records[4].commands = tally(&[(&fails, [1, 0, 1]), ("first_a", [1, 1, 0])]);
    records[6].commands = tally(&[("first_a", [1, 1, 0])]);
    records[7].log_cut = true;
    records[4].broken = Some("no memory".to_owned());
    records
}

fn gaps(word: &str) -> Gaps {
    let fault = |fault: &str, phase: &str, seen| FaultGap {
        fault: fault.to_owned(),
        phase: format!("{phase} {word}"),
        seen,
    };
    Gaps {
        faults: Listed {
            first: vec![fault("clog", "up", 8), fault("loss", "up", 8), fault("loss", "off", 1)],
            count: 3,
        },
        orders: Listed {
            first: vec![OrderGap {
                first: format!("a {word}"),
                then: format!("b {word}"),
                across: true,
                reversed: 4,
            }],
            count: 1,
        },
        values: Listed {
            first: vec![ValueGap {
                rule: "leader".to_owned(),
                variable: "role".to_owned(),
                value: format!("candidate {word}"),
            }],
            count: 1,
        },
    }
}

fn report(word: &str) -> Report {
    let merged = merged(&records(word));
    let (gaps, end) = (gaps(word), merged.end(EndReason::Branches, 0));
    let sometimes = [format!("elected {word}"), format!("failed over {word}")].into();
    let about =
        About { run: "runs/etcd 1", end: Some(&end), waiting: 2, gaps: Some(&gaps), sometimes: &sometimes };
    Report::of(&header(), &merged, &about)
}

#[test]
fn a_whole_report() {
    let text = report("x").markdown();
    assert_eq!(text, include_str!("whole.md"), "\n{text}");
}

#[test]
fn a_report_of_no_branches() {
    let uniform = Header { strategy: StrategyName("uniform".to_owned()), ..header() };
    let about = About { run: "r", end: None, waiting: 0, gaps: None, sometimes: &BTreeSet::new() };
    let report = Report::of(&uniform, &Merged::default(), &about);
    let text = report.markdown();
    for line in [
        "**Nothing was found** in 0 branches of 0 subtrees. \
         The exploration is running, or was killed and can be resumed.",
        "| states | 0 |  | 0 | 0 | 0 | ? |",
        "No points were reached, so the unseen share cannot be estimated.",
        "It is not known which faults, orders and values were not seen.",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    for word in ["Findings", "Histories", "Missing", "adaptive"] {
        assert!(!text.contains(word), "{word}");
    }
    let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!((&json["end"], &json["coverage"][0]["unseen_ppm"]), (&Value::Null, &Value::Null));
}

/// With strategy `pct` (random priorities of nodes), a report states a minimum of the probability that the exploration
/// finds a bug. The minimum follows from the number of nodes, the messages of the longest timeline, the number of
/// subtrees, and the world file's `depth` (the number of ordering constraints that the bug needs).
#[test]
fn random_priorities_have_a_guarantee() {
    let of = |header: &Header, records: &[Record]| {
        let about = About { run: "r", end: None, waiting: 0, gaps: None, sometimes: &BTreeSet::new() };
        Report::of(header, &merged(records), &about)
    };
    let named = |strategy: &str| Header {
        strategy: StrategyName(strategy.to_owned()),
        world: serde_json::json!({ "explore": { "depth": 2 } }),
        ..header()
    };
    let (pct, mut records) = (named("pct"), records("x"));
    let text = of(&pct, &records).markdown();
    // The longest timeline has four branches with 20 messages each.
    let line = "The guarantee of random priorities is only heuristic, because latency does not order messages strictly. \
                If it did, a run with 80 messages of 2 nodes would find a bug of depth 2 with a probability of at least \
                1/160. The bound for all runs together (3) is 1.9 %. No timeline reached the horizon, so a run may have \
                more than 80 messages.";
    assert!(text.contains(&format!("\n## Random priorities\n\n{line}\n\n## Not seen\n")), "{text}");
    records[7].open_ns = None;
    let report = of(&pct, &records);
    assert!(report.markdown().contains("together (3) is 1.9 %.\n"), "{}", report.markdown());
    let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let promise = &json["promise"];
    assert_eq!(
        [&promise["chains"], &promise["messages"], &promise["depth"], &promise["runs"]],
        [2, 80, 2, 3]
    );
    assert_eq!((&promise["probability"], &promise["whole"]), (&(1.0 / 160.0).into(), &true.into()));
    assert!(of(&pct, &[]).markdown().contains("There is no bound for depth 2, 2 nodes and 0 messages a run"));
    let unknown = Header { world: Value::Null, ..named("pct") };
    for other in [named("novelty"), named("uniform"), unknown] {
        let report = of(&other, &records);
        assert_eq!(report.promise, None);
        assert!(!report.markdown().contains("Random priorities"));
    }
}

#[test]
fn rates_of_a_uniform_search_are_not_adaptive() {
    let uniform = Header { strategy: StrategyName("uniform".to_owned()), ..header() };
    let about = About { run: "r", end: None, waiting: 0, gaps: None, sometimes: &BTreeSet::new() };
    let report = Report::of(&uniform, &merged(&records("x")), &about);
    assert!(!report.findings[0].findable.adaptive);
    assert!(!report.markdown().contains("adaptive"));
}

#[test]
fn numbers_equal_those_computed_by_hand() {
    let report = report("x");
    // The subtrees are: branches 0, 2, 3, 6; branches 1, 5; branches 4, 7.
    let [lost, oops] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    assert_eq!((lost.id, lost.first, lost.branches, lost.subtrees), (1, 3, 2, 1));
    assert_eq!((oops.id, oops.first, oops.branches, oops.subtrees), (2, 5, 1, 1));
    // The first four branches cost 1 + 2 + 3 + 4 minutes.
    assert_eq!(lost.findable.first.cpu_ns, 10 * MINUTE_NS);
    // The first subtree costs 1 + 3 + 4 minutes up to its hit, i.e. the first branch with this finding. The others have
    // no hit, and cost 2 + 6 and 5 + 8 minutes in all.
    let pace = lost.findable.cpu;
    assert_eq!((pace.time, pace.hits, pace.mean), (29 * MINUTE_NS, 1, Some(29 * MINUTE_NS)));
    assert!((pace.rate.unwrap() - 60.0 / 29.0).abs() < 1e-9);
    // Time without a hit after which the bug counts as gone: 29 * (1 / 0.05 - 1) minutes. A present bug would stay
    // hidden for so long with probability 0.05.
    assert_eq!(pace.clean, Some(19 * 29 * MINUTE_NS));
    assert_eq!(lost.findable.instructions.time, 29_000_000_000);
    let [states, phases, ..] = report.coverage.as_slice() else { panic!("{:?}", report.coverage) };
    let figures = states.figures;
    // The branches reach the states 0, 0, 2, 3, 3, 0, 3, 1: two of four states are reached once, and none twice.
    assert_eq!((figures.points, figures.once, figures.more, figures.unseen_ppm), (4, 2, 1, Some(250_000)));
    // State 1 was reached last.
    assert_eq!((figures.recent, phases.figures.recent), (1, 0));
    assert_eq!(states.growth.len(), 8);
    assert_eq!(report.never, ["failed over x"]);
    let succeeded = |command: &TestCommand| (command.name.clone(), command.first, command.branches);
    assert_eq!(
        report.commands.iter().map(succeeded).collect::<Vec<_>>()[1..3],
        [("finally_all".to_owned(), None, 0), ("first_a".to_owned(), Some(4), 2)]
    );
}

#[test]
fn json_has_all_of_the_lists_that_markdown_cuts() {
    let mut records = records("x");
    records[0].hits = (0..60).map(|i| hit("p", &i.to_string(), 1_500)).collect();
    let merged = merged(&records);
    let mut gaps = gaps("x");
    gaps.values.first = vec![gaps.values.first[0].clone(); 30];
    gaps.values.count = 1234;
    let about = About { run: "r", end: None, waiting: 0, gaps: Some(&gaps), sometimes: &BTreeSet::new() };
    let report = Report::of(&header(), &merged, &about);
    let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(62));
    assert_eq!(json["gaps"]["values"]["first"].as_array().map(Vec::len), Some(30));
    assert_eq!((&json["header"]["seed"], &json["header"]["world"]), (&7.into(), &Value::Null));
    assert_eq!(json["findings"][61]["path"], "1000.2/1000001000.1");
    let text = report.markdown();
    assert_eq!(text.matches("\n### ").count(), 50);
    assert!(text.contains("\nThe JSON report has 12 more.\n"));
    assert!(text.contains("\nDeclared values that were never seen, 1,234:\n"));
    assert_eq!(text.matches("* `role` is `candidate x`").count(), 20);
    assert!(text.contains("\n* … and more: see the JSON report"));
}

/// Returns the lines outside code blocks, and the number of code blocks.
fn outside(text: &str) -> (Vec<&str>, usize) {
    let mut fence: Option<&str> = None;
    let mut blocks = 0;
    let mut lines = Vec::new();
    for line in text.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if ticks.len() >= open.len() && line == ticks => fence = None,
            Some(_) => {}
            None if line.strip_suffix("text") == Some(ticks) && ticks.len() > 2 => {
                fence = Some(ticks);
                blocks += 1;
            }
            None => lines.push(line),
        }
    }
    assert_eq!(fence, None);
    (lines, blocks)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No text from a guest breaks out of its code span or block, or adds or removes a line outside of code blocks.
    #[test]
    fn texts_of_guests_stay_in_their_spans(word in "[`~|#*<>_\\\\\\[\\]]{1,12}|```[a-z]{0,5}|(?s).{1,12}|\\PC{0,12}") {
        let (nasty, plain) = (report(&word).markdown(), report("x").markdown());
        prop_assert!(!nasty.contains(|c: char| c.is_control() && c != '\n'));
        let ((nasty, blocks), (plain, plain_blocks)) = (outside(&nasty), outside(&plain));
        prop_assert_eq!(blocks, plain_blocks);
        prop_assert_eq!(nasty.len(), plain.len());
        for (nasty, plain) in nasty.into_iter().zip(plain) {
            let start = |line: &str| line.split('`').next().unwrap_or_default().to_owned();
            // Lines with coverage figures or digests may differ, because they depend on the texts from guests.
            let counted = plain.starts_with("| ") || plain.starts_with("    ") || plain.starts_with("At least ");
            prop_assert!(counted || start(nasty) == start(plain), "{} {}", nasty, plain);
            prop_assert_eq!(nasty.matches('|').count() >= plain.matches('|').count(), true);
        }
    }
}
