//! Replacement for profiles in builds without the feature `inside`: the option `--profile` fails.

use anyhow::bail;
use everett_session::machines::engines::Engine;
use everett_session::run::launch::Launcher;
use everett_session::world::timeline::Timeline;

use super::profile_args::ProfileArgs;
use crate::ui::Ui;

/// Profile that was asked for. The type has no values, because this build makes none.
pub(super) enum Asked {}

/// Profile of a running timeline. The type has no values, because this build makes none.
pub(super) enum Profiler {}

impl Asked {
    /// Returns an error if a profile is asked for.
    pub(super) fn new(args: &ProfileArgs, _: &Engine) -> anyhow::Result<Option<Asked>> {
        if args.profile.is_some() {
            bail!(
                "--profile: this build of everett cannot look into guests; build it with the feature inside \
                 (cargo build --release)"
            );
        }
        Ok(None)
    }
}

impl Profiler {
    pub(super) fn begin(asked: Asked, _: &Launcher, _: &mut Timeline) -> anyhow::Result<Profiler> {
        match asked {}
    }

    pub(super) fn counted(&mut self, _: usize, _: &mut Timeline) {
        match *self {}
    }

    pub(super) fn write(self, _: &Ui, _: &mut Timeline, _: &str) -> anyhow::Result<()> {
        match self {}
    }
}
