//! A stored moment and its file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use everett_snapshot::file::BaseDigest;
use everett_snapshot::moment::{MomentFile, MomentHeader, MomentInfo, MomentParts};
use everett_snapshot::{Base, Pool};
use everett_vmm::Digest;
use everett_vmm::machine::STATE_VERSION;
use everett_vmm::world::{WORLD_VERSION, WorldMoment};

use super::machine_parts;
use crate::world::event::Event;
use crate::world::identity::check_timeline;
use crate::world::timeline::{SessionState, Timeline};

/// Names of the parts of a file that do not belong to a machine.
const WORLD: &str = "world";
const SESSION: &str = "session";
const EVENTS: &str = "events";
const CONSOLES: &str = "consoles";
const DIGEST: &str = "digest";

/// A timeline at a stop: its world, its session and its events so far.
#[derive(Debug, Clone)]
pub struct Stored {
    /// State of the world.
    pub moment: WorldMoment,
    /// State of everything outside the world that decides how the timeline continues.
    pub session: SessionState,
    /// Events so far. A timeline that starts from this moment reports them first.
    pub events: Vec<Event>,
    /// Output so far on each node's serial console.
    pub consoles: Vec<Vec<u8>>,
    /// Digest of the world.
    pub digest: Digest,
}

impl Stored {
    /// Returns a stored moment of `timeline`, with its events and console output so far.
    pub fn of(timeline: &mut Timeline, pool: &Pool, events: Vec<Event>, consoles: Vec<Vec<u8>>) -> Stored {
        let session = timeline.save();
        let digest = timeline.digest();
        Stored { moment: timeline.world_mut().moment(pool), session, events, consoles, digest }
    }

    /// Writes the moment to a file. `key` is a hash of everything that the moment depends on, e.g. the world and the
    /// image. The file contains `key`, and [`Stored::read`] refuses a file with another key.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. In this case no file is left.
    pub fn write(&self, path: &Path, label: &str, key: [u8; 32], seed: u64) -> anyhow::Result<MomentHeader> {
        let info = MomentInfo {
            label: label.to_owned(),
            vtime: self.moment.vtime(),
            seed,
            key,
            state_version: STATE_VERSION,
        };
        let states = [
            (WORLD, self.moment.state()),
            (SESSION, self.session.to_bytes()?),
            (EVENTS, serde_json::to_vec(&self.events)?),
            (CONSOLES, postcard::to_stdvec(&self.consoles)?),
            (DIGEST, self.digest.0.to_vec()),
        ];
        let mut parts = MomentParts {
            states: states.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.into())).collect(),
            images: BTreeMap::new(),
            trees: BTreeMap::new(),
        };
        for (node, machine) in self.moment.machines.iter().enumerate() {
            machine_parts::put(&mut parts, node, machine);
        }
        Ok(MomentFile::write(path, &info, &parts)?)
    }

    /// Reads a moment with at most `pages_max` pages and disk blocks.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or has another key or version.
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
            check_timeline(path, &info.label)?;
            bail!("{}: a moment of another world, image or version", path.display());
        }
        let pages = file.header().delta_pages;
        if pages > pages_max {
            bail!("{}: {pages} pages and blocks; the world has at most {pages_max}", path.display());
        }
        let mut parts = file.read(pool, bases)?;
        let here = || path.display().to_string();
        let mut machines = Vec::new();
        while let Some(machine) =
            machine_parts::take(&mut parts, machines.len(), info.state_version).with_context(here)?
        {
            machines.push(machine);
        }
        let mut state = |name: &str| machine_parts::state(&mut parts, name).with_context(here);
        let (world, session) = (state(WORLD)?, state(SESSION)?);
        let (events, consoles, digest) = (state(EVENTS)?, state(CONSOLES)?, state(DIGEST)?);
        let digest =
            <[u8; 32]>::try_from(&digest[..]).context("its digest has another length").with_context(here)?;
        Ok(Stored {
            moment: WorldMoment::from_parts(WORLD_VERSION, &world, machines).with_context(here)?,
            session: SessionState::from_bytes(&session).with_context(here)?,
            events: serde_json::from_slice(&events).with_context(here)?,
            consoles: postcard::from_bytes(&consoles).with_context(here)?,
            digest: Digest(digest),
        })
    }
}
