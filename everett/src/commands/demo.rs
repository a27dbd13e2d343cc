//! `everett demo`: explores a real cluster until it loses acknowledged data. Then it replays, shrinks and explains
//! the finding.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use everett_explorer::run::Finding;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_session::explore::expedition::Limits;
use everett_session::explore::path_runner::{PathRunner, Watch};
use everett_session::explore::replay::{Recorded, Replayed, replay};
use everett_session::explore::setting::Setting;
use everett_session::explore::shrink::{Limits as ShrinkLimits, Shrunk, Wanted};
use everett_session::output::show;
use everett_session::world::event::{Event, What};
use everett_streams::Seed;
use everett_vmm::wire::log::FrameStep;
use serde::Serialize;

use super::exploration::Run;
use super::explore::Form;
use super::id::Id;
use super::recording::{Key, Recording};
use super::{Outcome, common, demo_versions, explore, findings, report, resources, shrink};
use crate::ui::{Ui, printable, style};

/// `everett demo`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The seed; with the default, the finding comes soon
    #[arg(long, value_name = "N", default_value_t = Seed::new(18))]
    pub seed: Seed,
    /// The run directory [default: everett-demo in the current folder, or everett-demo-2 and so on]
    #[arg(short, long, value_name = "RUN")]
    pub output: Option<PathBuf>,
}

/// World of the demo. The next constant is the control: a world in which any finding would be a false alarm. Both paths
/// are relative to the project's top folder.
const WORLD: &str = "examples/redis-sentinel/world.toml";
const CONTROL: &str = "examples/redis-sentinel/alone.toml";
/// Number of branches after which the demo gives up.
const BRANCHES_MAX: u64 = 600;
/// Minimum number of branches of the control. Fewer branches without a finding would prove little.
const CONTROL_BRANCHES_MIN: u64 = 60;
/// Name of the default run directory. If the name is taken, a number follows it.
const FOLDER: &str = "everett-demo";
/// Maximum number of default run directories in one folder.
const FOLDERS_MAX: u32 = 1000;
/// Number of times that the demo replays the finding.
const REPLAYS: u32 = 3;
/// Texts in the log lines of Sentinel that the demo prints. These lines report that a primary seems down, is down, and
/// is replaced.
const TOLD: [&str; 3] = ["+sdown master", "+odown", "+switch-master"];

#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    property: &'a str,
    text: &'a str,
    branches: u64,
    trail: &'a str,
    replays: u32,
    faults: usize,
    control_branches: u64,
    control_findings: usize,
    host_seconds: f64,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let clock = Stopwatch::start();
    let world = common::load(&find(WORLD)?)?;
    let control = common::load(&find(CONTROL)?)?;
    let place = tempfile::tempdir()?;
    let own = args.output.is_none().then(|| NewFolder::in_folder(Path::new(""))).transpose()?;
    let folder = own.as_ref().map(|own| &own.0).or(args.output.as_ref()).context("no run directory")?;
    let interrupt = Interrupt::install()?;
    heading(
        ui,
        1,
        "The world: three machines with Debian's Redis and Sentinel, and a client that adds numbers to a set",
    )?;
    let explored = demo_versions::prepare(ui, world, args.seed, &interrupt)?;
    ui.say(format!("image {}", explored.header.image))?;

    heading(ui, 2, "Explore it, with partitions and power losses, until there is a finding")?;
    let limits = Limits {
        branches: BRANCHES_MAX,
        host_ns: None,
        until_found: true,
        workers: resources::cores(),
        memory_bytes: resources::default_memory(),
    };
    let form = Form { history: true, ..Form::default() };
    let (outcome, _) = explore::go(ui, &explored, folder, &limits, &interrupt, &|_| {}, form)?;
    let branches = outcome.merged.branches();
    if interrupt.wanted() {
        bail!("interrupted");
    }
    let run = Run::open(folder)?;
    let Some(finding) = run.merged.findings().first().cloned() else {
        bail!("nothing was found on {branches} branches under seed {}: try another --seed", args.seed);
    };

    heading(ui, 3, &format!("Run its path again, {REPLAYS} times, each on machines of its own"))?;
    let trail = replays(ui, &explored.setting, (folder, &run), &finding)?;

    heading(ui, 4, "Shrink its fault plan to the fewest faults that still show it")?;
    let wanted = Wanted::of(&finding.hit);
    let shrinking = Stopwatch::start();
    let setting = &explored.setting;
    let whole = ShrinkLimits { workers: resources::cores(), host_ns: None, interrupt: &interrupt };
    let shrunk = shrink::shrunk(ui, setting, &finding.path, &wanted, &whole)?;
    if interrupt.wanted() {
        bail!("interrupted");
    }
    shrink::write(ui, setting, &shrunk, &folder.join("regression-1.json"), &shrinking)?;

    heading(ui, 5, "The story")?;
    story(ui, setting, &shrunk)?;

    let branches_of_control = branches.max(CONTROL_BRANCHES_MIN);
    heading(
        ui,
        6,
        &format!(
            "The control, where nothing is wrong: one Redis that flushes before it answers, same faults, {branches_of_control} branches"
        ),
    )?;
    let control = demo_versions::prepare(ui, control, args.seed, &interrupt)?;
    let limits = Limits { branches: branches_of_control, until_found: false, ..limits };
    let (form, control_run) = (Form::default(), place.path().join("control"));
    let (clean, _) = explore::go(ui, &control, &control_run, &limits, &interrupt, &|_| {}, form)?;
    let control_findings = clean.merged.findings().len();
    for finding in clean.merged.findings() {
        findings::tell(ui, &control.header, finding)?;
    }

    let seconds = clock.seconds();
    let plan = shrunk.route.plan.as_ref().map_or(0, |plan| plan.entries().len());
    ui.record(&Record {
        kind: "demo",
        property: &finding.hit.property,
        text: &finding.hit.text,
        branches,
        trail: &trail,
        replays: REPLAYS,
        faults: plan,
        control_branches: clean.merged.branches(),
        control_findings,
        host_seconds: seconds,
    })?;
    ui.say("")?;
    report::page_of(ui, folder, None)?;
    ui.say(format!(
        "the run directory is {0}; everett findings {0} and everett report {0} show more",
        folder.display()
    ))?;
    if control_findings > 0 {
        ui.say(style::paint(
            style::BAD,
            "the control has a finding, although nothing is wrong in its world",
        ))?;
        return Ok(Outcome::Found);
    }
    ui.say(style::paint(
        style::GOOD,
        format!(
            "Found, repeated to the bit, and shrunk to {plan} {}. The control has no finding. ({seconds:.0} s in all)",
            if plan == 1 { "fault" } else { "faults" }
        ),
    ))?;
    Ok(Outcome::Fine)
}

/// Run directory that the demo has created. Dropping it removes the folder if the demo wrote nothing there.
#[derive(Debug)]
struct NewFolder(PathBuf);

impl NewFolder {
    /// Creates a new folder, so that no existing file changes. It is named `everett-demo`, or `everett-demo-2` and so
    /// on if that name is taken.
    fn in_folder(place: &Path) -> anyhow::Result<NewFolder> {
        for number in 1..=FOLDERS_MAX {
            let name = if number == 1 { FOLDER.to_owned() } else { format!("{FOLDER}-{number}") };
            let folder = place.join(name);
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(NewFolder(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let what = format!("cannot create {}; name another folder with -o", folder.display());
                    return Err(error).context(what);
                }
            }
        }
        bail!("{FOLDER} to {FOLDER}-{FOLDERS_MAX} exist already; remove some, or name a folder with -o")
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // Fails, as intended, if the folder has files.
        let _ = fs::remove_dir(&self.0);
    }
}

fn heading(ui: &Ui, number: u32, text: &str) -> anyhow::Result<()> {
    Ok(ui.say(style::paint(style::HEAD, format!("\n{number}. {text}")))?)
}

/// Finds a world file of the demo. It looks in the working folder, in the program's folder and in the parents of
/// both, and then in the source folder from which Everett was built.
fn find(name: &str) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let program = std::env::current_exe().unwrap_or_default();
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let found = here.ancestors().chain(program.ancestors()).chain([built.as_path()]);
    let found = found.map(|folder| folder.join(name)).find(|file| file.is_file());
    found.with_context(|| format!("cannot find {name}; run the demo in the project's folder"))
}

/// Replays the finding [`REPLAYS`] times, and records its timeline for the report. Returns the trail, or an error if
/// a replay has another trail than the exploration.
fn replays(
    ui: &Ui,
    setting: &Setting,
    (folder, run): (&Path, &Run),
    finding: &Finding,
) -> anyhow::Result<String> {
    let record = run.record(Id::Finding(finding.id))?;
    let recorded = Recorded::of(&run.reading, &record)?;
    for number in 1..=REPLAYS {
        let clock = Stopwatch::start();
        let mut tape = Tape(Recording::new(&run.reading.header().nodes));
        match replay(setting, &record.path, &recorded, &mut tape)? {
            Replayed::Same(branch) => {
                let trail = everett_session::explore::marks::digest(&branch.marks);
                let again = Wanted::of(&finding.hit).in_branch(&branch).is_some();
                if trail != record.trail || !again {
                    bail!("replay {number} differs: its trail is {trail}, {} was recorded", record.trail);
                }
                if number == 1 {
                    for shown in run.merged.findings().iter().filter(|shown| shown.first == finding.first) {
                        tape.0.write(
                            folder,
                            Key::Finding(shown.id),
                            &record.path.to_string(),
                            &record.trail,
                        )?;
                    }
                }
                ui.say(format!("replay {number}  trail {trail}, found again, {:.1} s", clock.seconds()))?;
            }
            Replayed::Left { vtime_ns, .. } => bail!("replay {number} leaves the trail at {vtime_ns} ns"),
            Replayed::Ended(_) => bail!("interrupted"),
        }
    }
    Ok(record.trail)
}

/// Watches a replay and records its timeline.
struct Tape(Recording);

impl Watch for Tape {
    fn event(&mut self, event: &Event) {
        self.0.event(event);
    }

    fn message(&mut self, step: &FrameStep) {
        self.0.message(step);
    }
}

/// Replays the shrunk timeline and prints its faults and the log lines that tell its story.
fn story(ui: &Ui, setting: &Setting, shrunk: &Shrunk) -> anyhow::Result<()> {
    struct Story(Vec<Event>);
    impl Watch for Story {
        fn event(&mut self, event: &Event) {
            let told = match &event.what {
                What::Fault { .. } | What::Healed { .. } | What::Loss(_) | What::End => true,
                What::Line { unit, text, .. } => {
                    unit == "client" || unit == "check" || TOLD.iter().any(|told| text.contains(told))
                }
                _ => false,
            };
            if told {
                self.0.push(event.clone());
            }
        }
    }
    let mut story = Story(Vec::new());
    PathRunner::new(setting)?.journey(&shrunk.route, &mut story)?;
    for event in &story.0 {
        ui.say(show::line(event, true))?;
    }
    let hit = &shrunk.found.hit;
    let line = format!("{}: {}", printable(&hit.property), printable(&hit.text));
    Ok(ui.say(style::paint(style::BAD, line))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_demo_leaves_the_first_ones_folder_alone() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("everett-demo-2"), "a file of the user").unwrap();
        let first = NewFolder::in_folder(place.path()).unwrap();
        assert_eq!(first.0, place.path().join("everett-demo"));
        fs::write(first.0.join("run.json"), "{}").unwrap();
        let third = NewFolder::in_folder(place.path()).unwrap();
        assert_eq!(third.0, place.path().join("everett-demo-3"));
        let (kept, empty) = (first.0.clone(), third.0.clone());
        drop((first, third));
        assert!(kept.join("run.json").is_file(), "a folder with results stays");
        assert!(!empty.exists(), "an empty folder is removed");
        assert_eq!(fs::read(place.path().join("everett-demo-2")).unwrap(), b"a file of the user");
    }
}
