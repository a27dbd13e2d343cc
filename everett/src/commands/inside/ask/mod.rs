//! `everett ask`: answers questions about everything that happened in a span of a timeline, from outside.
//!
//! - `syscalls`: system calls of processes
//! - `wanted`: the processes that are asked about

mod syscalls;
mod wanted;

use anyhow::bail;
use everett_host::interrupt::Interrupt;
use everett_session::debug::calls::limits::STRING_BYTES_MAX;
use everett_session::debug::questions::follow::Span;

use super::super::Outcome;
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
    /// With syscalls: show this number of bytes of texts and buffers [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=STRING_BYTES_MAX as u64))]
    pub strings: Option<u64>,
}

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Question {
    /// System calls with arguments and results, as strace prints them
    Syscalls,
}

impl Question {
    fn name(self) -> &'static str {
        match self {
            Question::Syscalls => "syscalls",
        }
    }
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    if args.strings.is_some() && args.question != Question::Syscalls {
        bail!("--strings: {} prints no texts; only syscalls does", args.question.name());
    }
    let interrupt = Interrupt::install()?;
    let instant = Instant::end_of(ui, &args.span, &interrupt)?;
    let kernel = guests::kernel(&instant.setting)?;
    // The cursor only moves forwards, so it needs no moments.
    let mut cursor = instant.cursor(0)?;
    let nodes = match &args.span.node {
        Some(node) => instant.number_of(node).into_iter().collect(),
        None => (0..instant.nodes().len()).collect(),
    };
    let since_ns = args.span.since.unwrap_or(instant.setting.root_ns);
    let span = Span { kernel: &kernel, nodes, since_ns, until_ns: instant.at_ns };
    let wanted = Wanted::new(args.process.as_deref());
    match args.question {
        Question::Syscalls => {
            let strings = args.strings.map_or(STRING_BYTES, |strings| strings as usize);
            syscalls::run(ui, instant.nodes(), &mut cursor, &span, &wanted, strings, &interrupt)?;
        }
    }
    wanted.unless_seen()?;
    instant.warn_of_engine(ui)?;
    Ok(Outcome::Fine)
}
