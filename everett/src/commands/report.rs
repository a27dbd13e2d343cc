//! `everett report`: what an exploration covered, found and never reached. Writes text, Markdown, JSON data or an
//! HTML page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use everett_explorer::causality::Causality;
use everett_explorer::reached_code::{self, ReachedCode};
use everett_explorer::run::branches::Branches;
use everett_explorer::run::{Merged, Reading};
use everett_report::data::limits::SCENES_MAX;
use everett_report::data::{Code, Data, Edges, Recordings, Run as Source, Sources};
use everett_report::exploration::Report;
use everett_report::findability::Terms;
use everett_report::scene::Scene;
use everett_report::{page, text};
use everett_session::explore::run_directory::RunDirectory;
use everett_session::output::replace::replace;
use serde::Serialize;
use serde_json::Value;

use super::Outcome;
use super::causality;
use super::common;
use super::exploration::{Known, Run};
use super::history;
use super::plans;
use super::record::{self, LOGS_MAX};
use super::recording::{self, Key};
use crate::serve::Made;
use crate::ui::{Ui, style};

/// `everett report`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --html, --data, --all and -o, it prints a summary that fits one screen. docs/report.md describes the page, \
                        docs/report-data.md the data."
)]
pub struct Args {
    /// The run directory
    pub run: PathBuf,
    /// Older runs of the world, oldest first; the report says which findings are new or gone, and how sure that is
    ///
    /// The word history stands for the older runs of the world that `everett runs` lists and whose folders still exist, at most the newest 32.
    /// To name a folder called history, write ./history.
    #[arg(long, value_name = "OLDER", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// Write one HTML page [default: report.html in the run directory]
    #[arg(long)]
    pub html: bool,
    /// Write the data of the page as JSON [default: to standard output]
    #[arg(long, conflicts_with = "html")]
    pub data: bool,
    /// Print everything as Markdown
    #[arg(long, conflicts_with_all = ["html", "data"])]
    pub all: bool,
    /// Confidence in percent at which a finding counts as gone
    #[arg(long, value_name = "PERCENT", default_value_t = 94.0, value_parser = parse_confidence)]
    pub confidence: f64,
    /// Files of executed edges that `run --edges` and `replay --edges` wrote
    #[arg(long, value_name = "FILE")]
    pub edges: Vec<PathBuf>,
    /// The file for --html or --data; without these options, the folder for report.md and report.json
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// Parses the value of `--confidence`, in percent.
fn parse_confidence(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if (1.0..=99.9999).contains(&percent) => Ok(percent),
        _ => Err("the confidence must be a number from 1 to 99.9999, in percent".to_owned()),
    }
}

/// Default name of the page in a run directory.
const PAGE: &str = "report.html";
/// Maximum size of a regression file in bytes.
const REGRESSION_BYTES_MAX: u64 = 16 << 20;
/// Maximum size of a recorded timeline in bytes.
const RECORDING_BYTES_MAX: u64 = 256 << 20;
/// Maximum size of `recorded.json`, in bytes.
const RECORDINGS_BYTES_MAX: u64 = 4 << 20;
/// Maximum size of a file of edges (executed jumps), in bytes.
const EDGES_BYTES_MAX: u64 = 512 << 20;
/// Value of `--against` that stands for older runs in the history.
const HISTORY: &str = "history";
/// Maximum number of older runs from the history. The newest are used.
const HISTORY_RUNS_MAX: usize = 32;
/// Maximum number of older runs in `--against`.
const OLDER_MAX: usize = 256;

/// Line of `--json` that names a written file.
#[derive(Serialize)]
struct Written<'a> {
    kind: &'static str,
    file: &'a str,
    bytes: u64,
}

/// Run directory, with everything that its report needs.
struct Whole {
    run: Run,
    branches: Branches,
    known: Known,
    name: String,
}

impl Whole {
    fn read(folder: &Path) -> anyhow::Result<Whole> {
        let (reading, merged, branches) = Reading::open_with_branches(folder)?;
        let run = Run(RunDirectory { reading, merged });
        let known = run.known();
        Ok(Whole { run, branches, known, name: folder.display().to_string() })
    }

    fn report(&self) -> Report {
        self.run.report(&self.name, &self.known)
    }
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    if args.against.len() > OLDER_MAX {
        bail!("--against: {} runs are named, and {OLDER_MAX} is the maximum", args.against.len());
    }
    let whole = Whole::read(&args.run)?;
    let report = whole.report();
    let outcome = if report.findings.is_empty() { Outcome::Fine } else { Outcome::Found };
    let to_folder = !args.html && !args.data && args.output.is_some();
    if to_folder || args.all || ui.json && !args.html && !args.data {
        match &args.output {
            Some(folder) => to_files(ui, &report, folder)?,
            None => {
                ui.record(&report)?;
                ui.say(report.markdown().trim_end())?;
            }
        }
        return Ok(outcome);
    }
    let folders = against(ui, args, &whole)?;
    let older: Vec<(String, Reading, Merged)> =
        folders.iter().map(|folder| older(folder)).collect::<anyhow::Result<_>>()?;
    let code = code(&args.edges)?;
    let terms = Terms { alpha: 1.0 - args.confidence / 100.0, ..Terms::default() };
    let data = data(&whole, &report, &older, code, terms)?;
    if args.html {
        let file = args.output.clone().unwrap_or_else(|| args.run.join(PAGE));
        write_page(ui, &data, &file)?;
    } else if args.data {
        match &args.output {
            Some(file) => write(ui, file, &(everett_input::text::json(&data.json()?) + "\n"))?,
            None => Ui { json: true, ..*ui }.record(&data)?,
        }
    } else {
        tell(ui, &data, &args.run)?;
    }
    Ok(outcome)
}

/// Writes the page of a run to `file`, or into the run directory if `file` is `None`. Prints the path of the page as
/// text. With `--json` it prints nothing: `explore` has already printed its summary, which must be the last JSON line.
pub(super) fn page_of(ui: &Ui, folder: &Path, file: Option<&Path>) -> anyhow::Result<()> {
    let whole = Whole::read(folder)?;
    let report = whole.report();
    let data = data(&whole, &report, &[], None, Terms::default())?;
    let file = file.map_or_else(|| folder.join(PAGE), Path::to_owned);
    replace(&file, &page::html(&data)?)?;
    tell_file(ui, &file)
}

/// Makes the page of a run directory for a [`Server`](crate::serve::Server).
///
/// # Errors
/// Returns an error if the folder holds no run, or if the run is damaged.
pub fn live_page(folder: &Path) -> anyhow::Result<Made> {
    let whole = Whole::read(folder)?;
    let data = data(&whole, &whole.report(), &[], None, Terms::default())?;
    Ok(Made { html: page::live(&data)?, ended: whole.run.reading.end().is_some() })
}

fn data(
    whole: &Whole,
    report: &Report,
    older: &[(String, Reading, Merged)],
    code: Option<Code>,
    terms: Terms,
) -> anyhow::Result<Data> {
    let older: Vec<Source<'_>> = older
        .iter()
        .map(|(name, reading, merged)| Source { name, header: reading.header(), merged })
        .collect();
    let run = Source { name: &whole.name, header: whole.run.reading.header(), merged: &whole.run.merged };
    let recordings = recordings(Path::new(&whole.name))?;
    Ok(Data::of(&Sources {
        run,
        branches: &whole.branches,
        report,
        older: &older,
        enabled: &whole.known.enabled,
        regressions: regressions(Path::new(&whole.name), &whole.run)?,
        scenes: scenes(Path::new(&whole.name), &whole.run)?,
        logs: logs(whole, recordings.as_ref())?,
        recordings,
        causalities: causalities(Path::new(&whole.name), &whole.run)?,
        plans: plans(whole),
        code,
        reached: reached_code(Path::new(&whole.name), &whole.run)?,
        terms,
    }))
}

/// Returns the faults that begin on each branch. Empty if the exploration's world file cannot be read.
fn plans(whole: &Whole) -> BTreeMap<u64, Vec<Value>> {
    let header = whole.run.reading.header();
    match common::load(Path::new(&header.world_file)) {
        Ok(world) => plans::of_branches(world, header, &whole.branches),
        Err(_) => BTreeMap::new(),
    }
}

/// Returns the folders in `--against`, with the word `history` replaced by the older runs of the history.
fn against(ui: &Ui, args: &Args, whole: &Whole) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for folder in &args.against {
        if folder.as_os_str() != HISTORY {
            folders.push(folder.clone());
            continue;
        }
        let recorded = history::older(whole.run.reading.header(), &args.run, HISTORY_RUNS_MAX)?;
        // With `--data`, standard output has only the data.
        if recorded.is_empty() && !args.data {
            let line = "the history lists no older run of this world whose folder still exists";
            ui.say(style::paint(style::NOTE, line))?;
        }
        folders.extend(recorded);
    }
    Ok(folders)
}

fn older(folder: &Path) -> anyhow::Result<(String, Reading, Merged)> {
    let (reading, merged) = Reading::open_merged(folder)?;
    Ok((folder.display().to_string(), reading, merged))
}

/// Reads the regression files in a run directory. The key is the number of the finding.
fn regressions(folder: &Path, run: &Run) -> anyhow::Result<BTreeMap<u32, (String, Value)>> {
    let mut all = BTreeMap::new();
    for finding in run.merged.findings() {
        let name = format!("regression-{}.json", finding.id);
        let file = folder.join(&name);
        match everett_input::file::read_text(&file, REGRESSION_BYTES_MAX) {
            Ok(text) => {
                let value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
                all.insert(finding.id, (name, value));
            }
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// Reads the recorded timelines of findings. The key is the number of the finding.
fn scenes(folder: &Path, run: &Run) -> anyhow::Result<BTreeMap<u32, Scene>> {
    let mut all = BTreeMap::new();
    for finding in run.merged.findings().iter().take(SCENES_MAX) {
        let nodes = &run.reading.header().nodes;
        let of = |text: &str| Scene::of_recording(nodes, &finding.hit, text);
        if let Some(scene) = scene(folder, Key::Finding(finding.id), of)? {
            all.insert(finding.id, scene);
        }
    }
    Ok(all)
}

/// Reads the recorded timelines of branches without a finding. The key is the number of the branch.
fn logs(whole: &Whole, recordings: Option<&Recordings>) -> anyhow::Result<BTreeMap<u64, Scene>> {
    let mut all = BTreeMap::new();
    let branches = recordings.into_iter().flat_map(|recordings| &recordings.branches).take(LOGS_MAX);
    for branch in branches {
        let of = |text: &str| Scene::of_branch(&whole.run.reading.header().nodes, text);
        if let Some(scene) = scene(Path::new(&whole.name), Key::Branch(*branch), of)? {
            all.insert(*branch, scene);
        }
    }
    Ok(all)
}

/// Reads the recorded timeline of a finding or a branch. Returns `None` if there is no file.
fn scene(
    folder: &Path,
    key: Key,
    read: impl Fn(&str) -> Result<Scene, (usize, serde_json::Error)>,
) -> anyhow::Result<Option<Scene>> {
    let file = recording::file_of(folder, key);
    match everett_input::file::read_text(&file, RECORDING_BYTES_MAX) {
        Ok(text) => {
            let scene = read(&text);
            Ok(Some(scene.map_err(|(line, error)| anyhow::anyhow!("{}:{line}: {error}", file.display()))?))
        }
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads `recorded.json`: the results of the replays that `explore` ran at its end to record timelines for the report.
/// `None` if the file does not exist.
fn recordings(folder: &Path) -> anyhow::Result<Option<Recordings>> {
    let file = folder.join(record::FILE);
    match everett_input::file::read_text(&file, RECORDINGS_BYTES_MAX) {
        Ok(text) => Ok(Some(serde_json::from_str(&text).with_context(|| file.display().to_string())?)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads the results of `everett causality` for the findings. The key is the number of the finding.
fn causalities(folder: &Path, run: &Run) -> anyhow::Result<BTreeMap<u32, Causality>> {
    let mut all = BTreeMap::new();
    for finding in run.merged.findings() {
        let file = causality::file_of(folder, finding.id);
        match everett_input::file::read_text(&file, causality::FILE_BYTES_MAX) {
            Ok(text) => {
                let causality = Causality::parse(&text).with_context(|| file.display().to_string())?;
                // The result may be of an earlier exploration in this run directory, which numbered its findings
                // differently.
                if (&causality.property, &causality.signature)
                    == (&finding.hit.property, &finding.hit.signature)
                {
                    all.insert(finding.id, causality);
                }
            }
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// Reads the code that branches reached, as `everett coverage` recorded it. `None` if there is no file, or if it is of an
/// earlier exploration in this run directory.
fn reached_code(folder: &Path, run: &Run) -> anyhow::Result<Option<ReachedCode>> {
    let file = folder.join(reached_code::FILE);
    match everett_input::file::read_text(&file, reached_code::FILE_BYTES_MAX) {
        Ok(text) => {
            let code = ReachedCode::parse(&text).with_context(|| file.display().to_string())?;
            let header = run.reading.header();
            let is_it = (&code.identity, code.seed) == (&header.identity, header.seed)
                && code.branches_all <= run.reading.len();
            Ok(Some(code).filter(|_| is_it))
        }
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads files of executed edges. `None` if there are no files.
fn code(files: &[PathBuf]) -> anyhow::Result<Option<Code>> {
    let mut edges = Edges::default();
    for file in files {
        let text = everett_input::file::read_text(file, EDGES_BYTES_MAX)?;
        for (number, line) in (1..).zip(text.lines()) {
            edges
                .line(line)
                .with_context(|| format!("{}:{number}: invalid line in a file of edges", file.display()))?;
        }
    }
    Ok(edges.finish())
}

fn write_page(ui: &Ui, data: &Data, file: &Path) -> anyhow::Result<()> {
    write(ui, file, &page::html(data)?)
}

/// Replaces a file, and prints its path.
fn write(ui: &Ui, file: &Path, text: &str) -> anyhow::Result<()> {
    replace(file, text)?;
    let name = file.display().to_string();
    ui.record(&Written { kind: "report", file: &name, bytes: text.len() as u64 })?;
    tell_file(ui, file)
}

fn tell_file(ui: &Ui, file: &Path) -> anyhow::Result<()> {
    Ok(ui.say(format!("report {}", style::paint(style::HEAD, file.display())))?)
}

/// Writes the report as Markdown and as JSON into a folder.
fn to_files(ui: &Ui, report: &Report, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    replace(&folder.join("report.md"), &report.markdown())?;
    replace(&folder.join("report.json"), &(report.json()? + "\n"))?;
    ui.say(format!("{} and report.json", folder.join("report.md").display()))?;
    Ok(())
}

/// Prints the short report.
fn tell(ui: &Ui, data: &Data, run: &Path) -> anyhow::Result<()> {
    for (number, line) in text::brief(data).into_iter().enumerate() {
        ui.say(if number == 0 { style::paint(style::HEAD, line) } else { line })?;
    }
    let more = format!("everett report {} --html writes a page, --all prints everything", run.display());
    Ok(ui.say(style::paint(style::FAINT, more))?)
}
