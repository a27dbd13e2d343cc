//! Measures the page of the report: writing it, and using it in a browser without a GPU. Prints each figure. Most
//! figures have a limit for reports of up to 10,000 branches. The bench also prints the ratio of such a figure to its
//! limit.
//!
//! `cargo bench -p benches --bench page [-- --branches 100000] [-- --pictures DIR] [-- --json]`
//!
//! The report is about an exploration in which no machine runs: a script, which the bench `night` also uses, computes
//! the results of the branches. A separate process writes the page. A headless Chromium, which the bench downloads from
//! Debian, opens the page and pans its map.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use benches::browser::{Browser, fetch};
use benches::everett::this;
use benches::night::{self, Scripted};
use benches::{Report, Samples};
use clap::Parser;
use everett::commands::{self, Cli};
use everett_explorer::run::Merged;
use everett_explorer::search::strategy::StrategyKind;
use everett_host::time::Stopwatch;
use serde_json::{Value, json};

/// Limits for up to 10,000 branches: the name of a figure, and its maximum, or its minimum if the figure is a rate.
const BARS: [(&str, f64); 7] = [
    ("written", 3.0),
    ("memory", 200.0),
    ("interactive", 2.0),
    ("pan_of_a_half", 30.0),
    ("pan_of_a_tenth", 30.0),
    ("pan_of_near_rows", 30.0),
    ("search", 0.1),
];
/// Number of frames while the map is panned.
const FRAMES: u32 = 150;
/// Number of findings with a recorded timeline. Each timeline has as many messages and lines as a page accepts.
const TIMELINES: usize = 8;
const TIMELINE_MESSAGES: u64 = 20_000;
/// Size of the window, in pixels.
const WINDOW: (u32, u32) = (1280, 900);

#[derive(Debug, Parser)]
struct Args {
    /// Number of branches
    #[arg(long, default_value_t = 10_000)]
    branches: u64,
    /// Read this run directory instead of a scripted one
    #[arg(long)]
    run: Option<PathBuf>,
    /// Folder for pictures of the page
    #[arg(long)]
    pictures: Option<PathBuf>,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Cargo passes this
    #[arg(long, hide = true)]
    bench: bool,
    /// Write the page of this run to this file, as the separate process
    #[arg(long, hide = true, num_args = 2)]
    write: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.write.as_slice() {
        [run, file] => benches::end("page", write(run, file)),
        _ => benches::end("page", run(&args)),
    }
}

/// Writes the page, and prints the peak memory of the process in KiB.
fn write(run: &Path, file: &Path) -> anyhow::Result<()> {
    let (run, file) = (run.display().to_string(), file.display().to_string());
    commands::run(&Cli::parse_from(["everett", "report", &run, "--html", "-o", &file]))?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    println!("peak {}", peak.trim().trim_end_matches(" kB"));
    Ok(())
}

fn run(args: &Args) -> anyhow::Result<()> {
    let mut report = Report::new("page", args.json);
    let folder = tempfile::tempdir()?;
    let scripted = folder.path().join("run");
    let run = args.run.clone().unwrap_or_else(|| scripted.clone());
    report.note(
        "the ratio compares with a limit: at most 1 is good for times and memory, at least 1 for frames",
    );
    if args.run.is_none() {
        let mut journal = night::journal(&scripted, StrategyKind::Novelty)?;
        let mut world = Scripted::new(args.branches);
        let outcome = world.explore(Some(&mut journal), StrategyKind::Novelty, args.branches)?;
        journal.finish(&outcome.merged.end(outcome.why, 0))?;
        record(&scripted, &outcome.merged)?;
        report.note(&format!("{} branches of a scripted world", args.branches));
    }
    let mut figure = |metric: &str, unit, value: f64| {
        let bar = BARS.iter().find(|(name, _)| *name == metric).map(|(_, bar)| Samples::from(vec![*bar]));
        report.figure(metric, unit, &Samples::from(vec![value]), bar.as_ref().map(|bar| ("the bar", bar)));
    };
    let file = folder.path().join("report.html");
    let clock = Stopwatch::start();
    let output = this(&["--write", &run.display().to_string(), &file.display().to_string()]).output()?;
    figure("written", "s", clock.seconds());
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let peak = stdout.lines().find_map(|line| line.strip_prefix("peak ")).context(stdout.clone())?;
    figure("memory", "MiB", peak.trim().parse::<f64>()? / 1024.0);
    let page = std::fs::read(&file)?;
    figure("size", "MiB", page.len() as f64 / f64::from(1 << 20));
    let root = fetch::browser().map_err(anyhow::Error::msg)?;
    let mut browser = Browser::start(&root, WINDOW.0, WINDOW.1)?;
    let clock = Stopwatch::start();
    browser.open(&page)?;
    figure("loaded", "s", clock.seconds());
    let ready = browser.evaluate("performance.getEntriesByName('everett-ready')[0].startTime")?;
    figure("interactive", "s", ready.as_f64().context("no mark")? / 1e3);
    browser.evaluate(
        "document.getElementById('map-canvas').scrollIntoView({ block: 'center', behavior: 'instant' })",
    )?;
    figure("search", "s", search(&mut browser)?);
    for (name, zoom) in [("pan_of_a_half", 0.5), ("pan_of_a_tenth", 0.1), ("pan_of_near_rows", 0.0)] {
        figure(name, "frames/s", pan(&mut browser, zoom)?);
    }
    if let Some(pictures) = &args.pictures {
        std::fs::create_dir_all(pictures)?;
        take_pictures(&mut browser, pictures)?;
    }
    report.print();
    Ok(())
}

/// Records long timelines of the scripted findings, so that the page has as many lines and messages as it accepts.
fn record(run: &Path, merged: &Merged) -> anyhow::Result<()> {
    for finding in merged.findings().iter().take(TIMELINES) {
        let mut text = String::new();
        for n in 0..TIMELINE_MESSAGES {
            let ns = finding.hit.vtime_ns.saturating_sub((TIMELINE_MESSAGES - n) * 10_000);
            let at = format!("{:>4}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            let message =
                format!("{at} DELIVER a > b TCP 10.0.0.1.6379 > 10.0.0.2.4 [PSH,ACK] seq {n} ack 2 len 9");
            let line = format!("{at} a/server | line {n} of a server that says much");
            text += &format!("{}\n", json!({ "kind": "message", "text": message, "sent_ns": ns }));
            text += &format!("{}\n", json!({ "kind": "line", "text": line }));
        }
        std::fs::write(run.join(format!("timeline-{}.jsonl", finding.id)), text)?;
    }
    Ok(())
}

/// Searches all texts of the page, after a first search has collected them. Returns the duration of the slowest of
/// several queries, in seconds.
fn search(browser: &mut Browser) -> anyhow::Result<f64> {
    let script = "(() => {
        Everett.search('x');
        const spent = ['a', 'lost', 'line 1', 'no such text'].map((query) => {
            const begin = performance.now();
            Everett.search(query);
            return performance.now() - begin;
        });
        return Math.max(...spent);
    })()";
    Ok(browser.evaluate(script)?.as_f64().context("no time")? / 1e3)
}

/// Pans the map for some seconds, with the fraction `share` of its rows in view. If `share` is 0, the map is zoomed to
/// a single branch. Returns frames per second.
fn pan(browser: &mut Browser, share: f64) -> anyhow::Result<f64> {
    let script = format!(
        "new Promise((done) => {{
            const map = Everett.map, rows = Everett.tree.rows;
            map.fit();
            if ({share} > 0) map.zoom({share}, 200, 200); else map.pick(Math.floor(Everett.tree.count / 2), 'zoom');
            let frame = 0, begin = 0;
            const step = (now) => {{
                if (frame === 0) begin = now;
                map.pan(0, frame % 60 < 30 ? -11 : 11);
                if (frame++ === {FRAMES}) done({FRAMES} * 1000 / (now - begin)); else requestAnimationFrame(step);
            }};
            requestAnimationFrame(step);
        }})"
    );
    browser.evaluate(&script)?.as_f64().context("no rate")
}

/// Writes pictures of the sections: in light and dark colours, in a narrow window, and printed.
fn take_pictures(browser: &mut Browser, folder: &Path) -> anyhow::Result<()> {
    let still = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))";
    let take = |browser: &mut Browser, name: &str, show: &str| -> anyhow::Result<()> {
        browser.evaluate(show)?;
        browser.evaluate(still)?;
        Ok(std::fs::write(folder.join(format!("{name}.png")), browser.picture()?)?)
    };
    let to = |selector: &str| {
        format!(
            "document.querySelector('{selector}').scrollIntoView({{ behavior: 'instant' }}); scrollBy({{ top: -60, behavior: 'instant' }})"
        )
    };
    let views: [(&str, String); 6] = [
        ("summary", "scrollTo({ top: 0, behavior: 'instant' })".to_owned()),
        ("finding", to("#findings")),
        ("map", format!("Everett.map.fit(); {}", to("#map"))),
        ("coverage", to("#coverage")),
        ("matrix", format!("document.querySelector('#matrix') && ({})", to("#matrix").replace("; ", ", "))),
        ("findability", to("#findability")),
    ];
    for scheme in ["light", "dark"] {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        browser.call("Emulation.setEmulatedMedia", &features)?;
        for (name, show) in &views {
            take(browser, &format!("{name}-{scheme}"), show)?;
        }
    }
    let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
    browser.call("Emulation.setEmulatedMedia", &json!({ "features": [] }))?;
    browser.call("Emulation.setDeviceMetricsOverride", &phone)?;
    take(browser, "narrow", &views[0].1)?;
    browser.call("Emulation.clearDeviceMetricsOverride", &json!({}))?;
    let printed = browser.call("Page.printToPDF", &json!({ "printBackground": true }))?;
    let pdf = printed.get("data").and_then(Value::as_str).context("no PDF")?;
    use base64::Engine as _;
    Ok(std::fs::write(folder.join("report.pdf"), base64::engine::general_purpose::STANDARD.decode(pdf)?)?)
}
