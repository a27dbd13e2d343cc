//! `everett demo`.

use super::Outcome;
use crate::cli;
use crate::ui::Ui;

pub(super) fn run(_ui: &Ui, _args: &cli::Demo) -> anyhow::Result<Outcome> {
    anyhow::bail!("not yet")
}
