//! The history of runs of a build without the feature `history`: nothing is recorded, and commands on it fail.

use std::path::{Path, PathBuf};

use anyhow::bail;
use everett_explorer::run::{End, Header, Merged};
use everett_session::explore::expedition::Limits;

use super::kept::Bounds;
use crate::ui::Ui;

/// Message of the commands.
const ABSENT: &str =
    "this build of everett has no history of runs; build it with the feature history (cargo build --release)";

/// Record of an exploration, which has no value.
pub(super) enum Entry {}

/// Comparison with the run before, which has no value.
pub(super) enum Compared {}

impl Entry {
    pub(super) fn begin(_: &Ui, _: &Header, _: &Path, _: &Limits, _: bool) -> anyhow::Result<Option<Entry>> {
        Ok(None)
    }

    pub(super) fn finish(self, _: &Ui, _: &Merged, _: &End) -> anyhow::Result<Option<Compared>> {
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

pub(super) fn prune(_: &Ui, _: &Bounds) -> anyhow::Result<()> {
    bail!(ABSENT)
}
