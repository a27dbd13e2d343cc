//! The arguments of `everett serve`.

use std::path::PathBuf;

use clap::Args;

/// `everett serve`
#[derive(Debug, Args)]
#[command(
    after_help = "The server listens on 127.0.0.1 only, and ends with Ctrl-C. The page is that of everett report --html, and \
                        takes over what the run has done meanwhile."
)]
pub struct Serve {
    /// The run directory; an exploration may be writing to it
    pub run: PathBuf,
    /// The port [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
}
