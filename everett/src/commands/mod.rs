//! The command line: [`Cli`], and a module for each command. A command takes its arguments and returns an
//! [`Outcome`].
//!
//! Commands; each file begins with the command's arguments (`Args`):
//!
//! - `boot`: runs one machine with its console on the terminal
//! - `cache`: lists and removes cached files
//! - `causality`: finds the step at which a finding became likely
//! - `demo`: explores an example cluster until it loses a write
//! - `doctor`: shows what this host can do
//! - `explore`: explores many timelines of a world
//! - `findings`: lists the findings of an exploration
//! - `image`: builds the image of a world
//! - `init`: writes a first world file
//! - `inside`: commands that look into machines, at an instant or at the code that they executed
//! - `install`: the commands `completions` and `man`, which write files for shells and packages
//! - `moment`: saves, lists and restores moments
//! - `plan`: prints the random fault plan that belongs to a seed
//! - `replay`: runs a finding or a branch again
//! - `report`: writes a report on an exploration
//! - `run`: runs one timeline
//! - `runs`: lists explorations, and exports and imports findings as files
//! - `serve`: shows the report in a browser
//! - `show`: prints one finding or branch
//! - `shrink`: finds the fewest faults that still show a finding
//! - `verify`: runs one timeline several times and compares the runs
//!
//! Code that commands share:
//!
//! - `age`: parses ages such as `7d`
//! - `common`: reads the world file, gets the image and the seed, and prepares the start of a run
//! - `demo_agent`: tells whether this build has the agent (Everett's program in guests) that made the trails in the
//!   README
//! - `demo_versions`: builds the demo's images from the package versions that made the trails in the README
//! - `engine_choice`: options that choose the engine
//! - `engine_options`: options that set how the engine executes
//! - `exploration`: opens run directories, and prepares a world so that its branches can run
//! - `explore_display`: shows the progress of a running exploration
//! - `history`: records explorations in a database in the cache, and lists them
//! - `id`: parses the number of a finding or a branch, such as `1` or `b17`
//! - `instruments`: the options `--watch` (report memory accesses) and `--edges` (record executed jumps)
//! - `judge`: decides which events of a single run are findings
//! - `no_history`: replaces `history` in builds without that feature
//! - `no_profile`: replaces `inside::profile` in builds without the feature `inside`
//! - `plans`: computes the faults of each branch again, for reports
//! - `profile_args`: options of a profile
//! - `prune_args`: arguments of `runs prune`
//! - `record`: replays findings after an exploration and stores their timelines, for reports
//! - `recording`: writes the file with the timeline of a finding
//! - `reporter`: prints the events of a running timeline, and writes them to files
//! - `resources`: default number of workers and default memory, from the host's cores and memory
//! - `timeline`: arguments that name a timeline
//! - `trial_boot`: boots a machine for `init`, to find out how a package starts its server
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
#[cfg(feature = "inside")]
mod inside;
mod install;
mod instruments;
mod judge;
mod moment;
#[cfg(not(feature = "history"))]
mod no_history;
#[cfg(not(feature = "inside"))]
mod no_profile;
mod plan;
mod plans;
mod profile_args;
mod prune_args;
mod record;
mod recording;
mod replay;
mod report;
mod reporter;
mod resources;
mod run;
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
#[cfg(not(feature = "inside"))]
use no_profile as profile;

#[cfg(feature = "inside")]
use inside::profile;

use everett_input::causes::with_causes;
use everett_input::text;
use everett_session::world::timeline::BootError;
use serde::Serialize;

use crate::ui::{Ui, style};

/// Everett runs unmodified Linux servers in a deterministic simulation: two runs with the same world and seed are
/// equal to the bit.
#[derive(Debug, clap::Parser)]
#[command(
    name = "everett",
    version,
    after_help = "Exit status: 0 if there is no finding, 1 if there is one, 2 if the command failed."
)]
pub struct Cli {
    /// Print JSON lines instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of the program.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show what this host can do, and which engine Everett uses on it
    Doctor(doctor::Args),
    /// Build a world's image: kernel, initramfs and root filesystem
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
    /// Print the fault plan that a seed draws for a world, as JSON lines for --faults
    Plan(plan::Args),
    /// Fork timelines of a world, inject different faults into each, and look for findings
    Explore(explore::Args),
    /// List the findings of an exploration
    Findings(findings::Args),
    /// Show a finding or a branch, or the digest of an exploration
    Show(show::Args),
    /// Replay a finding or a branch exactly, and compare it with its record
    Replay(replay::Args),
    /// Find the fewest faults that still show a finding
    Shrink(shrink::Args),
    /// Find the step at which a finding became likely
    Causality(causality::Args),
    /// List the processes of all machines at an instant, read from outside
    #[cfg(feature = "inside")]
    Ps(inside::ps::Args),
    /// Print the stacks of all programs at an instant, read from outside
    #[cfg(feature = "inside")]
    Stack(inside::stack::Args),
    /// Print the sockets of all machines at an instant, read from outside
    #[cfg(feature = "inside")]
    Ss(inside::ss::Args),
    /// Print the open files of all processes at an instant, read from outside
    #[cfg(feature = "inside")]
    Files(inside::files::Args),
    /// Write processes at an instant as core files for gdb, read from outside
    #[cfg(feature = "inside")]
    Core(inside::core::Args),
    /// Debug a finding or a branch at any instant, forwards and backwards, in a session or with gdb
    #[cfg(feature = "inside")]
    Debug(inside::debug::Args),
    /// Write a machine's RAM at an instant as a core file of its kernel, for drgn and crash
    #[cfg(feature = "inside")]
    Vmcore(inside::vmcore::Args),
    /// Print the log lines of a finding or a branch up to an instant
    #[cfg(feature = "inside")]
    Logs(inside::logs::Args),
    /// Write the frames on the wire up to an instant as a capture for Wireshark
    #[cfg(feature = "inside")]
    Pcap(inside::pcap::Args),
    /// Write the image of a disk at an instant, also as a power loss would leave it
    #[cfg(feature = "inside")]
    Disk(inside::disk::Args),
    /// Answer a question about a span of a timeline from outside, such as all system calls of a process
    #[cfg(feature = "inside")]
    Ask(inside::ask::Args),
    /// Find the functions and source lines of programs that an exploration reached, for the report
    #[cfg(feature = "inside")]
    Coverage(inside::coverage::Args),
    /// Run a command or a shell in a machine, in a throw-away fork at an instant
    #[cfg(feature = "inside")]
    Shell(inside::shell::Args),
    /// Copy a file or a folder out of a machine at an instant
    #[cfg(feature = "inside")]
    Cp(inside::cp::Args),
    /// List files of a machine at an instant
    #[cfg(feature = "inside")]
    Ls(inside::ls::Args),
    /// Print values at places of programs on recorded branches, after the fact
    #[cfg(feature = "inside")]
    Print(inside::print::Args),
    /// Find who wrote bytes of memory, of a file or of a message, and where that program had them from
    #[cfg(feature = "inside")]
    Who(inside::who::Args),
    /// Report what an exploration covered, what it found and what it never reached
    Report(report::Args),
    /// Show the report of a run in a browser, also while the run goes on
    Serve(serve::Args),
    /// List the explorations of a world, and prune them
    Runs(runs::Args),
    /// Explore a real cluster until it loses acknowledged writes; then replay, shrink and explain the finding
    Demo(demo::Args),
    /// Print completions for a shell
    Completions(install::Completions),
    /// Write man pages into a folder
    Man(install::Man),
}

/// Result of a command that could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No finding or difference: exit status 0.
    Fine,
    /// Finding or difference: exit status 1.
    Found,
    /// A command in a guest ended with this status, which becomes the exit status.
    #[cfg(feature = "inside")]
    Status(u8),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Fine => ExitCode::SUCCESS,
            Outcome::Found => ExitCode::from(1),
            #[cfg(feature = "inside")]
            Outcome::Status(status) => ExitCode::from(status),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the command could not run. The exit status is then 2.
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
        #[cfg(feature = "inside")]
        Command::Ps(args) => inside::ps::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Stack(args) => inside::stack::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Ss(args) => inside::ss::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Files(args) => inside::files::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Core(args) => inside::core::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Debug(args) => inside::debug::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Vmcore(args) => inside::vmcore::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Logs(args) => inside::logs::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Pcap(args) => inside::pcap::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Disk(args) => inside::disk::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Ask(args) => inside::ask::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Coverage(args) => inside::coverage::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Shell(args) => inside::shell::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Cp(args) => inside::cp::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Ls(args) => inside::ls::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Print(args) => inside::print::run(&ui, args),
        #[cfg(feature = "inside")]
        Command::Who(args) => inside::who::run(&ui, args),
        Command::Report(args) => report::run(&ui, args),
        Command::Serve(args) => serve::run(&ui, args),
        Command::Runs(args) => runs::run(&ui, args),
        Command::Demo(args) => demo::run(&ui, args),
        Command::Completions(args) => install::completions(args),
        Command::Man(args) => install::man(&ui, args),
    }
}

/// Prints why a command could not run. An error takes one line, and an invalid fault plan takes a line for each of its
/// invalid lines. If a boot failed, the last output lines of the services come first. With `--json`, the function also
/// prints JSON on standard output.
pub fn report_error(cli: &Cli, error: &anyhow::Error) {
    // A reader such as `head` has closed the output. That is no error.
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

/// Returns an error and its causes in one line. A cause is left out if the text of the error before it ends with the
/// cause's text.
fn one_line(error: &anyhow::Error) -> String {
    text::one_line(&with_causes(error.as_ref()).replace(['\n', '\r'], " "))
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

    /// Appends to `takers` the name of each command that takes these options, among `command` and all its subcommands.
    /// Panics if a command takes only some of the options.
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
            #[cfg(feature = "inside")]
            "everett ps",
            #[cfg(feature = "inside")]
            "everett stack",
            #[cfg(feature = "inside")]
            "everett ss",
            #[cfg(feature = "inside")]
            "everett files",
            #[cfg(feature = "inside")]
            "everett core",
            #[cfg(feature = "inside")]
            "everett debug",
            #[cfg(feature = "inside")]
            "everett vmcore",
            #[cfg(feature = "inside")]
            "everett logs",
            #[cfg(feature = "inside")]
            "everett pcap",
            #[cfg(feature = "inside")]
            "everett disk",
            #[cfg(feature = "inside")]
            "everett ask",
            #[cfg(feature = "inside")]
            "everett coverage",
            #[cfg(feature = "inside")]
            "everett shell",
            #[cfg(feature = "inside")]
            "everett cp",
            #[cfg(feature = "inside")]
            "everett ls",
            #[cfg(feature = "inside")]
            "everett print",
            #[cfg(feature = "inside")]
            "everett who",
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
