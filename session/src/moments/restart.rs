//! Restart points in files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use everett_snapshot::file::BaseDigest;
use everett_snapshot::moment::{MomentFile, MomentInfo, MomentParts};
use everett_snapshot::{Base, Pool};
use everett_vmm::machine::STATE_VERSION;

use super::machine_parts;
use crate::timeline::restart_point::RestartPoint;

const CONVERSATION: &str = "conversation";
/// Index of the machine within its file: there is only one, whichever node it belongs to.
const NODE: usize = 0;

impl RestartPoint {
    /// Writes the restart point to a file, for the store with this key.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; then there is no file.
    pub fn write(&self, path: &Path, key: [u8; 32], seed: u64) -> anyhow::Result<()> {
        let info = MomentInfo {
            label: "restart point".to_owned(),
            vtime: self.machine.vtime(),
            seed,
            key,
            state_version: STATE_VERSION,
        };
        let conversation = postcard::to_stdvec(&self.conversation)?.into();
        let mut parts = MomentParts {
            states: BTreeMap::from([(CONVERSATION.to_owned(), conversation)]),
            images: BTreeMap::new(),
            trees: BTreeMap::new(),
        };
        machine_parts::put(&mut parts, NODE, &self.machine);
        MomentFile::write(path, &info, &parts)?;
        Ok(())
    }

    /// Reads a restart point of the store with this key, of a machine with at most `pages_max` pages.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or of another store or version.
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
            bail!("{}: a restart point of another world, image or version", path.display());
        }
        let mut parts = file.read(pool, bases)?;
        let here = || path.display().to_string();
        let machine = machine_parts::take(&mut parts, NODE, info.state_version).with_context(here)?;
        let conversation = machine_parts::state(&mut parts, CONVERSATION).with_context(here)?;
        let (conversation, rest) = postcard::take_from_bytes(&conversation).with_context(here)?;
        if !rest.is_empty() {
            bail!("{}: bytes follow the conversation", path.display());
        }
        Ok(RestartPoint { machine: machine.context("there is no machine").with_context(here)?, conversation })
    }
}
