//! Tests of the live view: each test makes a model (the view's state) by hand and draws it as text.

use everett_explorer::run::{Evidence, Hit, Record};
use everett_explorer::search::subtrees::Subtree;
use everett_explorer::search::{Fork, Path};
use everett_session::explore::cpu_time::CpuTime;
use everett_session::explore::expedition::{ExplorationProgress, Limits};
use everett_session::explore::working::Activity;
use everett_snapshot::store::StoreStats;
use everett_streams::Seed;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::draw::{Look, draw};
use super::keys::{Pane, Stance};
use super::model::{About, Disk, Model, Row, Tone, Worker};
use crate::ui::exploration_facts::ExplorationFacts;

fn hit(property: &str, text: &str, line: &str) -> Hit {
    Hit {
        property: property.to_owned(),
        signature: property.to_owned(),
        text: text.to_owned(),
        vtime_ns: 3_250_000_000,
        node: Some("n2".to_owned()),
        evidence: Evidence { lines: vec![line.to_owned()], ..Evidence::default() },
    }
}

fn record(choice: u64, depth: u64, hits: Vec<Hit>) -> Record {
    let forks = (1..=depth).map(|n| Fork { vtime_ns: n * 1_000_000_000, child: 1 });
    let path = forks.fold(Path::default(), |path, fork| path.child(fork).unwrap());
    Record {
        choice,
        from: (depth > 1).then(|| choice.saturating_sub(1)),
        path,
        end_ns: 9_000_000_000,
        instructions: 1,
        executed: 1,
        cpu_ns: 1,
        checked: true,
        faults: 3,
        hits,
        ..Record::default()
    }
}

/// Returns a model in the middle of an exploration with a finding.
fn model() -> Model {
    let mut model = Model::new(About {
        world: "redis-sentinel".to_owned(),
        seed: Seed::new(3),
        strategy: "novelty".to_owned(),
        run: "run".to_owned(),
        budget_s: Some(1_800.0),
        branches: None,
        memory_bytes: 4 << 30,
        root_ns: 1_000_000_000,
        depth_max: 10,
        inexact: false,
    });
    let mut progress = ExplorationProgress::default();
    for second in 0..=120u32 {
        let n = u64::from(second);
        progress.search.branches = n * 5;
        progress.search.run = n * 5;
        progress.search.states = n * 2;
        progress.search.vtime_ns = n * 10_000_000_000;
        progress.search.cpu_ns = n * 1_450_000_000;
        model.at(f64::from(second), &progress);
    }
    progress.search.findings = 1;
    progress.spent =
        CpuTime { guest_ns: 810, digest_ns: 90, moment_ns: 60, witness_ns: 40, ..CpuTime::default() };
    progress.moments = Some(StoreStats { known: 600, present: 420, bytes: 1 << 30, evicted: 0 });
    let lost = hit("lost write", "acknowledged 41, read 40", "n2/redis | promoted");
    let first = record(7, 1, vec![lost.clone()]);
    model.found(7, &lost);
    model.branch(&first, ["partition", "power_loss"].into_iter());
    model.branch(&record(8, 2, vec![lost]), ["partition"].into_iter());
    model.at(120.5, &progress);
    let row = |first, by_depth: &[u64], share, findings| Row {
        first,
        figures: Subtree { by_depth: by_depth.to_vec(), new_points: 310 - first, weight: 1, last: 9 },
        share: Some(share),
        findings,
    };
    model.subtrees = vec![row(7, &[1, 4, 8, 2], 0.12, 1), row(12, &[1, 2], 0.5, 0)];
    model.subtrees_all = 140;
    model.merged = 600;
    model.workers = vec![
        Worker { activity: Activity::Runs, branch: Some(601), vtime_ns: 3_000_000_000, seconds: 0.4 },
        Worker { activity: Activity::Waits, branch: None, vtime_ns: 0, seconds: 1.25 },
    ];
    model.uncheck(vec![("a leader comes back".to_owned(), "no branch had checks".to_owned())]);
    model.unseen_ppm = Some(31_000);
    model.more_states = 40;
    model.disk = Disk { run_bytes: 3 << 20, free_bytes: 50 << 30 };
    model
}

fn cells(model: &Model, stance: &mut Stance, width: u16, height: u16, look: Look) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, stance, look)).unwrap();
    terminal.backend().buffer().clone()
}

fn drawn(model: &Model, stance: &mut Stance, width: u16, height: u16) -> Vec<String> {
    let buffer = cells(model, stance, width, height, Look { colour: true });
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect()
}

#[test]
fn a_small_window_shows_figures_and_one_list() {
    let rows = drawn(&model(), &mut Stance::default(), 80, 24);
    let expected = include_str!("expected/80x24.txt");
    assert_eq!(rows.join("\n").trim_end(), expected.trim_end(), "{}", rows.join("\n"));
}

#[test]
fn a_large_window_shows_all_lists() {
    let rows = drawn(&model(), &mut Stance::default(), 120, 40);
    let expected = include_str!("expected/120x40.txt");
    assert_eq!(rows.join("\n").trim_end(), expected.trim_end(), "{}", rows.join("\n"));
}

#[test]
fn each_list_has_its_entries() {
    let model = model();
    for (pane, expected) in [
        (Pane::Findings, "acknowledged 41, read 40"),
        (Pane::Findings, "everett show run b7"),
        (Pane::Tree, "b12"),
        (Pane::Faults, "partition"),
        (Pane::Workers, "runs"),
        (Pane::Unchecked, "no branch had checks"),
        (Pane::Log, "found on b7 on n2: lost write"),
    ] {
        let rows = drawn(&model, &mut Stance { pane, ..Stance::default() }, 80, 24);
        assert!(rows.iter().skip(9).any(|row| row.contains(expected)), "{pane:?}\n{}", rows.join("\n"));
    }
}

#[test]
fn a_window_that_is_too_small_says_so() {
    let rows = drawn(&model(), &mut Stance::default(), 40, 10);
    assert!(rows[0].starts_with("The window has 40 columns and 10 rows;"), "{rows:?}");
    assert!(rows.join(" ").contains("600 branches, 1 findings"), "{rows:?}");
}

#[test]
fn text_of_guests_cannot_reach_the_terminal_as_it_is() {
    let mut model = model();
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}evil\r\n\u{7}";
    model.found(9, &hit(evil, evil, evil));
    let mut broken = record(10, 3, Vec::new());
    broken.broken = Some(evil.to_owned());
    model.branch(&broken, [evil].into_iter());
    model.uncheck(vec![(evil.to_owned(), evil.to_owned())]);
    for pane in Pane::ALL {
        let steps = [1; 6];
        let text = drawn(&model, &mut Stance { pane, steps, help: false }, 160, 60).join("\n");
        assert!(!text.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text}");
        assert!(text.contains("\\u{1b}[2J"), "{text}");
    }
}

#[test]
fn the_log_and_the_findings_are_bounded() {
    let mut model = model();
    for n in 0..3_000u64 {
        model.found(n, &hit(&format!("p{n}"), "x", ""));
        model.log(Tone::Plain, "line");
    }
    assert_eq!((model.findings.len(), model.log.len()), (1_024, 400));
    assert_eq!(model.log_dropped, 5_602);
    // The last finding can be selected.
    let mut stance = Stance { steps: [usize::MAX, 0, 0, 0, 0, 0], ..Stance::default() };
    let rows = drawn(&model, &mut stance, 80, 24);
    assert_eq!(stance.steps[0], 1_023);
    assert!(rows.iter().any(|row| row.contains("▸ 2:00 b1022")), "{}", rows.join("\n"));
}

#[test]
fn a_property_that_is_checked_at_last_is_logged() {
    let mut model = model();
    model.uncheck(Vec::new());
    assert!(
        model
            .log
            .back()
            .is_some_and(|line| line.text == "a leader comes back was checked for the first time")
    );
}

#[test]
fn the_bar_is_about_the_limits_that_the_exploration_has() {
    let gauge = |budget_s, branches, seconds| {
        let mut model = model();
        (model.about.budget_s, model.about.branches) = (budget_s, branches);
        model.seconds = seconds;
        let row = drawn(&model, &mut Stance::default(), 90, 24).remove(1);
        row.replace(['█', '░'], "").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(gauge(Some(480.0), None, 120.0), "2:00 of 8:00, 600 branches, 6:00 left 25 %");
    // 600 branches took two minutes, so the other 300 take one minute.
    assert_eq!(gauge(None, Some(900), 120.0), "2:00, 600 of 900 branches, 1:00 left 67 %");
    assert_eq!(gauge(None, None, 120.0), "2:00, 600 branches until Ctrl-C");
    // If there are two limits, the nearer one decides.
    assert_eq!(gauge(Some(480.0), Some(800), 120.0), "2:00 of 8:00, 600 of 800 branches, 6:00 left 75 %");
    assert_eq!(
        gauge(Some(60.0), Some(1_200), 7_200.0),
        "2:00:00 of 1:00, 600 of 1,200 branches, 0:00 left 100 %"
    );
}

#[test]
fn what_an_operator_must_know_is_in_the_frame() {
    let mut model = model();
    let frame = |model: &Model| drawn(model, &mut Stance::default(), 100, 24);
    let rows = frame(&model);
    assert!(!rows[0].contains("INEXACT") && rows[23].contains("q end"), "{rows:#?}");
    (model.about.inexact, model.ending) = (true, true);
    let rows = frame(&model);
    assert!(rows[0].contains("INEXACT"), "{rows:#?}");
    assert!(
        rows[23].starts_with(" Ending: writing results. Press Ctrl-C again to end at once."),
        "{rows:#?}"
    );
    let mut broken = record(9, 1, Vec::new());
    (broken.broken, broken.checked) = (Some("the host has no memory".to_owned()), false);
    model.branch(&broken, [].into_iter());
    let rows = frame(&model);
    assert!(rows[6].contains("2 with checks, 1 broken"), "{rows:#?}");
    let log = drawn(&model, &mut Stance { pane: Pane::Log, ..Stance::default() }, 100, 24);
    assert!(log.iter().any(|row| row.ends_with("b9 broke off: the host has no memory")), "{log:#?}");
    let help = drawn(&model, &mut Stance { help: true, ..Stance::default() }, 100, 24);
    assert!(help.iter().any(|row| row.contains("suspend; fg comes back")), "{help:#?}");
}

#[test]
fn lists_are_scrolled() {
    let mut model = model();
    for n in 0..40 {
        model.log(Tone::Plain, &format!("line {n}"));
    }
    let mut stance = Stance { pane: Pane::Log, ..Stance::default() };
    let last = |rows: &[String]| rows[22].trim().to_owned();
    assert_eq!(last(&drawn(&model, &mut stance, 80, 24)), "2:00 line 39");
    stance.steps[Pane::Log.place()] = 3;
    assert_eq!(last(&drawn(&model, &mut stance, 80, 24)), "2:00 line 36");
    model.found(12, &hit("second", "another text", "its line"));
    let mut stance = Stance { steps: [1, 0, 0, 0, 0, 0], ..Stance::default() };
    let rows = drawn(&model, &mut stance, 80, 24).join("\n");
    assert!(rows.contains("▸ 2:00 b12") && rows.contains("its line"), "{rows}");
    assert!(!rows.contains("n2/redis | promoted"), "only the selected finding has its lines: {rows}");
}

#[test]
fn without_colours_nothing_has_a_colour() {
    let mut model = model();
    model.about.inexact = true;
    model.disk.free_bytes = 1;
    let coloured = |look| -> usize {
        let all = Pane::ALL.into_iter().flat_map(|pane| {
            let mut stance = Stance { pane, ..Stance::default() };
            let small = cells(&model, &mut stance, 80, 24, look);
            let large = cells(&model, &mut stance, 120, 40, look);
            [small, large]
        });
        let is_coloured = |buffer: Buffer| {
            buffer.content.iter().filter(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset)).count()
        };
        all.map(is_coloured).sum()
    };
    assert_eq!(coloured(Look { colour: false }), 0);
    assert!(coloured(Look { colour: true }) > 1_000);
}

#[test]
fn a_disk_that_is_nearly_full_is_marked() {
    let mut model = model();
    let colour = |model: &Model| {
        let buffer = cells(model, &mut Stance::default(), 120, 40, Look { colour: true });
        let row = |y| (0..120).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let y = (0..40).find(|y| row(*y).contains("on the disk")).unwrap();
        let x = (0..120).rev().find(|x| buffer[(*x, y)].symbol() == "f").unwrap();
        buffer[(x, y)].fg
    };
    assert_eq!(colour(&model), Color::Reset);
    // Free space counts as low below ten times the size of the run directory, and always below 640 MiB.
    model.disk.free_bytes = 640 << 20;
    assert_eq!(colour(&model), Color::Reset);
    model.disk.free_bytes -= 1;
    assert_eq!(colour(&model), Color::Yellow);
}

#[test]
fn the_facts_of_an_exploration_come_from_its_header_and_limits() {
    let header = serde_json::json!({
        "schema_version": 4, "everett": "", "machine_version": "", "identity": "", "image": "",
        "world_file": "/some/where/redis/world.toml", "world": {}, "seed": 5, "strategy": "novelty", "in_flight": 4,
        "root_ns": 7, "segment_ns": 300, "horizon_ns": 1000, "nodes": ["a"], "engine": "soft", "exact": false,
    });
    let header = serde_json::from_value(header).unwrap();
    let about = |branches, host_ns| {
        let limits = Limits { branches, host_ns, until_found: false, workers: 2, memory_bytes: 9 };
        let run = std::path::Path::new("the run");
        About::of(&ExplorationFacts { header: &header, run, sometimes: &[], limits: &limits })
    };
    let endless = about(u64::MAX, None);
    assert_eq!((endless.branches, endless.budget_s), (None, None));
    let limited = about(40, Some(1_500_000_000));
    assert_eq!((limited.branches, limited.budget_s), (Some(40), Some(1.5)));
    assert_eq!((limited.world.as_str(), limited.run.as_str()), ("redis", "the run"));
    assert_eq!((limited.seed, limited.memory_bytes, limited.root_ns), (Seed::new(5), 9, 7));
    // A timeline of 1000 ns (the horizon) consists of four branches: three of 300 ns (the segment) and a shorter one.
    assert_eq!((limited.depth_max, limited.inexact), (4, true));
}

proptest! {
    /// Drawing never panics, whatever the size of the window and the scrolling of the lists.
    #[test]
    fn every_window_can_be_drawn(
        width in 0..200u16, height in 0..90u16, pane in 0..6usize, steps in any::<[usize; 6]>(), help in any::<bool>(),
        empty in any::<bool>(),
    ) {
        let model = if empty { Model::default() } else { model() };
        let mut stance = Stance { pane: Pane::ALL[pane], steps, help };
        drawn(&model, &mut stance, width, height);
    }
}
