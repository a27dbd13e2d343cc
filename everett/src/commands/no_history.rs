//! Replacement for the history of runs in builds without the feature `history`: it records nothing, and commands on
//! the history fail.

use std::path::{Path, PathBuf};

use anyhow::bail;
use everett_explorer::run::{ExplorationEnd, Header, Merged};
use everett_session::explore::expedition::Limits;

use super::prune_args::PruneArgs;
use crate::ui::{Ui, printable, style};

/// Error of every command that needs the history.
const ABSENT: &str =
    "this build of everett has no history of runs; build it with the feature history (cargo build --release)";

/// Record of a running exploration. The type has no values, because this build records nothing.
pub(super) enum Entry {}

/// Comparison with the previous run. The type has no values, because this build records nothing.
pub(super) enum Compared {}

impl Entry {
    /// Prints a note that this exploration is not recorded.
    pub(super) fn begin(
        ui: &Ui,
        _: &Header,
        folder: &Path,
        _: &Limits,
        _: bool,
    ) -> anyhow::Result<Option<Entry>> {
        tell_unrecorded(ui, folder)?;
        Ok(None)
    }

    pub(super) fn finish(self, _: &Ui, _: &Merged, _: &ExplorationEnd) -> anyhow::Result<Option<Compared>> {
        match self {}
    }
}

pub(super) fn tell(_: &Ui, compared: &Compared) -> anyhow::Result<()> {
    match *compared {}
}

pub(super) fn older(_: &Header, _: &Path, _: usize) -> anyhow::Result<Vec<PathBuf>> {
    bail!(ABSENT)
}

pub(super) fn list(_: &Ui, _: Option<&Path>, _: bool) -> anyhow::Result<()> {
    bail!(ABSENT)
}

pub(super) fn add(_: &Ui, _: &[PathBuf]) -> anyhow::Result<()> {
    bail!(ABSENT)
}

/// Prints a note that an imported run directory is not recorded.
pub(super) fn add_imported(ui: &Ui, folder: &Path) -> anyhow::Result<()> {
    tell_unrecorded(ui, folder)
}

pub(super) fn prune(_: &Ui, _: &PruneArgs) -> anyhow::Result<()> {
    bail!(ABSENT)
}

/// Prints a note that the history lacks a run directory, with the command that records it.
fn tell_unrecorded(ui: &Ui, folder: &Path) -> anyhow::Result<()> {
    let folder = printable(&folder.display().to_string());
    let line = format!(
        "this build has no history of runs; to record the run, use a full build: everett runs add {folder}"
    );
    Ok(ui.say(style::paint(style::FAINT, line))?)
}
