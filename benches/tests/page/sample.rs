//! Scripted run with a recorded finding, and its page in a browser.

use benches::browser::{Browser, fetch};
use benches::night::{self, Scripted};
use clap::Parser;
use everett::commands::{self, Cli};
use everett_explorer::causality::result::SCHEMA_VERSION;
use everett_explorer::causality::{Causality, CausalityEnd, Code, Count, Jump, Point, Step, StepKind, Vary};
use everett_explorer::reached_code::{
    self, FailingPlace, FindingCode, Function, Program, ReachedCode, ReplaysEnd,
};
use everett_explorer::run::{Finding, Reading, Record};
use everett_explorer::search::strategy::StrategyKind;
use serde_json::{Value, json};

use crate::trials::Lacking;

pub(crate) const BRANCHES: u64 = 700;

/// Returns the page of a run. The run's first finding has `messages` recorded messages. `word` occurs in texts of the
/// timeline and of the causality result.
pub(crate) fn page(messages: u64, word: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut journal = night::journal(&run, StrategyKind::Novelty).unwrap();
    let outcome = Scripted::new(1_000).explore(Some(&mut journal), StrategyKind::Novelty, BRANCHES).unwrap();
    journal.finish(&outcome.merged.end(outcome.why, 1)).unwrap();
    let finding = &outcome.merged.findings()[0];
    std::fs::write(run.join("timeline-1.jsonl"), recording(messages, finding.hit.vtime_ns, word)).unwrap();
    std::fs::write(run.join("causality-1.json"), causality(finding, word).json().unwrap()).unwrap();
    let code = reached_code(&run, finding, word);
    std::fs::write(run.join(reached_code::FILE), code.json().unwrap()).unwrap();
    let other = apart(&run, finding);
    std::fs::write(run.join(format!("branch-{}.jsonl", other.choice)), lines_of(&other)).unwrap();
    let recorded = json!({
        "budget_ns": 60_000_000_000u64, "host_ns": 1_000_000_000, "recorded": [1], "branches": [other.choice], "left_out": [],
        "different": [],
    });
    std::fs::write(run.join("recorded.json"), recorded.to_string()).unwrap();
    let name = run.display().to_string();
    commands::run(&Cli::parse_from(["everett", "report", &name, "--html"])).unwrap();
    std::fs::read(run.join("report.html")).unwrap()
}

/// Returns the record (stored result) of the first branch that continues another branch, and that has no ancestor in
/// common with the finding except the root moment.
fn apart(run: &std::path::Path, finding: &Finding) -> Record {
    let reading = Reading::open(run).unwrap();
    let mut all = (0..reading.len()).map(|choice| reading.get(choice).unwrap().unwrap());
    let of_finding = finding.path.forks()[0];
    all.find(|record| record.from.is_some() && record.path.forks()[0] != of_finding).unwrap()
}

/// Returns the recorded timeline of a branch: the last line of its parent, and the branch's first and last lines.
fn lines_of(record: &Record) -> String {
    let begin_ns = record.path.forks().last().unwrap().vtime_ns;
    let mut lines = vec![json!({ "kind": "timeline", "path": "1.1", "trail": "aa", "left_out": 0 })];
    for (ns, text) in [
        (begin_ns, "the last one of the parent"),
        (begin_ns + 1, "its own first one"),
        (record.end_ns, "its own last one"),
        (record.end_ns + 1, "one after its end"),
    ] {
        let at = format!("{:>4}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        lines.push(json!({ "kind": "line", "text": format!("{at} a/apart | {text}") }));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns a result of `everett causality` (the search for the step that decided a finding) with every part: a plot of
/// the finding's likelihood, a jump of the likelihood at a message, and events around the jump.
fn causality(finding: &Finding, word: &str) -> Causality {
    let found_ns = finding.hit.vtime_ns;
    let step =
        |before_ns: u64, kind| Step { vtime_ns: found_ns - before_ns, kind, text: format!("n1 {word}") };
    let point =
        |before_ns, shown| Point { vtime_ns: found_ns - before_ns, count: Count { futures: 20, shown } };
    let mut causality = Causality {
        schema_version: SCHEMA_VERSION,
        timeline: "e3:1/2".to_owned(),
        property: finding.hit.property.clone(),
        signature: finding.hit.signature.clone(),
        found_ns,
        root_ns: found_ns - 50_000_000,
        end_ns: found_ns,
        vary: Vary::All,
        error_ppm: 50_000,
        why: CausalityEnd::Running,
        futures: 60,
        points: vec![point(50_000_000, 1), point(9_000_000, 2), point(8_000_000, 19)],
        jump: Some(Jump {
            from_ns: found_ns - 9_000_000,
            to_ns: found_ns - 8_000_000,
            before: Count { futures: 20, shown: 2 },
            after: Some(Count { futures: 20, shown: 19 }),
            probability_ppm: 900_000,
            is_narrowest: true,
            steps: vec![step(8_500_000, StepKind::Message)],
            steps_count: 1,
            steps_before: vec![step(9_500_000, StepKind::Line)],
            steps_after: vec![step(7_000_000, StepKind::Line)],
            context: vec![step(20_000_000, StepKind::Fault), step(7_000_000, StepKind::Line)],
            code: vec![Code {
                node: "a".to_owned(),
                program: "kernel".to_owned(),
                place: word.to_owned(),
                edges: 3,
                lines: vec![word.to_owned()],
            }],
        }),
        digest: String::new(),
    };
    causality.digest = causality.digest_of();
    causality
}

/// Returns code that the run reached: a program whose functions have names and lines, and the kernel.
fn reached_code(run: &std::path::Path, finding: &Finding, word: &str) -> ReachedCode {
    let reading = Reading::open(run).unwrap();
    let header = reading.header();
    let function = |n: u64| Function {
        name: Some(format!("replicate_{n} {word}")),
        address: 0x1000 + n,
        line: Some(format!("/src/server/replication.c:{}", 10 + n)),
        places: 3,
        branches: n.min(BRANCHES),
        first: n.min(BRANCHES - 1),
        only_failing: n < 3,
    };
    let program = |path: &str, functions: u64| Program {
        path: path.to_owned(),
        nodes: vec!["a".to_owned(), "b".to_owned()],
        reached: functions,
        functions_all: 2 * functions,
        places: 9 * functions,
        has_lines: true,
        functions: (1..=functions).map(function).collect(),
    };
    let place = |n: u64| FailingPlace {
        program: "/usr/bin/server".to_owned(),
        function: Some(format!("replicate_{n} {word}")),
        inlined: (n > 2).then(|| "offset_of".to_owned()),
        address: 0x1000 + n,
        line: Some(format!("/src/server/replication.c:{}", 20 + n)),
        whole_function: n < 3,
        branches: 2,
    };
    ReachedCode {
        schema_version: reached_code::SCHEMA_VERSION,
        identity: header.identity.clone(),
        seed: header.seed,
        branches: BRANCHES,
        branches_all: BRANCHES,
        passing: BRANCHES - 9,
        why: ReplaysEnd::Done,
        programs: vec![program("/usr/bin/server", 900), program(reached_code::KERNEL, 300)],
        programs_count: 2,
        findings: vec![FindingCode {
            id: finding.id,
            property: finding.hit.property.clone(),
            signature: finding.hit.signature.clone(),
            branches: 2,
            places: (1..=20).map(place).collect(),
            places_count: 20,
        }],
    }
}

/// Returns the recording of a timeline with three nodes that ends at `found_ns`.
fn recording(messages: u64, found_ns: u64, word: &str) -> String {
    let step_ns = 500_000;
    let begin_ns = found_ns.saturating_sub(messages * step_ns);
    let at = |ns: u64| format!("{:>4}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let nodes = ["a", "b", "db"];
    let mut lines = vec![json!({ "kind": "timeline", "path": "1.1", "trail": "aa", "left_out": 0 })];
    lines.push(json!({
        "kind": "fault",
        "text": format!("{} #0 {}", at(begin_ns), json!({ "at": "1s", "for": "5ms", "fault": "power_loss", "node": "db", "note": word })),
    }));
    for n in 0..messages {
        let now_ns = begin_ns + n * step_ns;
        let (from, to) = (nodes[(n % 3) as usize], nodes[((n + 1 + n / 7 % 2) % 3) as usize]);
        let fate = if n % 19 == 18 { "DROP" } else { "DELIVER" };
        let text = format!(
            "{} {fate} {from} > {to} TCP 10.0.0.1.6379 > 10.0.0.2.4 [PSH,ACK] seq 1 ack 2 len 9 {word}",
            at(now_ns + 200_000)
        );
        lines.push(json!({ "kind": "message", "text": text, "sent_ns": now_ns }));
        if n % 10 == 0 {
            lines.push(
                json!({ "kind": "line", "text": format!("{} {from}/redis | line {n} {word}", at(now_ns)) }),
            );
        }
    }
    for (process, kind, ns) in [(1, "invoke", 3), (2, "invoke", 2), (1, "ok", 1)] {
        let text = json!({ "process": process, "type": kind, "f": "acquire", "value": word });
        lines.push(
            json!({ "kind": "line", "text": format!("{} a/history {text}", at(found_ns - ns * step_ns)) }),
        );
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Starts the browser with a page.
pub(crate) fn open(page: &[u8], width: u32, height: u32) -> Result<Browser, Lacking> {
    let root = fetch::browser().map_err(Lacking::new)?;
    let mut browser = Browser::start(&root, width, height).map_err(Lacking::new)?;
    browser.open(page).unwrap();
    Ok(browser)
}

/// Evaluates an expression in the page.
pub(crate) fn evaluate(browser: &mut Browser, expression: &str) -> Value {
    browser.evaluate(expression).unwrap()
}

/// Checks that the page printed nothing, threw nothing and requested only itself.
pub(crate) fn check_quiet(browser: &mut Browser) {
    // The browser answers this expression only after it has sent all earlier events of the page.
    browser.evaluate("new Promise((done) => setTimeout(done, 0))").unwrap();
    for method in ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"] {
        assert_eq!(browser.events(method), Vec::<Value>::new(), "{method}");
    }
    let requests = browser.events("Network.requestWillBeSent");
    let urls: Vec<&str> = requests.iter().filter_map(|request| request["request"]["url"].as_str()).collect();
    assert!(
        urls.len() == 1 && urls[0].starts_with("file:///tmp/") && urls[0].ends_with("/page.html"),
        "{urls:?}"
    );
}
