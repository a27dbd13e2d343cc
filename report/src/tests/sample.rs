//! Run directory of seven branches, with texts that a test chooses.

use std::collections::BTreeMap;

use crate::exploration::{About, Report};
use everett_explorer::causality::{self, Causality, CausalityEnd, Count, Jump, Step, StepKind, Vary};
use everett_explorer::coverage::{Delta, FaultGap, Gaps, Listed, OrderGap, Point, Reached, ValueGap};
use everett_explorer::reached_code::{
    self, FailingPlace, FindingCode, Function, Program, ReachedCode, ReplaysEnd,
};
use everett_explorer::run::branches::Branches;
use everett_explorer::run::{
    Budget, EndReason, Evidence, ExplorationEnd, FinalPhase, Header, HistoryCount, Hit, Journal, Merged,
    Reading, Record, Span, StrategyName,
};
use everett_streams::Seed;
use serde_json::json;

use crate::data::{Data, Different, Edges, Recordings, Run, Sources};
use crate::findability::Terms;
use crate::scene::{Event, Scene};

pub(super) const ROOT_NS: u64 = 700_000_000;
pub(super) const SEGMENT_NS: u64 = 2_000_000_000;

pub(super) fn header(word: &str) -> Header {
    Header {
        everett: "0.1.0".to_owned(),
        machine_version: "everett-3".to_owned(),
        identity: "3d01".to_owned(),
        image: "77aa".to_owned(),
        world_file: format!("/worlds/lock {word}/world.toml"),
        world: json!({
            "explore": { "ignore": ["out of memory"] },
            "property": [
                { "name": format!("no corruption {word}"), "never": "corrupt" },
                { "name": "a leader comes back", "eventually": "leader" },
                { "name": "fail-over", "sometimes": "switch" },
            ],
        }),
        seed: Seed::new(7),
        strategy: StrategyName("novelty".to_owned()),
        in_flight: 8,
        root_ns: ROOT_NS,
        segment_ns: SEGMENT_NS,
        horizon_ns: 3 * SEGMENT_NS,
        nodes: vec!["db".to_owned(), "a".to_owned(), format!("b {word}")],
        ..Header::default()
    }
}

/// Returns the record of a branch that costs a minute of CPU time and a billion instructions.
pub(super) fn record(choice: u64, from: Option<u64>, path: &str) -> Record {
    let path: everett_explorer::search::Path = path.parse().unwrap();
    let begin = path.forks().last().map_or(ROOT_NS, |fork| fork.vtime_ns);
    let reach = |point: Point| (point.id(), Reached { point, vtime_ns: begin });
    let phase = format!("phase {}", choice % 3);
    let points = [
        Point::State { state: format!("state {}", choice / 2) },
        Point::Phase { phase: phase.clone() },
        Point::Fault {
            fault: if choice.is_multiple_of(2) { "power_loss" } else { "clog" }.to_owned(),
            phase,
        },
    ];
    Record {
        choice,
        from,
        path,
        open_ns: Some(begin + SEGMENT_NS),
        end_ns: begin + SEGMENT_NS,
        instructions: 1_000_000_000,
        final_phase: (!choice.is_multiple_of(2)).then_some(FinalPhase {
            calm: Span { instructions: 100_000_000, vtime_ns: 2_000_000_000 },
            checks: Span { instructions: 40_000_000 * (choice % 8), vtime_ns: 1_000_000_000 * (choice % 8) },
        }),
        executed: 1_000_000_000,
        cpu_ns: 60_000_000_000,
        trail: "00ff".to_owned(),
        checked: !choice.is_multiple_of(2),
        faults: 2,
        messages: 9,
        delta: points.into_iter().map(reach).collect::<Delta>(),
        history: Some(HistoryCount { operations: 4, acknowledged: 3, ..HistoryCount::default() }),
        log_bytes: 100,
        ..Record::default()
    }
}

pub(super) fn hit(property: &str, word: &str) -> Hit {
    let fault = json!({ "at": "1s", "for": "500ms", "fault": "power_loss", "node": "db", "note": word });
    let operation =
        |kind: &str| json!({ "process": word, "type": kind, "f": "add", "key": word, "value": word });
    Hit {
        property: property.to_owned(),
        signature: format!("signature {word}"),
        text: format!(
            "add by process 1 of a (2.000000001s to 2.100000001s, lines 1 and 2) cannot be: {word}"
        ),
        vtime_ns: 2_500_000_000,
        node: Some("a".to_owned()),
        evidence: Evidence {
            lines: vec![
                format!("   1.900000000 db/redis      | loading {word}"),
                format!("   2.000000001 a/history    {}", operation("invoke")),
                format!("   2.100000001 a/history    {}", operation("ok")),
                "   2.200000000 world        the timeline's end: drivers stop, checks run".to_owned(),
            ],
            packets: vec![format!("   2.050000000 DELIVER a > db TCP {word}")],
            faults: vec![format!("   1.700000000 #0 {fault}")],
        },
    }
}

/// Returns the result of a search for the step that decided a finding. The step is a message.
fn causality(word: &str) -> Causality {
    let count = |shown| Count { futures: 16, shown };
    let step =
        |vtime_ns, kind| Step { vtime_ns, kind, text: format!("   2.050000000 DELIVER a > db TCP {word}") };
    Causality {
        schema_version: 1,
        timeline: "e3:00:7/1.1".to_owned(),
        property: "linearizability".to_owned(),
        signature: format!("signature {word}"),
        found_ns: 2_500_000_000,
        root_ns: ROOT_NS,
        end_ns: ROOT_NS + SEGMENT_NS,
        vary: Vary::All,
        error_ppm: 50_000,
        why: CausalityEnd::Named,
        futures: 48,
        points: [(ROOT_NS, 1), (2_050_000_000, 2), (2_050_500_000, 15)]
            .map(|(vtime_ns, shown)| causality::Point { vtime_ns, count: count(shown) })
            .to_vec(),
        jump: Some(Jump {
            from_ns: 2_050_000_000,
            to_ns: 2_050_500_000,
            before: count(2),
            after: Some(count(15)),
            probability_ppm: 970_000,
            is_narrowest: true,
            steps: vec![step(2_050_200_000, StepKind::Message)],
            steps_count: 1,
            steps_before: vec![step(2_040_000_000, StepKind::Sent)],
            steps_after: vec![step(2_060_000_000, StepKind::Line)],
            context: vec![step(2_050_000_000, StepKind::Fault)],
            code: vec![causality::Code {
                node: word.to_owned(),
                program: word.to_owned(),
                place: word.to_owned(),
                edges: 3,
                lines: vec![word.to_owned()],
            }],
        }),
        digest: "00ff".to_owned(),
    }
}

/// Returns a run of seven branches in four subtrees. A subtree is a branch that starts at the root moment, with all
/// branches that descend from it. The second and the third subtree have the finding `linearizability`.
pub(super) fn records(word: &str) -> Vec<Record> {
    let fork = |n: u64| ROOT_NS + n * SEGMENT_NS;
    let root = |child: u64| format!("{ROOT_NS}.{child}");
    let mut records = vec![
        record(0, None, &root(1)),
        record(1, None, &root(2)),
        record(2, None, &root(3)),
        record(3, Some(1), &format!("{}/{}.1", root(2), fork(1))),
        record(4, Some(1), &format!("{}/{}.2", root(2), fork(1))),
        record(5, Some(3), &format!("{}/{}.1/{}.1", root(2), fork(1), fork(2))),
        record(6, None, &root(4)),
    ];
    records[3].hits = vec![hit("linearizability", word)];
    records[2].hits = vec![hit("linearizability", word), hit(&format!("no corruption {word}"), word)];
    records[5].broken = Some(format!("host {word}"));
    records[4].sometimes = vec!["fail-over".to_owned()];
    records
}

/// Contents of a run directory, and the text that the test chose for it.
pub(super) struct Sample {
    reading: Reading,
    merged: Merged,
    branches: Branches,
    word: String,
}

impl Sample {
    pub(super) fn new(header: &Header, records: &[Record], word: &str) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), header).unwrap();
        for record in records {
            journal.append(record.clone()).unwrap();
        }
        drop(journal);
        let (reading, merged, branches) = Reading::open_with_branches(folder.path()).unwrap();
        Sample { reading, merged, branches, word: word.to_owned() }
    }

    pub(super) fn run<'s>(&'s self, name: &'s str) -> Run<'s> {
        Run { name, header: self.reading.header(), merged: &self.merged }
    }

    /// Returns the data of the report, compared with older runs.
    pub(super) fn data(&self, older: &[&Sample]) -> Data {
        self.data_with(older, BTreeMap::new())
    }

    /// Returns the data of the report, with recorded timelines in `scenes`.
    pub(super) fn data_with(&self, older: &[&Sample], scenes: BTreeMap<u32, Scene>) -> Data {
        // Explorations shorten long texts when they record them.
        let word = &self.word.chars().take(1_000).collect::<String>();
        let gaps = Gaps {
            faults: Listed {
                first: vec![FaultGap { fault: "loss".to_owned(), phase: word.clone(), seen: 1 }],
                count: 1,
            },
            orders: Listed {
                first: vec![OrderGap {
                    first: word.clone(),
                    then: "b".to_owned(),
                    across: true,
                    reversed: 4,
                }],
                count: 1,
            },
            values: Listed {
                first: vec![ValueGap {
                    rule: "r".to_owned(),
                    variable: "role".to_owned(),
                    value: word.clone(),
                }],
                count: 1,
            },
        };
        let sometimes = ["fail-over".to_owned(), format!("never {word}")].into();
        let budget = Budget { branches: Some(400), host_ns: Some(60_000_000_000), until_found: false };
        let end =
            ExplorationEnd { budget: Some(budget), ..self.merged.end(EndReason::Branches, 5_000_000_000) };
        let name = format!("runs/{word}");
        let about =
            About { run: &name, end: Some(&end), waiting: 0, gaps: Some(&gaps), sometimes: &sometimes };
        let report = Report::of(self.reading.header(), &self.merged, &about);
        let names: Vec<String> = (0..older.len()).map(|n| format!("older {n} {word}")).collect();
        let older: Vec<Run<'_>> = older.iter().zip(&names).map(|(sample, name)| sample.run(name)).collect();
        let plan =
            json!({ "minimal": true, "plan": [{ "at": "1s", "for": "2s", "fault": "pause", "node": "db" }] });
        let mut edges = Edges::default();
        for to in ["kernel:do_idle+0x1a", "kernel:do_idle+0x20", "/usr/bin/redis:0x1234", "page 00ab:0x10"] {
            edges
                .line(&json!({ "from": "x", "to": format!("{word}{to}"), "nodes": [word] }).to_string())
                .unwrap();
        }
        Data::of(&Sources {
            run: self.run(&name),
            branches: &self.branches,
            report: &report,
            older: &older,
            enabled: &["power_loss".to_owned(), "pause".to_owned()],
            regressions: BTreeMap::from([(2, ("regression-2.json".to_owned(), plan))]),
            scenes,
            recordings: Some(recordings(word)),
            logs: BTreeMap::from([(3, log(word))]),
            causalities: BTreeMap::from([(1, causality(word))]),
            plans: BTreeMap::from([(
                3,
                vec![json!({ "at": "2s", "for": "1s", "fault": "clog", "node": "db" })],
            )]),
            code: edges.finish(),
            reached: Some(reached_code(word)),
            terms: Terms::default(),
        })
    }
}

/// Returns reached code of two programs and the kernel. The finding `linearizability` has a line and a function of its
/// own.
fn reached_code(word: &str) -> ReachedCode {
    let text = || word.to_owned();
    let function = |address: u64, branches: u64| Function {
        name: (address != 0x30).then(|| format!("f{address:x}{word}")),
        address,
        line: (address == 0x10).then(|| format!("{word}server.c:12")),
        places: 2,
        branches,
        first: 3,
        only_failing: address == 0x20,
    };
    let program = |path: &str, functions: Vec<Function>| Program {
        path: path.to_owned(),
        nodes: vec![text()],
        reached: functions.len() as u64,
        functions_all: 9,
        places: 12,
        has_lines: true,
        functions,
    };
    let place = |address: u64| FailingPlace {
        program: text(),
        function: Some(format!("write {word}")),
        inlined: Some(text()),
        address,
        line: Some(format!("{word}server.c:34")),
        whole_function: address == 0x20,
        branches: 2,
    };
    let hit = hit("linearizability", word);
    ReachedCode {
        schema_version: 1,
        identity: text(),
        seed: Seed::new(1),
        branches: 7,
        branches_all: 7,
        passing: 4,
        why: ReplaysEnd::Done,
        programs: vec![
            program(
                &format!("/usr/bin/server{word}"),
                vec![function(0x20, 2), function(0x30, 3), function(0x10, 7)],
            ),
            program(reached_code::KERNEL, vec![function(0x40, 1)]),
        ],
        programs_count: 2,
        findings: vec![FindingCode {
            id: 1,
            property: hit.property,
            signature: hit.signature,
            branches: 2,
            places: vec![place(0x20), place(0x22)],
            places_count: 2,
        }],
    }
}

fn log(word: &str) -> Scene {
    let event = Event { at_ns: ROOT_NS + 1, lane: Some(1), unit: "redis".to_owned(), text: word.to_owned() };
    Scene { events: vec![event], left_out: 2, ..Scene::default() }
}

fn recordings(word: &str) -> Recordings {
    Recordings {
        budget_ns: 60_000_000_000,
        host_ns: 2_000_000_000,
        recorded: Vec::new(),
        branches: vec![3],
        left_out: vec![1],
        different: vec![Different { branch: 4, findings: vec![2], why: word.to_owned() }],
    }
}

/// Returns the data of a run with `word` in all texts, compared with an older run that had another finding.
pub(super) fn data(word: &str) -> Data {
    let mut before = records(word);
    before[6].hits = vec![hit("kernel oops", word)];
    let older = Sample::new(&header(word), &before, word);
    Sample::new(&header(word), &records(word), word).data(&[&older])
}
