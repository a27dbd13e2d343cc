//! A node's restart point: where it starts again after a loss of power.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use everett_snapshot::file::{BaseDigest, MomentFile, MomentInfo, MomentParts};
use everett_snapshot::{Base, Pool};
use everett_vmm::machine::{DiskParts, Moment, STATE_VERSION};

use crate::session::agent::state::ConversationState;

const MACHINE: &str = "machine";
const CONVERSATION: &str = "conversation";
const MEMORY: &str = "memory";

/// Kernel and agent up, the root mounted, nothing else touched: no disk, no network, no service.
#[derive(Debug, Clone)]
pub struct RestartPoint {
    /// The machine.
    pub machine: Moment,
    /// What was said with its agent.
    pub conversation: ConversationState,
}

impl RestartPoint {
    /// Write it to a file, for the shelf with this key.
    ///
    /// # Errors
    /// The host refuses, and then there is no file.
    pub fn write(&self, path: &Path, key: [u8; 32], seed: u64) -> anyhow::Result<()> {
        let info = MomentInfo {
            label: "restart point".to_owned(),
            vtime: self.machine.vtime(),
            seed,
            key,
            state_version: STATE_VERSION,
        };
        let states = [
            (MACHINE.to_owned(), self.machine.state().into()),
            (CONVERSATION.to_owned(), postcard::to_stdvec(&self.conversation)?.into()),
        ];
        let mut parts = MomentParts {
            states: states.into(),
            images: BTreeMap::from([(MEMORY.to_owned(), self.machine.memory().clone())]),
            trees: BTreeMap::new(),
        };
        for (disk, then) in self.machine.disks().iter().enumerate() {
            let DiskParts { blocks, state } = then.to_parts();
            parts.trees.insert(disk_name(disk), blocks);
            parts.states.insert(disk_name(disk), state.into());
        }
        MomentFile::write(path, &info, &parts)?;
        Ok(())
    }

    /// Read one of the shelf with this key, of a machine with at most so many pages.
    ///
    /// # Errors
    /// It is of another shelf or version, or damaged.
    pub fn read(
        path: &Path,
        key: [u8; 32],
        pool: &Pool,
        pages_max: u64,
        bases: impl FnMut(BaseDigest) -> Option<Arc<Base>>,
    ) -> anyhow::Result<RestartPoint> {
        let file = MomentFile::open(path)?;
        let (info, pages) = (&file.header().info, file.header().delta_pages);
        if info.key != key || pages > pages_max {
            bail!("{}: a restart point of something else", path.display());
        }
        let mut parts = file.read(pool, bases)?;
        let here = || path.display().to_string();
        let missing = |name: &str| anyhow!("{}: there is no part \"{name}\"", path.display());
        let machine = parts.states.remove(MACHINE).ok_or_else(|| missing(MACHINE))?;
        let conversation = parts.states.remove(CONVERSATION).ok_or_else(|| missing(CONVERSATION))?;
        let memory = parts.images.remove(MEMORY).ok_or_else(|| missing(MEMORY))?;
        let mut disks = Vec::new();
        while let Some(blocks) = parts.trees.remove(&disk_name(disks.len())) {
            let name = disk_name(disks.len());
            let state = parts.states.remove(&name).ok_or_else(|| missing(&name))?.to_vec();
            disks.push(DiskParts { blocks, state });
        }
        Ok(RestartPoint {
            machine: Moment::from_parts(info.state_version, machine, memory, &disks).with_context(here)?,
            conversation: postcard::from_bytes(&conversation).with_context(here)?,
        })
    }
}

/// Names are ordered as text, and there are fewer than a hundred disks.
fn disk_name(disk: usize) -> String {
    format!("disk {disk:02}")
}
