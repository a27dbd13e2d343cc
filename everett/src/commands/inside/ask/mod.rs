//! `everett ask`: answers questions about everything that happened in a span of a timeline, from outside.
//!
//! - `at`: who did something when
//! - `flame`: a flame graph by executed instructions
//! - `futexes`: waits at futexes
//! - `steps`: context switches, page faults and signals
//! - `syncs`: calls that make files durable, and the writes that they cover
//! - `syscalls`: system calls of processes
//! - `trace`: a trace for Perfetto
//! - `wanted`: the processes that are asked about

mod at;
mod flame;
mod futexes;
mod steps;
mod syncs;
mod syscalls;
mod trace;
mod wanted;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use everett_host::interrupt::Interrupt;
use everett_session::debug::calls::limits::STRING_BYTES_MAX;
use everett_session::debug::questions::follow::Span;
use everett_session::debug::questions::steps::Kind;

use super::super::{Outcome, resources};
use super::debug_files::DebugFilesArgs;
use super::guests;
use super::instant::{Instant, SpanArgs};
use crate::ui::Ui;
use wanted::Wanted;

/// Number of bytes of a text that are shown by default, as `strace` does.
const STRING_BYTES: usize = 32;

/// `everett ask`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The span of time
    #[command(flatten)]
    pub span: SpanArgs,
    /// The question
    #[arg(value_name = "QUESTION")]
    pub question: Question,
    /// Only the process with this ID, or the processes whose first thread has this name. Default: all processes
    #[arg(long, value_name = "PID|NAME")]
    pub process: Option<String>,
    /// With trace and flame: the file to write, which must be new
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// With syscalls and trace: show this number of bytes of texts and buffers [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=STRING_BYTES_MAX as u64))]
    pub strings: Option<u64>,
    /// With flame: the number of instructions of a node between two samples [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    /// Debug files, with flame
    #[command(flatten)]
    pub debug_files: DebugFilesArgs,
}

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Question {
    /// System calls with arguments and results, as strace prints them
    Syscalls,
    /// Context switches
    Switches,
    /// Page faults
    Faults,
    /// Signals that are sent and handled, and processes that end by them
    Signals,
    /// Threads that wake others, which wait at a futex
    Wakes,
    /// Waits at futexes: how long, who holds the lock, and who ends the wait
    Futexes,
    /// Calls that make files durable, such as fsync, and the writes that they cover
    Syncs,
    /// A flame graph by executed instructions, as the picture --output (SVG) or as lines for other tools
    Flame,
    /// A trace for Perfetto, as the file --output: threads, system calls, messages, disk requests, faults and log lines
    Trace,
}

impl Question {
    fn name(self) -> &'static str {
        match self {
            Question::Syscalls => "syscalls",
            Question::Switches => "switches",
            Question::Faults => "faults",
            Question::Signals => "signals",
            Question::Wakes => "wakes",
            Question::Futexes => "futexes",
            Question::Syncs => "syncs",
            Question::Flame => "flame",
            Question::Trace => "trace",
        }
    }
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let name = args.question.name();
    if args.strings.is_some() && ![Question::Syscalls, Question::Trace].contains(&args.question) {
        bail!("--strings: {name} shows no texts; only syscalls and trace do");
    }
    match &args.output {
        None if args.question == Question::Trace => bail!("--output: {name} needs a file to write"),
        Some(_) if ![Question::Trace, Question::Flame].contains(&args.question) => {
            bail!("--output: {name} writes no file; only trace and flame do")
        }
        _ => {}
    }
    if args.every.is_some() && args.question != Question::Flame {
        bail!("--every: {name} takes no samples; only flame does");
    }
    if !args.debug_files.debug_files.is_empty() && args.question != Question::Flame {
        bail!("--debug-files: {name} shows no functions; only flame does");
    }
    let debug = args.debug_files.folders()?;
    let interrupt = Interrupt::install()?;
    let instant = Instant::end_of(ui, &args.span, &interrupt)?;
    let kernel = guests::kernel(&instant.setting)?;
    // Except for samples, the cursor only moves forwards, so it needs no moments.
    let is_flame = args.question == Question::Flame;
    let mut cursor = instant.cursor(if is_flame { resources::default_memory() } else { 0 })?;
    let nodes = match &args.span.node {
        Some(node) => instant.number_of(node).into_iter().collect(),
        None => (0..instant.nodes().len()).collect(),
    };
    let since_ns = args.span.since.unwrap_or(instant.setting.root_ns);
    let span = Span { kernel: &kernel, nodes, since_ns, until_ns: instant.at_ns };
    let wanted = Wanted::new(args.process.as_deref());
    let strings = args.strings.map_or(STRING_BYTES, |strings| strings as usize);
    let mut steps =
        |kinds: &[Kind]| steps::run(ui, instant.nodes(), &mut cursor, &span, (&wanted, kinds), &interrupt);
    match args.question {
        Question::Switches => steps(&[Kind::Switch])?,
        Question::Faults => steps(&[Kind::Fault])?,
        Question::Wakes => steps(&[Kind::Woken])?,
        Question::Signals => steps(&[Kind::Sent, Kind::Handled, Kind::Ends])?,
        Question::Syscalls => {
            syscalls::run(ui, instant.nodes(), &mut cursor, &span, &wanted, strings, &interrupt)?;
        }
        Question::Syncs => syncs::run(ui, instant.nodes(), &mut cursor, &span, &wanted, &interrupt)?,
        Question::Futexes => futexes::run(ui, instant.nodes(), &mut cursor, &span, &wanted, &interrupt)?,
        Question::Flame => {
            let options = (args.output.as_deref(), args.every.unwrap_or(flame::EVERY), &debug);
            flame::run(ui, &instant, &mut cursor, &span, args.process.as_deref(), options, &interrupt)?;
            return instant.warn_of_engine(ui).map(|()| Outcome::Fine);
        }
        Question::Trace => {
            let output = args.output.as_ref().context("the option is set")?;
            trace::run(ui, instant.nodes(), &mut cursor, &span, &wanted, (output, strings), &interrupt)?;
        }
    }
    wanted.unless_seen()?;
    instant.warn_of_engine(ui)?;
    Ok(Outcome::Fine)
}
