//! `everett serve`: the report of a run directory in a browser, while the run goes on.

use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_report::page;
use serde::Serialize;

use super::{Outcome, report};
use crate::cli;
use crate::serve::Server;
use crate::ui::{Ui, style};

/// Line of `--json`.
#[derive(Serialize)]
struct Serving<'s> {
    kind: &'static str,
    url: &'s str,
}

pub(super) fn run(ui: &Ui, args: &cli::Serve) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let server = Server::start(&args.run, args.port, page::live_policy(), Box::new(report::live_page))?;
    let url = server.url();
    ui.record(&Serving { kind: "serving", url: &url })?;
    ui.say(format!("the report is at {} until Ctrl-C", style::paint(style::HEAD, &url)))?;
    Stopwatch::start().wait_for_ns(u64::MAX, || interrupt.wanted());
    Ok(Outcome::Fine)
}
