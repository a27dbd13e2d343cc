//! A throw-away fork at an instant: the arguments that name it, and the way there.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use everett_host::interrupt::Interrupt;
use everett_input::units::{self, Vtime};
use everett_session::inside::files::FilesError;
use everett_session::inside::fork::{Fork, ForkError};
use everett_session::inside::limits::ANSWER_NS_MAX;

use super::super::engine_choice::EngineArgs;
use super::super::id::Id;
use super::instant::{Instant, InstantArgs};
use crate::ui::Ui;

/// Vtime within which a machine that `--calm` has switched on must have booted, in nanoseconds: one minute.
const BOOT_NS_MAX: u64 = 60_000_000_000;

/// Arguments that name a fork.
#[derive(Debug, clap::Args)]
pub struct ForkArgs {
    /// The run directory
    pub run: PathBuf,
    /// Number of a finding such as 1, or of a branch such as b17
    pub id: Id,
    /// Vtime of the instant, counted from power-on. Default: when the finding showed, or the end of the branch
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub at: Option<u64>,
    /// End all faults first, and switch on machines that have no power
    #[arg(long)]
    pub calm: bool,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// A fork, and the node in which the user works.
pub(super) struct ForkAt {
    pub(super) fork: Fork,
    /// Index of the node.
    pub(super) node: usize,
    /// Name of the node.
    pub(super) name: String,
    /// Vtime of the instant at which the fork began, in nanoseconds.
    pub(super) at_ns: u64,
}

impl ForkAt {
    /// Goes to the instant, and makes a fork there in which the agent of the node answers. Without a name, the world must
    /// have one node.
    pub(super) fn open(
        ui: &Ui,
        args: &ForkArgs,
        node: Option<&str>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<ForkAt> {
        let instant = InstantArgs {
            run: args.run.clone(),
            id: args.id,
            at: args.at,
            node: node.map(str::to_owned),
            engine: args.engine.clone(),
        };
        let instant = Instant::open(ui, &instant, interrupt)?;
        let (node, name) = match (node, instant.nodes()) {
            (None, [one]) => (0, one.clone()),
            (None, nodes) => {
                bail!("--node: it is missing, and this world has several nodes: {}", nodes.join(", "))
            }
            (Some(name), nodes) => {
                let node = nodes.iter().position(|node| node == name);
                (node.context("a node without a machine")?, name.to_owned())
            }
        };
        let mut fork = Fork::new(instant.reach(interrupt)?.into_timeline());
        instant.warn_of_engine(ui)?;
        let mut limit_ns = 0;
        if args.calm {
            fork.calm();
            limit_ns = BOOT_NS_MAX.max(ANSWER_NS_MAX);
        }
        fork.wait_for_agent(node, limit_ns).map_err(|error| at_place(error, &name))?;
        Ok(ForkAt { fork, node, name, at_ns: instant.at_ns })
    }
}

/// Returns the error of a fork with its place: a node, or a file on it.
pub(super) fn at_place(error: impl Into<FilesError>, place: &str) -> anyhow::Error {
    match error.into() {
        FilesError::Fork(lost @ ForkError::Lost) => anyhow!("{place}: {lost}; --calm ends the faults first"),
        error => anyhow::Error::new(error).context(place.to_owned()),
    }
}

/// Returns a vtime as seconds, such as `3.200000000`.
pub(super) fn seconds(vtime_ns: u64) -> String {
    Vtime(vtime_ns).to_string().trim().to_owned()
}
