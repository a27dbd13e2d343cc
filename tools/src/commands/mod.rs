//! The commands. Each takes its arguments and returns an [`Outcome`].
//!
//! - one command each: `boot`, `cache`, `demo`, `doctor`, `explore`, `image`, `init`, `moment`, `plan`, `replay`, `run`, `show`,
//!   `shrink`, `causality`, `verify`, `findings`, `report`, `runs`; two each: `install` (`completions` and `man`)
//! - `common`: the world, the image, the seed and the start of a run; `exploration`: a run directory and its setting;
//!   `engine_options`: engine switches; `instruments`: `--watch` and `--edges`
//! - `history`: the history of runs, for `explore`, `demo`, `report` and `runs`
//! - `recording`: the timeline of a finding, for reports; `plans`: the faults of branches, for reports
//! - `reporter` reports the events of a run, and `judge` judges them
//!
//! Not here: the execution of a run (`everett-session`) and the arguments ([`crate::cli`]).

mod boot;
mod cache;
mod causality;
mod common;
mod demo;
mod doctor;
mod engine_options;
mod exploration;
mod explore;
mod findings;
mod history;
mod image;
mod init;
mod install;
mod instruments;
mod judge;
mod moment;
mod plan;
mod plans;
mod recording;
mod replay;
mod report;
mod reporter;
mod run;
mod runs;
mod show;
mod shrink;
mod trial;
mod verify;

use std::io;
use std::process::ExitCode;

use everett_input::text;
use everett_session::timeline::BootError;
use serde::Serialize;

use crate::cli::{Cli, Command};
use crate::ui::{Ui, style};

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
    let asked = cli.asked();
    match &cli.command {
        Command::Doctor(options) => doctor::run(options, &ui),
        Command::Image(args) => image::run(&ui, args),
        Command::Cache(args) => cache::run(&ui, args),
        Command::Boot(args) => boot::run(&ui, asked, args),
        Command::Init(args) => init::run(&ui, args),
        Command::Run(args) => run::run(&ui, asked, args),
        Command::Verify(args) => verify::run(&ui, asked, args),
        Command::Moment(args) => moment::run(&ui, asked, args),
        Command::Plan(args) => plan::run(&ui, args),
        Command::Explore(args) => explore::run(&ui, asked, args),
        Command::Findings(args) => findings::list(&ui, args),
        Command::Show(args) => show::run(&ui, args),
        Command::Replay(args) => replay::run(&ui, asked, args),
        Command::Shrink(args) => shrink::run(&ui, asked, args),
        Command::Causality(args) => causality::run(&ui, asked, args),
        Command::Report(args) => report::run(&ui, args),
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

/// Returns an error and its causes in one line. A cause that its effect already quotes is left out.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = text::one_line(&cause.to_string().replace(['\n', '\r'], " "));
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::one_line;

    #[test]
    fn causes_are_not_repeated() {
        assert_eq!(one_line(&anyhow!("no space").context("cache")), "cache: no space");
        assert_eq!(
            one_line(&anyhow!("the guest said \u{1b}[2J\u{9b}H")),
            "the guest said \\u{1b}[2J\\u{9b}H"
        );
        assert_eq!(one_line(&anyhow!("a\nb").context("reading: a b")), "reading: a b");
    }
}
