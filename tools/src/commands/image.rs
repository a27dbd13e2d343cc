//! `everett image`.

use super::{Outcome, common};
use crate::cli;
use crate::images;
use crate::ui::Ui;

pub(super) fn run(ui: &Ui, args: &cli::Image) -> anyhow::Result<Outcome> {
    let cli::Image::Build { world } = args;
    let world = common::load(world)?;
    for node in &world.nodes {
        images::get(ui, &world, node)?;
    }
    Ok(Outcome::Fine)
}
