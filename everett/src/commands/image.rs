//! `everett image`: builds images.

use std::collections::BTreeMap;
use std::path::PathBuf;

use everett_host::interrupt::Interrupt;
use everett_input::units::show_bytes;
use everett_session::images;
use serde::Serialize;

use super::{Outcome, common};
use crate::features;
use crate::ui::Ui;

/// `everett image …`
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// Build a world's image, or find it in the cache; write world.lock beside the world file
    Build {
        /// The world file
        world: PathBuf,
    },
}

#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    digest: &'a str,
    packages: usize,
    bytes: u64,
    kernel: &'a PathBuf,
    initramfs: Option<&'a PathBuf>,
    root: Option<&'a PathBuf>,
    lock: Option<&'a PathBuf>,
    /// Digest of each node's container image.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    images: BTreeMap<&'a str, &'a str>,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let Args::Build { world } = args;
    let world = common::load(world)?;
    let image = images::get(ui, &world, features::access(), &Interrupt::install()?)?;
    ui.say(format!("image {}", image.digest))?;
    ui.say(format!("{} packages, {}", image.packages, show_bytes(image.bytes)))?;
    for (node, own) in &image.files.images {
        ui.say(format!("{node} has {}", own.name))?;
    }
    if let Some(lock) = &image.lock {
        ui.say(format!("versions in {}", lock.display()))?;
    }
    ui.record(&Record {
        kind: "image",
        digest: &image.digest,
        packages: image.packages,
        bytes: image.bytes,
        kernel: &image.files.kernel,
        initramfs: image.files.initramfs.as_ref(),
        root: image.files.root.as_ref().map(|(path, _)| path),
        lock: image.lock.as_ref(),
        images: image.files.images.iter().map(|(node, own)| (node.as_str(), own.digest.as_str())).collect(),
    })?;
    Ok(Outcome::Fine)
}
