//! A session over the whole world on a recorded branch, on a terminal or from lines.

use std::io::{self, BufRead as _, Read as _};

use anyhow::{Context as _, bail};
use everett_explorer::run::Record;
use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_session::debug::debugger::answer::{Answer, Reason};
use everett_session::debug::debugger::command::{Command, Goal};
use everett_session::debug::debugger::entry::Hit;
use everett_session::debug::debugger::error::Refused;
use everett_session::debug::debugger::{Debugger, Recorded};
use everett_session::explore::path_runner::Interrupted;
use everett_session::explore::replay::Recorded as Marks;
use serde::Serialize;

use super::super::super::exploration::Run;
use super::super::super::id::Id;
use super::super::super::{Outcome, resources};
use super::super::instant::Instant;
use super::super::{guests, raw_terminal};
use super::editor::{LineEditor, Typed};
use super::help::help;
use super::parse::{Line, parse};
use super::{Args, answers};
use crate::ui::{Ui, printable, style};

/// Maximum length of a line of standard input, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Answer as a line of `--json`.
#[derive(Serialize)]
struct Answered<'a> {
    command: &'a str,
    #[serde(flatten)]
    answer: &'a Answer,
}

/// List of commands as a line of `--json`.
#[derive(Serialize)]
struct Helped<'a> {
    command: &'a str,
    kind: &'static str,
    lines: &'a [String],
}

/// A session.
struct Session<'s, 'd> {
    ui: &'s Ui,
    instant: &'s Instant,
    debugger: Debugger<'d>,
    interrupt: &'s Interrupt,
}

/// Step that follows a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

/// Opens a session at the instant, and carries out commands until it ends.
pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    if args.output.is_some() {
        bail!("--output: a session writes no programs; only --gdb and --listen do");
    }
    let debug = args.debug_files.folders()?;
    // A wrong command is reported before the branch runs.
    for command in &args.command {
        parse(command).map_err(|why| anyhow::anyhow!("--command: {}: {why}", printable(command)))?;
    }
    let interrupt = Interrupt::install()?;
    let instant = Instant::open(ui, &args.instant, &interrupt)?;
    let kernel = guests::kernel(&instant.setting)?;
    let recorded = recorded(&instant.run, args.instant.id, &instant.record)?;
    let budget_bytes = resources::default_memory();
    let interrupted = || interrupt.wanted();
    let debugger = Debugger::new(&instant.setting, &kernel, &debug, recorded, budget_bytes, &interrupted)?;
    instant.warn_of_engine(ui)?;
    let mut session = Session { ui, instant: &instant, debugger, interrupt: &interrupt };
    session.begin(args)?;
    if !args.command.is_empty() {
        for command in &args.command {
            let next = session.line(command).with_context(|| format!("--command: {}", printable(command)))?;
            if next == Next::End {
                break;
            }
        }
        return Ok(Outcome::Fine);
    }
    match raw_terminal::is_there() {
        true => session.on_terminal(),
        false => session.read_input(),
    }?;
    Ok(Outcome::Fine)
}

impl Session<'_, '_> {
    /// Goes to the instant, and sets the focus that the options name.
    fn begin(&mut self, args: &Args) -> anyhow::Result<()> {
        let here = self.debugger.run(&Command::Goto(Goal::Vtime(self.instant.at_ns)))?;
        self.unless_interrupted(&here)?;
        if let Some(node) = &args.instant.node {
            self.debugger.run(&Command::Focus(Some(node.clone()))).context("--node")?;
        }
        if let Some(process) = &args.process {
            let wanted = match &args.instant.node {
                Some(node) => format!("{node}:{process}"),
                None => process.clone(),
            };
            self.debugger.run(&Command::Focus(Some(wanted))).context("--process")?;
        }
        Ok(())
    }

    /// Carries out a line.
    fn line(&mut self, line: &str) -> anyhow::Result<Next> {
        let parsed = parse(line).map_err(Refused)?;
        let answer = match parsed {
            Line::Quit => return Ok(Next::End),
            Line::Help => {
                let lines = help();
                self.ui.record(&Helped { command: line.trim(), kind: "help", lines: &lines })?;
                lines.iter().try_for_each(|line| self.ui.say(line))?;
                return Ok(Next::Line);
            }
            Line::Compare(id) => {
                let record = self.instant.run.record(id).map_err(|error| Refused(format!("{error:#}")))?;
                self.debugger.compare(&recorded(&self.instant.run, id, &record)?)?
            }
            Line::Command(command) => self.debugger.run(&command)?,
        };
        self.ui.record(&Answered { command: line.trim(), answer: &answer })?;
        for line in answers::lines(&answer) {
            self.ui.say(line)?;
        }
        self.unless_interrupted(&answer)?;
        Ok(Next::Line)
    }

    /// Returns an error if the user has interrupted a move.
    fn unless_interrupted(&self, answer: &Answer) -> anyhow::Result<()> {
        match answer {
            Answer::Stopped(stopped) if stopped.reason == Reason::Interrupted => Err(Interrupted.into()),
            _ => Ok(()),
        }
    }

    /// Reads commands from a terminal.
    fn on_terminal(&mut self) -> anyhow::Result<()> {
        let mut editor = LineEditor::new(self.debugger.nodes());
        self.ui.say(style::paint(style::FAINT, "help lists the commands; Ctrl-D ends the session"))?;
        self.line("where")?;
        let mut last = String::new();
        loop {
            let typed = editor.read(&self.prompt()?)?;
            // Ctrl-C is a key here, so a signal asks for the end.
            if self.interrupt.wanted() {
                return Err(Interrupted.into());
            }
            let line = match typed {
                Typed::Line(line) => line,
                Typed::Cleared => continue,
                Typed::End => return Ok(()),
            };
            // As in gdb, an empty line repeats the last command.
            if !line.trim().is_empty() {
                last = line;
            }
            if last.trim().is_empty() || last.trim_start().starts_with('#') {
                continue;
            }
            match self.line(&last) {
                Ok(Next::Line) => {}
                Ok(Next::End) => return Ok(()),
                Err(error) if error.is::<Refused>() => {
                    self.ui.say(style::paint(style::BAD, printable(&error.to_string())))?;
                }
                // Ctrl-C ends the move, not the session.
                Err(error) if error.is::<Interrupted>() => {}
                Err(error) => return Err(error),
            }
            self.interrupt.take();
        }
    }

    /// Returns the prompt: the vtime, the node and the process in focus.
    fn prompt(&mut self) -> anyhow::Result<String> {
        let Answer::Focus(focus) = self.debugger.run(&Command::Focus(None))? else {
            bail!("the debugger has no focus");
        };
        let process = focus.pid.map(|pid| format!(":{pid}")).unwrap_or_default();
        let at = Vtime(self.debugger.vtime()).to_string();
        Ok(format!("{} {}{process}> ", at.trim(), printable(&focus.node)))
    }

    /// Reads commands from standard input, one a line. Lines that are empty or begin with `#` are left out.
    fn read_input(&mut self) -> anyhow::Result<()> {
        let mut input = io::stdin().lock();
        for number in 1_u64.. {
            let mut line = Vec::new();
            input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("standard input")?;
            if line.is_empty() {
                break;
            }
            let here = || format!("standard input:{number}");
            if line.len() as u64 >= LINE_BYTES_MAX {
                bail!("{}: the line has over {LINE_BYTES_MAX} bytes", here());
            }
            let line = String::from_utf8(line).with_context(here)?;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if self.line(line).with_context(here)? == Next::End {
                break;
            }
        }
        Ok(())
    }
}

/// Returns a recorded branch with what the exploration found on its whole path.
fn recorded(run: &Run, id: Id, record: &Record) -> anyhow::Result<Recorded> {
    let (name, finding_ns) = match id {
        Id::Finding(id) => (format!("finding {id}"), Some(run.finding(id)?.hit.vtime_ns)),
        Id::Branch(number) => (format!("branch b{number}"), None),
    };
    let marks = Marks::of(&run.reading, record)?.digests().clone();
    let mut hits = Vec::new();
    let (mut until_ns, mut next) = (u64::MAX, Some(record.clone()));
    while let Some(record) = next {
        // What an ancestor shows in its checks is not on this path.
        for hit in record.hits.iter().filter(|hit| hit.vtime_ns <= until_ns) {
            let (property, node, text) = (hit.property.clone(), hit.node.clone(), hit.text.clone());
            hits.push((hit.vtime_ns, Hit { property, node, text }));
        }
        until_ns = record.path.forks().last().map_or(0, |fork| fork.vtime_ns);
        next = record.from.map(|choice| run.reading.get(choice)).transpose()?.flatten();
    }
    Ok(Recorded { name, path: record.path.clone(), end_ns: record.end_ns, hits, marks, finding_ns })
}
