//! `everett completions` and `everett man`: files for shells and packages.

use std::fs;
use std::io::{self, Write};

use anyhow::Context;
use clap::CommandFactory;

use super::Outcome;
use crate::cli::{Cli, Completions, Man};
use crate::ui::Ui;

/// Name of the program in completions.
const PROGRAM: &str = "everett";

/// Prints completions for a shell.
pub(super) fn completions(args: &Completions) -> anyhow::Result<Outcome> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), PROGRAM, &mut text);
    io::stdout().write_all(&text)?;
    Ok(Outcome::Fine)
}

/// Writes a man page for the program and one for each command.
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
