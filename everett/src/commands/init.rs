//! `everett init`: writes a first world file.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use everett_host::interrupt::Interrupt;
use everett_session::images;
use everett_world_file::init::{self, Draft, Machines, Subject, Wanted, compose_in};
use everett_world_file::{NODES_MAX, parse_image};
use serde::Serialize;

use super::common::WORLD_FILE;
use super::{Outcome, trial_boot};
use crate::features;
use crate::ui::{Ui, printable, style};

/// `everett init`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A name that ends in .yaml or .yml is a compose file. A path is a program, or a folder with a compose file or an \
                        OCI layout. A word with a colon is an image. Any other word is a Debian package. docs/guide.md has the rules."
)]
pub struct Args {
    /// A compose file, an image, a Debian package or a program [default: the compose file in the current folder]
    pub subject: Option<String>,
    /// Container image, as a world file names it: a name, docker://…, oci:… or an archive
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["subject", "package"])]
    pub image: Option<String>,
    /// Debian package
    #[arg(long, value_name = "PACKAGE", conflicts_with = "subject")]
    pub package: Option<String>,
    /// World file to write [default: world.toml in the current folder, or beside the compose file]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Number of machines that run the server [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=NODES_MAX as i64))]
    pub nodes: Option<u16>,
    /// TCP port at which the server answers clients
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Do not boot a machine to find out how an unknown package starts its server, and at which port the server
    /// listens
    #[arg(long)]
    pub no_boot: bool,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

/// Host time of the exploration that the output suggests.
const BUDGET: &str = "10m";
/// Vtime of the run that the output suggests, if the workload does not end by itself.
const DURATION: &str = "10s";

#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    world: &'a str,
    nodes: Vec<&'a str>,
    notes: &'a [String],
    next: &'a [String],
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let subject = subject(args)?;
    let output = match (&args.output, &subject) {
        (Some(file), _) => file.clone(),
        (None, Subject::Compose(file)) => file.with_file_name(WORLD_FILE),
        (None, _) => PathBuf::from(WORLD_FILE),
    };
    let shown = printable(&output.display().to_string()).to_string();
    if output.extension().is_none_or(|end| end != "toml") {
        bail!("-o {shown}: the name of a world file must end in .toml");
    }
    // Checked here, because the next steps take time. Creating the file checks again that it does not exist.
    if output.symlink_metadata().is_ok() {
        return Err(taken(&shown));
    }
    let machines = machines(subject, &args.arguments)?;
    let wanted = Wanted { output: output.clone(), nodes: args.nodes.map(usize::from), port: args.port };
    let draft = match args.no_boot {
        true => init::draft(&machines, &wanted)?,
        false => tried(ui, machines, &wanted)?,
    };
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&output) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(taken(&shown)),
        file => file.with_context(|| shown.clone())?,
    };
    file.write_all(draft.text.as_bytes()).with_context(|| shown.clone())?;
    tell(ui, &draft, &output, &shown)
}

/// Boots a trial machine, which shows how an unknown package starts its server and at which port it listens. Returns
/// a draft of the world file that uses these results.
fn tried(ui: &Ui, machines: Machines, wanted: &Wanted) -> anyhow::Result<Draft> {
    let one = Wanted { nodes: None, ..wanted.clone() };
    let (machines, needs_port) = match machines {
        Machines::Package(package) if !init::is_known_package(&package) => {
            let world = init::draft(&Machines::Package(package.clone()), &one)?.world;
            ui.say(style::paint(
                style::FAINT,
                format!("booting a machine to see what {} installs", printable(&package)),
            ))?;
            let interrupt = Interrupt::install()?;
            let name = package.split('=').next().unwrap_or(&package);
            let units =
                trial_boot::run(ui, &world, &["sh", "-c", init::UNITS_SCRIPT, "sh", name], &interrupt)?;
            match init::unit_of(&package, &units.lines) {
                Some(unit) => {
                    let unit = Box::new(unit);
                    (Machines::Installed { package, unit, found: None }, wanted.port.is_none())
                }
                None => (Machines::Package(package), false),
            }
        }
        Machines::Program { path, arguments } => {
            (Machines::Program { path, arguments }, wanted.port.is_none())
        }
        other => return Ok(init::draft(&other, wanted)?),
    };
    let mut draft = init::draft(&machines, wanted)?;
    if !needs_port {
        return Ok(draft);
    }
    ui.say(style::paint(style::FAINT, "booting a machine to see at which port the server listens"))?;
    let interrupt = Interrupt::install()?;
    let world = init::draft(&machines, &one)?.world;
    let shown = trial_boot::run(ui, &world, &["sh", "-c", init::LISTENING_SCRIPT], &interrupt)?;
    if let Some(found) = init::listening(&shown.lines).first() {
        draft = match machines {
            Machines::Installed { package, unit, .. } => {
                init::draft(&Machines::Installed { package, unit, found: Some(*found) }, wanted)?
            }
            machines => init::draft(&machines, &Wanted { port: Some(found.port), ..wanted.clone() })?,
        };
    }
    draft.notes.extend(of_trial(&shown));
    Ok(draft)
}

/// Returns a note if the server ended in the trial boot.
fn of_trial(shown: &trial_boot::TrialBoot) -> Option<String> {
    let status = shown.ended.as_ref()?;
    let last = shown.last.last().map_or(String::new(), |line| format!(", and printed: {line}"));
    Some(format!("in a trial boot the server ended with {status}{last}"))
}

fn taken(shown: &str) -> anyhow::Error {
    anyhow!("{shown} exists already, and init does not overwrite it; name another file with -o")
}

/// Returns the subject that the arguments name: a compose file, an image, a package or a program.
fn subject(args: &Args) -> anyhow::Result<Subject> {
    Ok(match (&args.subject, &args.image, &args.package) {
        (_, Some(image), _) => Subject::Image(image.clone()),
        (_, _, Some(package)) => Subject::Package(package.clone()),
        (Some(words), ..) => Subject::of(words, Path::new(""))?,
        (None, None, None) => Subject::Compose(compose_in(Path::new(""))?.ok_or_else(|| {
            anyhow!(
                "no compose file in the current folder; name one, or an image, a Debian package or a program"
            )
        })?),
    })
}

/// Reads what the draft needs to know about the subject, such as the ports that an image declares.
fn machines(subject: Subject, arguments: &[String]) -> anyhow::Result<Machines> {
    if !arguments.is_empty() && !matches!(subject, Subject::Program(_)) {
        bail!(
            "only a program takes arguments after --; write the command of an image or package into the world file"
        );
    }
    Ok(match subject {
        Subject::Compose(file) => Machines::Compose(file),
        Subject::Package(name) => Machines::Package(name),
        Subject::Program(path) => Machines::Program { path, arguments: arguments.to_vec() },
        Subject::Image(text) => {
            let image = parse_image(Path::new("."), &text).map_err(|what| anyhow!("{text}: {what}"))?;
            let facts = images::facts(&image, features::access())?;
            Machines::Image { image, text, facts }
        }
    })
}

/// Prints what was written, and the commands to run next.
fn tell(ui: &Ui, draft: &Draft, output: &Path, shown: &str) -> anyhow::Result<Outcome> {
    let is_default = output == Path::new(WORLD_FILE);
    let word = if is_default { String::new() } else { format!(" {}", shell_word(shown)) };
    let is_endless = draft.world.workload.drivers.iter().any(|driver| driver.repeat);
    let duration = if is_endless { format!(" --for {DURATION}") } else { String::new() };
    let next = [format!("everett run{word}{duration}"), format!("everett explore{word} --budget {BUDGET}")];
    let names: Vec<&str> = draft.world.nodes.iter().map(|node| node.name.as_str()).collect();
    let machines = if names.len() == 1 { "a world of one machine" } else { "a world of machines" };
    ui.say(format!("{} {machines}: {}", style::paint(style::HEAD, format!("{shown}:")), names.join(", ")))?;
    for note in &draft.notes {
        ui.say(style::paint(style::NOTE, printable(note)))?;
    }
    ui.say("next:")?;
    for command in &next {
        ui.say(format!("    {command}"))?;
    }
    ui.record(&Record { kind: "init", world: shown, nodes: names, notes: &draft.notes, next: &next })?;
    Ok(Outcome::Fine)
}

/// Quotes a path so that a shell reads it as one word.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%".contains(c);
    if !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let dot = if text.starts_with('-') { "./" } else { "" };
    format!("'{dot}{}'", text.replace('\'', "'\\''"))
}
