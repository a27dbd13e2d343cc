//! Replaces `probes` in builds without the feature `inside`. Worlds with probes are refused there.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::bail;
use everett_explorer::plan::Plan;
use everett_explorer::probe::{ProbeState, Tally};
use everett_world_file::World;

use crate::run::launch::Launcher;
use crate::world::event::Event;
use crate::world::timeline::Timeline;

/// Probes of a world, which cannot exist in this build.
#[derive(Debug, Clone, Copy)]
pub struct Declared(Infallible);

impl Declared {
    pub(crate) fn of(launcher: &Launcher) -> anyhow::Result<Option<Declared>> {
        check(&launcher.world).map(|()| None)
    }
}

impl Declared {
    /// Returns the numbers about each probe by its name, and the reasons why code was not probed.
    #[must_use]
    pub fn found(&self) -> (Vec<(String, Tally)>, Vec<String>) {
        match self.0 {}
    }
}

/// Observer of probes, which cannot exist in this build.
#[derive(Debug)]
pub(crate) struct Prober(Infallible);

impl Prober {
    pub(crate) fn new(declared: &Arc<Declared>) -> Prober {
        match declared.0 {}
    }

    pub(crate) fn begin(&mut self, _: &mut Timeline, _: &ProbeState) -> anyhow::Result<()> {
        match self.0 {}
    }

    pub(crate) fn stopped(&mut self, _: &mut Timeline, _: usize) -> anyhow::Result<()> {
        match self.0 {}
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        match self.0 {}
    }

    pub(crate) fn fault(&mut self, _: &Plan, _: u32, _: impl Fn(&str) -> Option<u16>) {
        match self.0 {}
    }

    pub(crate) fn state(&self) -> &ProbeState {
        match self.0 {}
    }

    pub(crate) fn end(&mut self, _: &mut Timeline, _: bool) {
        match self.0 {}
    }
}

/// Refuses worlds with probes.
pub(crate) fn check(world: &World) -> anyhow::Result<()> {
    if !world.probes.is_empty() {
        bail!("{}: probe: this build of Everett has no probes (feature inside)", world.file.display());
    }
    Ok(())
}
