//! The command line: [`Cli`], the list of the commands, and the commands. Each takes its arguments and returns an [`Outcome`].
//!
//! - one command each, whose file begins with its arguments (`Args`): `boot`, `cache`, `demo`, `doctor`, `explore`, `image`,
//!   `init`, `moment`, `plan`, `replay`, `run`, `show`, `shrink`, `causality`, `verify`, `findings`, `report`, `runs`, `serve`;
//!   two: `install` (`completions` and `man`)
//! - `common`: the world, the image, the seed and the start of a run; `exploration`: a run directory and its setting;
//!   `instruments`: `--watch` and `--edges`
//! - other arguments that commands share: `engine_choice`: which engine; `engine_options`: how it executes; `timeline`; `id`: a
//!   finding or a branch; `age`
//! - `explore_display`: what `explore` shows while it runs; `demo_versions`: the versions of packages in the demo;
//!   `demo_agent`: the agent with which its figures were seen
//! - `history`: the history of runs, for `explore`, `demo`, `report` and `runs`; in its place `no_history`, in a build without that
//!   feature. `prune_args`: the arguments of `runs prune`
//! - `recording`: the timeline of a finding, for reports; `plans`: the faults of branches, for reports; `run_files`: writing of
//!   files in run directories
//! - `resources`: the host's cores and memory, for defaults
//! - `reporter` reports the events of a run, and `judge` judges them
//!
//! Not here: the execution of a run (`everett-session`).

mod age;
mod boot;
mod cache;
mod causality;
mod common;
mod demo;
mod demo_agent;
mod demo_versions;
mod doctor;
mod engine_choice;
mod engine_options;
mod exploration;
mod explore;
mod explore_display;
mod findings;
#[cfg(feature = "history")]
mod history;
mod id;
mod image;
mod init;
mod install;
mod instruments;
mod judge;
mod moment;
#[cfg(not(feature = "history"))]
mod no_history;
mod plan;
mod plans;
mod prune_args;
mod record;
mod recording;
mod replay;
mod report;
mod reporter;
mod resources;
mod run;
mod run_files;
mod runs;
mod serve;
mod show;
mod shrink;
mod timeline;
mod trial_boot;
mod verify;

use std::io;
use std::process::ExitCode;

pub use report::live_page;

#[cfg(not(feature = "history"))]
use no_history as history;

use everett_input::causes::with_causes;
use everett_input::text;
use everett_session::world::timeline::BootError;
use serde::Serialize;

use crate::ui::{Ui, style};

/// Everett runs unmodified Linux servers in a deterministic simulation: the same world and seed give the same run, to
/// the bit.
#[derive(Debug, clap::Parser)]
#[command(
    name = "everett",
    version,
    after_help = "Exit status: 0 if all is well, 1 if something was found, 2 if the command failed."
)]
pub struct Cli {
    /// Print JSON lines instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the capabilities of this host and the engine that follows from them
    Doctor(doctor::Args),
    /// Build images: kernel, initramfs, root filesystem
    #[command(subcommand)]
    Image(image::Args),
    /// Show and prune the cache of images, layers, packages and boots
    Cache(cache::Args),
    /// Boot one machine with its console on the terminal
    Boot(boot::Args),
    /// Write a first world file from a compose file, an image, a Debian package or a program
    Init(init::Args),
    /// Run one timeline
    Run(run::Args),
    /// Run one timeline several times and compare the runs
    Verify(verify::Args),
    /// Save, list, show, restore and drop moments of a timeline
    #[command(subcommand)]
    Moment(moment::Args),
    /// Draw a fault plan for a world: JSON lines for --faults
    Plan(plan::Args),
    /// Fork timelines of a world, inject different faults into each, and look for findings
    Explore(explore::Args),
    /// List what an exploration found
    Findings(findings::Args),
    /// Show a finding or a branch, or the digest of the whole exploration
    Show(show::Args),
    /// Replay a finding or a branch exactly, and compare it with the record
    Replay(replay::Args),
    /// Find the fewest faults that still show a finding
    Shrink(shrink::Args),
    /// Find the step of a finding's timeline at which the finding became likely
    Causality(causality::Args),
    /// Report what an exploration covered, found and never reached
    Report(report::Args),
    /// Show the report of a run in a browser while the run goes on
    Serve(serve::Args),
    /// List the explorations of a world, and prune them
    Runs(runs::Args),
    /// Explore a real cluster until it loses acknowledged writes; replay, shrink and explain it
    Demo(demo::Args),
    /// Print completions for a shell
    Completions(install::Completions),
    /// Write man pages into a folder
    Man(install::Man),
}

/// Result of a command that could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No problem found: exit status 0.
    Fine,
    /// Problem found: exit status 1.
    Found,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Fine => ExitCode::SUCCESS,
            Outcome::Found => ExitCode::from(1),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the command could not run: exit status 2.
pub fn run(cli: &Cli) -> anyhow::Result<Outcome> {
    let ui = Ui::new(cli.json);
    match &cli.command {
        Command::Doctor(args) => doctor::run(&ui, args),
        Command::Image(args) => image::run(&ui, args),
        Command::Cache(args) => cache::run(&ui, args),
        Command::Boot(args) => boot::run(&ui, args),
        Command::Init(args) => init::run(&ui, args),
        Command::Run(args) => run::run(&ui, args),
        Command::Verify(args) => verify::run(&ui, args),
        Command::Moment(args) => moment::run(&ui, args),
        Command::Plan(args) => plan::run(&ui, args),
        Command::Explore(args) => explore::run(&ui, args),
        Command::Findings(args) => findings::list(&ui, args),
        Command::Show(args) => show::run(&ui, args),
        Command::Replay(args) => replay::run(&ui, args),
        Command::Shrink(args) => shrink::run(&ui, args),
        Command::Causality(args) => causality::run(&ui, args),
        Command::Report(args) => report::run(&ui, args),
        Command::Serve(args) => serve::run(&ui, args),
        Command::Runs(args) => runs::run(&ui, args),
        Command::Demo(args) => demo::run(&ui, args),
        Command::Completions(args) => install::completions(args),
        Command::Man(args) => install::man(&ui, args),
    }
}

/// Reports in one line why a command could not run (one line for each bad line of a fault plan); with `--json` also as
/// JSON on standard output.
pub fn report_error(cli: &Cli, error: &anyhow::Error) {
    // The reader of the output has closed it, as `head` does. That is not reported.
    if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return;
    }
    #[derive(Serialize)]
    struct Record<'a> {
        kind: &'static str,
        error: &'a str,
    }
    let lines = match error.downcast_ref::<common::BadPlan>() {
        Some(plan) => plan.lines().iter().map(|line| text::one_line(line)).collect(),
        None => vec![one_line(error)],
    };
    if let Some(BootError::Useless { lines, .. }) = error.downcast_ref() {
        lines.iter().for_each(|line| anstream::eprintln!("    {}", text::one_line(line)));
    }
    for line in &lines {
        let _ = Ui::new(cli.json).record(&Record { kind: "error", error: line });
        anstream::eprintln!("{} {line}", style::paint(style::BAD, "everett:"));
    }
}

/// Returns an error and its causes in one line.
fn one_line(error: &anyhow::Error) -> String {
    text::one_line(&with_causes(error.as_ref()).to_string().replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use clap::CommandFactory;

    use super::{Cli, one_line};

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    /// Adds the names of a command and of those below it that take one of the options.
    fn add_takers(command: &clap::Command, options: &[&str], name: &str, takers: &mut Vec<String>) {
        let count = command.get_arguments().filter(|arg| options.contains(&arg.get_id().as_str())).count();
        assert!(count == 0 || count == options.len(), "{name}: {count} of {options:?}");
        if count > 0 {
            takers.push(name.to_owned());
        }
        for below in command.get_subcommands() {
            add_takers(below, options, &format!("{name} {}", below.get_name()), takers);
        }
    }

    #[test]
    fn only_commands_that_execute_guests_on_the_chosen_engine_take_its_options() {
        let mut cli = Cli::command();
        cli.build();
        let mut takers = Vec::new();
        add_takers(&cli, &["engine", "allow_inexact", "patience"], "everett", &mut takers);
        let expected = [
            "everett boot",
            "everett run",
            "everett verify",
            "everett moment save",
            "everett moment restore",
            "everett explore",
            "everett replay",
            "everett shrink",
            "everett causality",
        ];
        assert_eq!(takers, expected);
    }

    #[test]
    fn causes_are_not_repeated() {
        assert_eq!(one_line(&anyhow!("no space").context("cache")), "cache: no space");
        assert_eq!(
            one_line(&anyhow!("the guest said \u{1b}[2J\u{9b}H")),
            "the guest said \\u{1b}[2J\\u{9b}H"
        );
        assert_eq!(one_line(&anyhow!("a\nb").context("reading: a\nb")), "reading: a b");
    }
}
