//! `everett cp`: copies a file or a folder out of a machine at an instant, as programs in it see it.

use std::path::PathBuf;

use everett_host::interrupt::Interrupt;
use everett_input::units;
use everett_session::inside::files::{self, Copied};
use everett_session::inside::limits::COPY_BYTES_MAX;
use serde::Serialize;

use super::super::Outcome;
use super::fork::{ForkArgs, ForkAt, at_place};
use super::place::Place;
use crate::ui::{Ui, printable, style};

/// `everett cp`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The fork
    #[command(flatten)]
    pub fork: ForkArgs,
    /// File or folder in a machine, such as n1:/var/lib/redis
    #[arg(value_name = "NODE:PATH")]
    pub place: Place,
    /// Folder to copy into, or path of the copy, which must not exist
    #[arg(value_name = "DEST", default_value = ".")]
    pub destination: PathBuf,
    /// Maximum length of all copied files. Default: 1G
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
    pub limit: Option<u64>,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    path: &'a str,
    to: &'a str,
    files: u64,
    folders: u64,
    links: u64,
    bytes: u64,
    left_out: &'a [String],
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let mut at = ForkAt::open(ui, &args.fork, Some(&args.place.node), &interrupt)?;
    let (path, limit) = (&args.place.path, args.limit.unwrap_or(COPY_BYTES_MAX));
    let copied = files::copy(&mut at.fork, at.node, path, &args.destination, limit, &|| !interrupt.wanted());
    let copied = copied.map_err(|error| at_place(error, &format!("{}:{path}", at.name)))?;
    let Copied { to, files, folders, links, bytes, left_out } = &copied;
    ui.record(&Line {
        kind: "copy",
        node: &at.name,
        path,
        to,
        files: *files,
        folders: *folders,
        links: *links,
        bytes: *bytes,
        left_out,
    })?;
    let counts = [
        counted(*files, "file"),
        counted(*folders, "folder"),
        counted(*links, "link"),
        counted(*bytes, "byte"),
    ];
    ui.say(format!("{}: {}", printable(to), counts.join(", ")))?;
    for why in left_out {
        ui.say(style::paint(style::BAD, format!("    not copied: {}", printable(why))))?;
    }
    Ok(if left_out.is_empty() { Outcome::Fine } else { Outcome::Found })
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
