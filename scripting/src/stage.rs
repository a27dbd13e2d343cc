//! A world that is ready, with its kernel and its programs. All moments and forks of the world share it.

use std::sync::{Mutex, OnceLock, PoisonError};

use everett_explorer::plan::Plan;
use everett_inspect::Kernel;
use everett_session::explore::branch_moment::BranchMoment;
use everett_session::explore::setting::Setting;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::kernel_types;
use everett_session::inside::mapped_files::MappedFiles;
use everett_session::probes::at_rest::Values;
use everett_session::world::timeline::Timeline;

use super::error::Error;

/// A world that is ready.
pub(crate) struct Stage {
    pub(crate) setting: Setting,
    debug: DebugFolders,
    kernel: OnceLock<Result<Kernel, String>>,
    values: OnceLock<Result<Values, String>>,
    /// Programs of each node, by its number.
    files: Vec<Mutex<Option<MappedFiles>>>,
}

impl Stage {
    pub(crate) fn new(setting: Setting, debug: DebugFolders) -> Stage {
        let files = setting.launcher.world.nodes.iter().map(|_| Mutex::default()).collect();
        Stage { setting, debug, kernel: OnceLock::new(), values: OnceLock::new(), files }
    }

    /// Returns the names of the nodes, in the order of the world file.
    pub(crate) fn nodes(&self) -> Vec<String> {
        self.setting.launcher.world.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Returns the number of a node.
    pub(crate) fn number_of(&self, node: &str) -> Result<usize, Error> {
        let nodes = self.nodes();
        nodes.iter().position(|other| other == node).ok_or_else(|| Error::no_node(node, &nodes))
    }

    /// Returns the types and symbols of the machines' kernel.
    pub(crate) fn kernel(&self) -> Result<&Kernel, Error> {
        let read =
            || kernel_types::kernel(&self.setting.launcher.files).map_err(|error| format!("{error:#}"));
        self.kernel.get_or_init(read).as_ref().map_err(|why| Error::Failed(why.clone()))
    }

    /// Returns the programs whose variables expressions name.
    pub(crate) fn values(&self) -> Result<&Values, Error> {
        let read = || Values::new(&self.setting.launcher, &self.debug).map_err(|error| format!("{error:#}"));
        self.values.get_or_init(read).as_ref().map_err(|why| Error::Failed(why.clone()))
    }

    /// Calls `look` with the programs of a node.
    pub(crate) fn with_files<T>(
        &self,
        node: usize,
        look: impl FnOnce(&MappedFiles) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let missing = || Error::Missing(format!("there is no node {node}"));
        let mut files =
            self.files.get(node).ok_or_else(missing)?.lock().unwrap_or_else(PoisonError::into_inner);
        if files.is_none() {
            let launcher = &self.setting.launcher;
            let name = launcher.world.nodes.get(node).map(|node| node.name.clone()).unwrap_or_default();
            let read = MappedFiles::of_node(&launcher.files, &launcher.world, &name, self.debug.clone());
            *files = Some(read.map_err(anyhow::Error::from)?);
        }
        files.as_ref().ok_or_else(missing).and_then(look)
    }

    /// Returns a timeline with its own machines that stands at a moment.
    pub(crate) fn restore(&self, moment: &BranchMoment, plan: &Plan) -> Result<Timeline, Error> {
        let launcher = &self.setting.launcher;
        let restored = || -> anyhow::Result<Timeline> {
            let mut timeline = launcher.resume(&self.setting.ready)?;
            launcher.go_to(&mut timeline, &moment.world, moment.session.clone())?;
            timeline.apply_faults(Some(self.setting.faults(plan.clone())))?;
            Ok(timeline)
        };
        Ok(restored()?)
    }
}
