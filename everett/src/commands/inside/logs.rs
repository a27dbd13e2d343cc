//! `everett logs`: prints the log lines of a timeline up to an instant, and on request all its events.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use anyhow::bail;
use everett_host::interrupt::Interrupt;
use everett_session::explore::path_runner::{PathRunner, Watch};
use everett_session::explore::witness::{message_line, plain_line};
use everett_session::output::show;
use everett_session::output::wire_line::WireLine;
use everett_session::world::event::{Event, What};
use everett_vmm::wire::log::FrameStep;
use regex::Regex;
use serde::Serialize;

use super::super::Outcome;
use super::instant::{Instant, SpanArgs};
use crate::ui::{Ui, printable, style};

/// Maximum number of lines of context around a line that matches.
const CONTEXT_LINES_MAX: u32 = 1_000;
/// Name of the kernel's console, as a service.
const KERNEL: &str = "kernel";

/// `everett logs`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The span of time
    #[command(flatten)]
    pub span: SpanArgs,
    /// Only lines of this service, driver, check or test command, or of the kernel's console ("kernel")
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Only lines that match this regular expression
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub grep: Option<Regex>,
    /// With --grep: also print this many lines before and after each match
    #[arg(
        long, value_name = "N", requires = "grep", default_value_t = 0, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(..=i64::from(CONTEXT_LINES_MAX))
    )]
    pub context: u32,
    /// Print all events, too: faults, messages on the wire, and starts and ends of programs
    #[arg(long)]
    pub events: bool,
}

/// Parses a regular expression. The library's errors have several lines, of which the last one says what is wrong.
fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Event or message of the timeline.
enum Entry {
    Event(Event),
    Message(FrameStep),
}

/// Line of `--json` for a message.
#[derive(Serialize)]
struct MessageLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    line: WireLine<'a>,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let instant = Instant::end_of(ui, &args.span, &interrupt)?;
    let node = args.span.node.as_ref().and_then(|node| instant.number_of(node));
    let mut printer = Printer {
        ui,
        args,
        nodes: instant.nodes(),
        // A world has at most 64 nodes.
        port: node.map(|node| node as u8),
        before: VecDeque::new(),
        after: 0,
        printed: false,
        gap: false,
        services: BTreeSet::new(),
        interrupt: &interrupt,
        failed: None,
    };
    for event in &instant.setting.ready.events {
        printer.event(event);
    }
    let mut runner = PathRunner::new(&instant.setting)?;
    let followed = instant.follow(&mut runner, &mut printer);
    // An error of the terminal ends the run, so it is the first cause.
    if let Some(error) = printer.failed.take() {
        return Err(error.into());
    }
    followed?;
    if let Some(service) = args.service.as_ref().filter(|service| !printer.services.contains(*service)) {
        let others: Vec<&str> = printer.services.iter().map(String::as_str).collect();
        bail!("--service: {service} printed nothing here; lines came from {}", others.join(", "));
    }
    instant.warn_of_engine(ui)?;
    Ok(Outcome::Fine)
}

/// Observer that prints lines.
struct Printer<'p> {
    ui: &'p Ui,
    args: &'p Args,
    nodes: &'p [String],
    /// Port of the only node whose lines are wanted.
    port: Option<u8>,
    /// The last lines that did not match, as context of the next match.
    before: VecDeque<Entry>,
    /// Number of lines that are still printed as context of the last match.
    after: u32,
    /// True if a line was printed.
    printed: bool,
    /// True if lines were left out since the last printed line.
    gap: bool,
    /// Names of the services that printed lines.
    services: BTreeSet<String>,
    interrupt: &'p Interrupt,
    failed: Option<io::Error>,
}

impl Printer<'_> {
    /// Prints an entry if it matches or belongs to the context of a match.
    fn take(&mut self, entry: Entry) -> io::Result<()> {
        let matches = self.args.grep.as_ref().is_none_or(|grep| grep.is_match(&self.text(&entry)));
        if matches {
            if self.gap && self.printed && self.args.context > 0 {
                self.ui.say(style::paint(style::FAINT, "--"))?;
            }
            for before in std::mem::take(&mut self.before) {
                self.print(&before)?;
            }
            self.after = self.args.context;
            self.gap = false;
            return self.print(&entry);
        }
        if self.after > 0 {
            self.after -= 1;
            return self.print(&entry);
        }
        self.before.push_back(entry);
        if self.before.len() > self.args.context as usize {
            self.before.pop_front();
            self.gap = true;
        }
        Ok(())
    }

    fn print(&mut self, entry: &Entry) -> io::Result<()> {
        self.printed = true;
        match entry {
            Entry::Event(event) => {
                self.ui.record(event)?;
                self.ui.say(show::line(event, self.nodes.len() > 1))
            }
            Entry::Message(step) => {
                let line = WireLine::new(step, &|port| self.name(port));
                self.ui.record(&MessageLine { kind: "message", line })?;
                self.ui.say(style::paint(style::FAINT, printable(&self.text(entry))))
            }
        }
    }

    /// Returns an entry as text without colours.
    fn text(&self, entry: &Entry) -> String {
        match entry {
            Entry::Event(event) => plain_line(event, self.nodes.len() > 1),
            Entry::Message(step) => message_line(step, &|port| self.name(port)),
        }
    }

    fn name(&self, port: u8) -> &str {
        self.nodes.get(usize::from(port)).map_or("?", String::as_str)
    }

    /// True if the operator wants this event.
    fn is_wanted(&self, event: &Event) -> bool {
        let args = self.args;
        let of_node = args.span.node.as_ref().is_none_or(|node| event.node.is_empty() || event.node == *node);
        let wants_kernel = args.service.as_deref() == Some(KERNEL);
        let of_kind = match &event.what {
            What::Line { .. } => true,
            What::Kernel { text } => wants_kernel || everett_explorer::property::trouble(text).is_some(),
            // Lines of operation histories are for the checker, and edges (executed jumps) are for coverage.
            What::History { .. } | What::Edge { .. } => args.events && self.ui.json,
            _ => args.events,
        };
        let of_service = args.service.as_deref().is_none_or(|wanted| service_of(event) == Some(wanted));
        event.vtime_ns >= args.span.since.unwrap_or(0) && of_node && of_kind && of_service
    }
}

/// Returns the name of the service, driver, check or test command to which an event belongs.
fn service_of(event: &Event) -> Option<&str> {
    match &event.what {
        What::Line { unit, .. } | What::Start { unit, .. } | What::Exit { unit, .. } => Some(unit),
        What::Kernel { .. } => Some(KERNEL),
        _ => None,
    }
}

impl Watch for Printer<'_> {
    fn event(&mut self, event: &Event) {
        if let Some(service) = service_of(event).filter(|service| !self.services.contains(*service)) {
            self.services.insert(service.to_owned());
        }
        if self.is_wanted(event)
            && let Err(error) = self.take(Entry::Event(event.clone()))
        {
            self.failed.get_or_insert(error);
        }
    }

    fn message(&mut self, step: &FrameStep) {
        let args = self.args;
        let of_node = self.port.is_none_or(|port| step.from == port || step.to == Some(port));
        let in_span = step.vtime >= args.span.since.unwrap_or(0);
        if args.events
            && args.service.is_none()
            && of_node
            && in_span
            && let Err(error) = self.take(Entry::Message(*step))
        {
            self.failed.get_or_insert(error);
        }
    }

    fn at(&mut self, _: u64) -> bool {
        !self.interrupt.wanted() && self.failed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_expression_is_refused_in_one_line() {
        assert_eq!(regex("a(").unwrap_err(), "unclosed group");
        assert!(regex("a.b").is_ok());
    }
}
