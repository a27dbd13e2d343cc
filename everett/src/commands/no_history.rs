//! The history of runs of a build without the feature `history`: nothing is recorded, and commands on it fail.

use std::path::{Path, PathBuf};

use anyhow::bail;
use everett_explorer::run::{ExplorationEnd, Header, Merged};
use everett_session::explore::expedition::Limits;

use super::prune_args::PruneArgs;
use crate::ui::{Ui, printable, style};

/// Message of the commands.
const ABSENT: &str =
    "this build of everett has no history of runs; build it with the feature history (cargo build --release)";

/// Record of a running exploration. The type has no values, because this build records none.
pub(super) enum Entry {}

/// Comparison with the run before. The type has no values, because this build keeps no runs.
pub(super) enum Compared {}

impl Entry {
    /// Says that this exploration is not recorded.
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

/// Says that an imported run directory is not recorded.
pub(super) fn add_imported(ui: &Ui, folder: &Path) -> anyhow::Result<()> {
    tell_unrecorded(ui, folder)
}

pub(super) fn prune(_: &Ui, _: &PruneArgs) -> anyhow::Result<()> {
    bail!(ABSENT)
}

/// Says that the history lacks a run directory, and how to record it.
fn tell_unrecorded(ui: &Ui, folder: &Path) -> anyhow::Result<()> {
    let folder = printable(&folder.display().to_string());
    let line = format!(
        "not in the history of runs, which this build lacks; a full build records it: everett runs add {folder}"
    );
    Ok(ui.say(style::paint(style::FAINT, line))?)
}
