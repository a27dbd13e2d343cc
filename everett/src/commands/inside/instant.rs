//! An instant of a recorded branch, or a span of time that ends there: the arguments that name it, and the way there.
//!
//! The branch runs again from the root moment to this vtime, which can lie in its checks.

use std::path::PathBuf;

use anyhow::bail;
use everett_explorer::run::Record;
use everett_host::interrupt::Interrupt;
use everett_input::units::{self, Vtime};
use everett_session::debug::cursor::Cursor;
use everett_session::explore::path_runner::{PathRunner, Unless, Watch};
use everett_session::explore::setting::Setting;
use everett_session::machines::engines::Engine;

use super::super::common;
use super::super::engine_choice::EngineArgs;
use super::super::exploration::Run;
use super::super::id::Id;
use crate::ui::Ui;

/// Arguments that name an instant.
#[derive(Debug, clap::Args)]
pub struct InstantArgs {
    /// The run directory
    pub run: PathBuf,
    /// Number of a finding such as 1, or of a branch such as b17
    pub id: Id,
    /// Vtime of the instant, counted from power-on. Default: when the finding showed, or the end of the branch
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub at: Option<u64>,
    /// Only this node. Default: all nodes
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Arguments that name a part of a branch's timeline, which ends at an instant.
#[derive(Debug, clap::Args)]
pub struct SpanArgs {
    /// The run directory
    pub run: PathBuf,
    /// Number of a finding such as 1, or of a branch such as b17
    pub id: Id,
    /// Vtime of the end, counted from power-on. Default: the end of the branch
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub at: Option<u64>,
    /// Vtime of the beginning, counted from power-on. Default: the beginning of the timeline
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub since: Option<u64>,
    /// Only this node. Default: all nodes
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// An instant of a recorded branch, with everything that is needed to run the branch again.
pub(super) struct Instant {
    /// The run directory.
    pub(super) run: Run,
    /// Record of the branch.
    pub(super) record: Record,
    /// Vtime of the instant, in nanoseconds since power-on.
    pub(super) at_ns: u64,
    /// Setting in which the branches of the run directory ran.
    pub(super) setting: Setting,
    engine: Engine,
}

impl Instant {
    /// Opens the run directory and finds the instant in it.
    pub(super) fn open(ui: &Ui, args: &InstantArgs, interrupt: &Interrupt) -> anyhow::Result<Instant> {
        let run = Run::open(&args.run)?;
        let default_ns = match args.id {
            Id::Finding(id) => Some(run.finding(id)?.hit.vtime_ns),
            Id::Branch(_) => None,
        };
        let at = args.at.or(default_ns);
        Instant::in_run(ui, run, (args.id, at), args.node.as_deref(), &args.engine, interrupt)
    }

    /// Opens the run directory and finds the end of a span in it.
    pub(super) fn end_of(ui: &Ui, args: &SpanArgs, interrupt: &Interrupt) -> anyhow::Result<Instant> {
        let run = Run::open(&args.run)?;
        let instant =
            Instant::in_run(ui, run, (args.id, args.at), args.node.as_deref(), &args.engine, interrupt)?;
        if let Some(since) = args.since.filter(|since| *since > instant.at_ns) {
            let (since, at) = (Vtime(since).to_string(), Vtime(instant.at_ns).to_string());
            bail!("--since: {} s is later than the end, {} s", since.trim(), at.trim());
        }
        Ok(instant)
    }

    /// Finds an instant of a finding's or a branch's timeline. Without a vtime, it is the end of the branch.
    fn in_run(
        ui: &Ui,
        run: Run,
        (id, at): (Id, Option<u64>),
        node: Option<&str>,
        engine: &EngineArgs,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Instant> {
        let record = run.record(id)?;
        let nodes = &run.reading.header().nodes;
        if let Some(node) = node
            && !nodes.iter().any(|name| name == node)
        {
            bail!("--node: no node of this world is named {node}; its nodes are {}", nodes.join(", "));
        }
        let at_ns = at.unwrap_or(record.end_ns);
        let (setting, engine) = run.setting(ui, engine.asked(), interrupt)?;
        let root_ns = setting.root_ns;
        if !(root_ns..=record.end_ns).contains(&at_ns) {
            bail!(
                "--at: {} s is not on this timeline, which goes from {} s to {} s",
                Vtime(at_ns).to_string().trim(),
                Vtime(root_ns).to_string().trim(),
                Vtime(record.end_ns).to_string().trim()
            );
        }
        Ok(Instant { run, record, at_ns, setting, engine })
    }

    /// Returns random vtimes of the branch, in nanoseconds and in their order. They are the same each time.
    pub(super) fn random_vtimes(&self, count: u16) -> Vec<u64> {
        let (from, end) = (self.setting.root_ns, self.record.end_ns);
        let random = |n: u16| {
            let hash = blake3::Hasher::new()
                .update(self.record.trail.as_bytes())
                .update(&n.to_le_bytes())
                .finalize();
            let number = hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            from + number % end.saturating_sub(from).saturating_add(1)
        };
        let mut vtimes: Vec<u64> = (0..count).map(random).collect();
        vtimes.sort_unstable();
        vtimes
    }

    /// Returns the names of the world's nodes, in the order of the world file.
    pub(super) fn nodes(&self) -> &[String] {
        &self.run.reading.header().nodes
    }

    /// Returns the number of a node, or `None` if there is no such node.
    pub(super) fn number_of(&self, node: &str) -> Option<usize> {
        self.nodes().iter().position(|name| name == node)
    }

    /// Runs the branch up to the instant, and returns the runner whose timeline is there.
    pub(super) fn reach(&self, interrupt: &Interrupt) -> anyhow::Result<PathRunner<'_>> {
        let mut runner = PathRunner::new(&self.setting)?;
        self.follow(&mut runner, &mut Unless(&|| interrupt.wanted()))?;
        Ok(runner)
    }

    /// Returns a cursor at the start of the branch. Its moments may use about `budget_bytes` bytes.
    pub(super) fn cursor(&self, budget_bytes: u64) -> anyhow::Result<Cursor<'_>> {
        Cursor::new(&self.setting, &self.record.path, self.record.end_ns, budget_bytes)
    }

    /// Runs the branch up to the instant, under the eyes of `watch`.
    pub(super) fn follow(&self, runner: &mut PathRunner<'_>, watch: &mut dyn Watch) -> anyhow::Result<()> {
        runner.seek(&self.record.path, self.at_ns, watch)
    }

    /// Prints a warning if the engine's results may be inexact.
    pub(super) fn warn_of_engine(&self, ui: &Ui) -> anyhow::Result<()> {
        common::warn_of_engine(ui, &self.engine)
    }
}
