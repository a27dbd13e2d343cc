//! `everett completions` and `everett man`: files that shells and packages install.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;

use super::{Cli, Outcome};
use crate::ui::Ui;

/// `everett completions`
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `everett man`
#[derive(Debug, clap::Args)]
pub struct Man {
    /// The folder; Everett creates it if it does not exist
    pub folder: PathBuf,
}

/// Name of the program in completions.
const PROGRAM: &str = "everett";

/// Prints completions for a shell.
pub(super) fn completions(args: &Completions) -> anyhow::Result<Outcome> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), PROGRAM, &mut text);
    io::stdout().write_all(&text)?;
    Ok(Outcome::Fine)
}

/// Writes a man page for the program and for each of its commands.
///
/// # Errors
/// Returns an error if the folder or a page cannot be written.
pub(super) fn man(ui: &Ui, args: &Man) -> anyhow::Result<Outcome> {
    let folder = &args.folder;
    let here = || folder.display().to_string();
    fs::create_dir_all(folder).with_context(here)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(here)?;
    let pages = fs::read_dir(folder).with_context(here)?.count();
    ui.say(format!("{pages} pages are in {}", folder.display()))?;
    Ok(Outcome::Fine)
}
