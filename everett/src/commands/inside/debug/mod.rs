//! `everett debug`: debugs a recorded branch at any instant, forwards and backwards.
//!
//! - `gdb`: a process or a kernel, with gdb
//! - `help`: the commands of a session, with their names
//! - `parse`: commands from lines
//! - `answers`: answers as text
//! - `editor`: the line editor on a terminal
//! - `session`: a session over the whole world

mod answers;
mod editor;
mod gdb;
mod help;
mod parse;
mod session;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::super::Outcome;
use super::debug_files::DebugFilesArgs;
use super::instant::InstantArgs;
use crate::ui::Ui;

/// `everett debug`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant at which the session begins
    #[command(flatten)]
    pub instant: InstantArgs,
    /// Debug the process with this ID or with this name of its first thread
    #[arg(long, value_name = "PID|NAME", conflicts_with = "kernel")]
    pub process: Option<String>,
    /// Debug the kernel of the node
    #[arg(long)]
    pub kernel: bool,
    /// Carry out this command and print its answer, instead of reading commands. Can be repeated
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["gdb", "listen"])]
    pub command: Vec<String>,
    /// Start gdb. Arguments behind -- are passed to gdb
    #[arg(long, conflicts_with = "listen")]
    pub gdb: bool,
    /// Wait for a debugger at this address, such as 127.0.0.1:1234, and print what it needs. A debugger is not asked for a
    /// password
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The program to start as gdb
    #[arg(long, value_name = "PROGRAM", default_value = "gdb")]
    pub gdb_program: PathBuf,
    /// Folder for the programs and libraries that gdb reads. Default: a temporary folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Debug files
    #[command(flatten)]
    pub debug_files: DebugFilesArgs,
    /// Further arguments for gdb
    #[arg(last = true, value_name = "ARGUMENT", requires = "gdb")]
    pub arguments: Vec<OsString>,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    match args.gdb || args.listen.is_some() {
        true => gdb::run(ui, args),
        false => session::run(ui, args),
    }
}
