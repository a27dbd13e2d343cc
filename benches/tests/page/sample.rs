//! A scripted run with a recorded finding, and its page in a browser.

use benches::browser::{Browser, fetch};
use benches::night::{self, Scripted};
use clap::Parser;
use everett_explorer::search::strategy::StrategyKind;
use everett_tools::cli::Cli;
use everett_tools::commands;
use serde_json::{Value, json};

use crate::trials::Lacking;

pub(crate) const BRANCHES: u64 = 700;

/// Returns the page of a run whose first finding has this number of recorded messages, and `word` in its texts.
pub(crate) fn page(messages: u64, word: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut journal = night::journal(&run, StrategyKind::Novelty).unwrap();
    let outcome = Scripted::new(1_000).explore(Some(&mut journal), StrategyKind::Novelty, BRANCHES).unwrap();
    journal.finish(&outcome.merged.end(outcome.why, 1)).unwrap();
    let found_ns = outcome.merged.findings()[0].hit.vtime_ns;
    std::fs::write(run.join("timeline-1.jsonl"), recording(messages, found_ns, word)).unwrap();
    let name = run.display().to_string();
    commands::run(&Cli::parse_from(["everett", "report", &name, "--html"])).unwrap();
    std::fs::read(run.join("report.html")).unwrap()
}

/// Returns the recording of a timeline of three nodes that ends at `found_ns`.
fn recording(messages: u64, found_ns: u64, word: &str) -> String {
    let step_ns = 500_000;
    let begin_ns = found_ns.saturating_sub(messages * step_ns);
    let at = |ns: u64| format!("{:>4}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let nodes = ["a", "b", "db"];
    let mut lines = vec![json!({
        "kind": "fault",
        "text": format!("{} #0 {}", at(begin_ns), json!({ "at": "1s", "for": "5ms", "fault": "power_loss", "node": "db", "note": word })),
    })];
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

/// Checks that the page printed nothing, threw nothing and requested nothing but itself.
pub(crate) fn check_quiet(browser: &mut Browser) {
    // An answer of the page comes after everything that it reported before.
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
