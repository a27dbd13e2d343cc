//! File with the restart points of all nodes. A restart point is a state early in a node's boot, from which the node
//! starts again after a power loss. The file stores the memory of the restart points as differences from the world's
//! *ready* moment, at which all services are up.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use everett_snapshot::file::BaseDigest;
use everett_snapshot::moment::{MomentFile, MomentInfo, MomentParts};
use everett_snapshot::{Base, Pool};
use everett_streams::BootSeed;
use everett_vmm::machine::STATE_VERSION;

use super::machine_parts;
use crate::world::timeline::restart_point::RestartPoint;

fn conversation_name(node: usize) -> String {
    format!("conversation {node:02}")
}

impl RestartPoint {
    /// Writes the restart points of all nodes to a file. `key` is the hash of everything that the boot depends on. The
    /// world's folder of moments has this key, too.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. In this case no file is left.
    pub fn write_all(
        points: &[RestartPoint],
        path: &Path,
        key: [u8; 32],
        boot_seed: BootSeed,
    ) -> anyhow::Result<()> {
        let info = MomentInfo {
            label: "restart points".to_owned(),
            vtime: points.iter().map(|point| point.machine.vtime()).max().unwrap_or(0),
            seed: boot_seed.number(),
            key,
            state_version: STATE_VERSION,
        };
        let mut parts =
            MomentParts { states: BTreeMap::new(), images: BTreeMap::new(), trees: BTreeMap::new() };
        for (node, point) in points.iter().enumerate() {
            let conversation = postcard::to_stdvec(&point.conversation)?.into();
            parts.states.insert(conversation_name(node), conversation);
            machine_parts::put(&mut parts, node, &point.machine);
        }
        MomentFile::write(path, &info, &parts)?;
        Ok(())
    }

    /// Reads the restart points of `nodes` nodes, with at most `pages_max` pages and disk blocks in all.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or has another key or version.
    pub fn read_all(
        path: &Path,
        key: [u8; 32],
        nodes: usize,
        pool: &Pool,
        pages_max: u64,
        bases: impl FnMut(BaseDigest) -> Option<Arc<Base>>,
    ) -> anyhow::Result<Vec<RestartPoint>> {
        let file = MomentFile::open(path)?;
        let (info, pages) = (&file.header().info, file.header().delta_pages);
        if info.key != key || pages > pages_max {
            bail!("{}: restart points of another world, image or version", path.display());
        }
        let mut parts = file.read(pool, bases)?;
        let here = || path.display().to_string();
        let mut take = |node: usize| {
            let machine = machine_parts::take(&mut parts, node, info.state_version)?;
            let conversation = machine_parts::state(&mut parts, &conversation_name(node))?;
            let (conversation, rest) = postcard::take_from_bytes(&conversation)?;
            if !rest.is_empty() {
                bail!("bytes follow a conversation");
            }
            Ok(RestartPoint { machine: machine.context("there is no machine")?, conversation })
        };
        (0..nodes).map(|node| take(node).with_context(here)).collect()
    }
}
