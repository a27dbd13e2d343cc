//! One stored moment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use everett_snapshot::file::{BaseDigest, MomentFile, MomentHeader, MomentInfo, MomentParts};
use everett_snapshot::{Base, Pool};
use everett_vmm::Digest;
use everett_vmm::machine::{Moment, STATE_VERSION};

use crate::session::event::Event;
use crate::session::timeline::{SessionState, Timeline};

/// The states in a file.
const MACHINE: &str = "machine";
const SESSION: &str = "session";
const EVENTS: &str = "events";
const CONSOLE: &str = "console";
const DIGEST: &str = "digest";
/// The image in a file.
const MEMORY: &str = "memory";

/// A timeline at a stop: its machine, its session, and what was told on the way there.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The machine.
    pub moment: Moment,
    /// Everything else that decides how the timeline goes on.
    pub session: SessionState,
    /// What had happened: whoever starts here tells it as if it had just been.
    pub events: Vec<Event>,
    /// What the serial console had shown.
    pub console: Vec<u8>,
    /// The machine's digest.
    pub digest: Digest,
}

impl Stored {
    /// `timeline` as it is, after these events and this on the console.
    pub fn of(timeline: &mut Timeline, pool: &Pool, events: Vec<Event>, console: Vec<u8>) -> Stored {
        let session = timeline.save();
        let machine = timeline.machine_mut();
        let digest = machine.digest();
        Stored { moment: machine.moment(pool), session, events, console, digest }
    }

    /// Write it to a file, for the shelf with this key.
    ///
    /// # Errors
    /// The host refuses, and then there is no file.
    pub fn write(&self, path: &Path, label: &str, key: [u8; 32], seed: u64) -> anyhow::Result<MomentHeader> {
        let info = MomentInfo {
            label: label.to_owned(),
            vtime: self.moment.vtime(),
            seed,
            key,
            state_version: STATE_VERSION,
        };
        let states = [
            (MACHINE, self.moment.state().into()),
            (SESSION, self.session.to_bytes()?.into()),
            (EVENTS, serde_json::to_vec(&self.events)?.into()),
            (CONSOLE, self.console.as_slice().into()),
            (DIGEST, self.digest.0.as_slice().into()),
        ];
        let trees = self.moment.disks().iter().enumerate();
        let parts = MomentParts {
            states: states.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect(),
            images: BTreeMap::from([(MEMORY.to_owned(), self.moment.memory().clone())]),
            trees: trees.map(|(disk, then)| (disk_name(disk), then.blocks.clone())).collect(),
        };
        Ok(MomentFile::write(path, &info, &parts)?)
    }

    /// Read one of the shelf with this key, of a machine with at most so many pages and blocks.
    ///
    /// # Errors
    /// It is of another shelf or version, or damaged.
    pub fn read(
        path: &Path,
        key: [u8; 32],
        pool: &Pool,
        pages_max: u64,
        bases: impl FnMut(BaseDigest) -> Option<Arc<Base>>,
    ) -> anyhow::Result<Stored> {
        let file = MomentFile::open(path)?;
        let info = &file.header().info;
        if info.key != key {
            bail!("{}: a moment of something else: another world, image or version", path.display());
        }
        let pages = file.header().delta_pages;
        if pages > pages_max {
            bail!("{}: {pages} pages and blocks; its machine has {pages_max}", path.display());
        }
        let mut parts = file.read(pool, bases)?;
        let mut state = |name: &str| {
            let found = parts.states.remove(name);
            found.ok_or_else(|| anyhow!("{}: there is no part \"{name}\"", path.display()))
        };
        let (machine, session) = (state(MACHINE)?, state(SESSION)?);
        let (events, console, digest) = (state(EVENTS)?, state(CONSOLE)?, state(DIGEST)?);
        let here = || path.display().to_string();
        let digest =
            <[u8; 32]>::try_from(&digest[..]).context("its digest has another length").with_context(here)?;
        let memory = parts.images.remove(MEMORY);
        let memory = memory.ok_or_else(|| anyhow!("{}: there is no image of memory", path.display()))?;
        let mut disks = Vec::new();
        while let Some(tree) = parts.trees.remove(&disk_name(disks.len())) {
            disks.push(tree);
        }
        Ok(Stored {
            moment: Moment::from_parts(info.state_version, machine, memory, disks).with_context(here)?,
            session: SessionState::from_bytes(&session).with_context(here)?,
            events: serde_json::from_slice(&events).with_context(here)?,
            console: console.to_vec(),
            digest: Digest(digest),
        })
    }
}

/// Names are ordered as text, and there are fewer than a hundred disks.
fn disk_name(disk: usize) -> String {
    format!("disk {disk:02}")
}
