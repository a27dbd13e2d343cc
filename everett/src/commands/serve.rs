//! `everett serve`: shows the report of a run directory in a browser while the run goes on.

use std::path::PathBuf;

use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_report::page;
use serde::Serialize;

use super::{Outcome, report};
use crate::serve::Server;
use crate::ui::{Ui, style};

/// `everett serve`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The server listens on 127.0.0.1 only; Ctrl-C ends it. The page is that of everett report --html, and \
                        updates itself while the run goes on."
)]
pub struct Args {
    /// The run directory; an exploration may be running in it
    pub run: PathBuf,
    /// The port [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
}

/// Line that `--json` prints.
#[derive(Serialize)]
struct Serving<'s> {
    kind: &'static str,
    url: &'s str,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let server = Server::start(&args.run, args.port, page::live_policy(), Box::new(report::live_page))?;
    let url = server.url();
    ui.record(&Serving { kind: "serving", url: &url })?;
    ui.say(format!("the report is at {} until Ctrl-C", style::paint(style::HEAD, &url)))?;
    Stopwatch::start().wait_for_ns(u64::MAX, || interrupt.wanted());
    Ok(Outcome::Fine)
}
