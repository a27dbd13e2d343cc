//! Probes: values that recorded branches are made to print at places of their programs, after the fact.
//!
//! A probe is a breakpoint that no guest can observe. Where it stops a machine, Everett evaluates the probe's expressions
//! from the machine's registers and memory, and the machine goes on.
//!
//! Each module uses only modules above it:
//! - [`limits`]: bounds of probes
//! - [`expression`]: expressions over registers, memory and variables
//! - [`format`](mod@format): formats of values
//! - [`probe`]: a probe as the operator writes it
//! - [`hit`]: hits of a branch
//! - `programs`: programs of images, and places in them
//! - `loaded`: programs in memory, and the linear addresses of probes
//! - `scene`: what expressions read at a hit
//! - [`code`]: programs that ran on a timeline, and places and values in them at an instant
//! - this file: the replays of branches with probes
//! - `observer`: places probes on a branch, and collects their hits
//!
//! **Invariants.**
//! - Each branch ends with the recorded trail, or the replays end with an error.
//! - A value that cannot be read is a word that says why, never a number.

pub mod code;
pub mod expression;
pub mod format;
pub mod hit;
pub mod limits;
mod loaded;
mod observer;
pub mod probe;
mod programs;
mod scene;

use anyhow::Context as _;
use everett_explorer::run::Reading;
use everett_host::interrupt::Interrupt;
use everett_inspect::Kernel;

use crate::explore::path_runner::{Branch, PathRunner};
use crate::explore::replays::{self, Job};
use crate::explore::setting::Setting;
use crate::inside::debug_files::DebugFolders;
use expression::Expression;
use hit::BranchHits;
use observer::Observer;
use probe::{KERNEL, Place, Probe};
use programs::Programs;

/// Function that the kernel calls when a process has loaded a program, before the program's first instruction.
const EXEC: &str = "finalize_exec";

/// Probes, and the branches that are replayed with them.
pub struct Options<'o> {
    /// Probes.
    pub probes: Vec<Probe>,
    /// Condition of all probes.
    pub condition: Option<Expression>,
    /// True if all hits are only counted.
    pub only_counts: bool,
    /// True if all hits have stacks.
    pub has_stack: bool,
    /// True if the lines of services are collected, too.
    pub with_logs: bool,
    /// The only node that is probed.
    pub node: Option<usize>,
    /// Branches that are replayed, with the branches that they extend. All branches if it is empty.
    pub branches: Vec<u64>,
    /// Number of branches that are replayed in parallel.
    pub workers: usize,
    /// Folders with separate debug files of programs.
    pub debug: DebugFolders,
    /// Interrupt that ends the replays.
    pub interrupt: &'o Interrupt,
}

/// State that the observers of all branches share.
struct Probing<'o> {
    probes: &'o [Probe],
    condition: Option<&'o Expression>,
    only_counts: bool,
    has_stack: bool,
    with_logs: bool,
    node: Option<usize>,
    kernel: &'o Kernel,
    /// Address of [`EXEC`], if a probe is in a program.
    exec: Option<u64>,
    /// Addresses of the probes in the kernel, by the numbers of the probes.
    in_kernel: Vec<(usize, Vec<u64>)>,
    programs: Programs,
    stop: &'o (dyn Fn() -> bool + Sync),
}

impl Probing<'_> {
    /// True if a node is probed.
    fn is_wanted(&self, node: usize) -> bool {
        self.node.is_none_or(|only| only == node)
    }
}

impl<'o> Job for Probing<'o> {
    type Inherited = ();
    type Watch<'w>
        = Observer<'w>
    where
        Self: 'w;
    type Result = BranchHits;

    fn watch<'w>(&'w self, _: &mut PathRunner<'_>, number: u64, _: u64) -> Observer<'w> {
        Observer::new(self, number)
    }

    fn finish(&self, _: u64, (): &(), _: &Branch, observer: Observer<'_>) -> (BranchHits, ()) {
        (observer.into(), ())
    }
}

/// Replays branches with probes, and calls `receive` with the hits of each. Each replayed branch has its recorded trail.
/// Returns the number of branches to replay.
///
/// # Errors
/// Returns an error if a probe has no place in the kernel, if a branch cannot be run, if its trail differs from the
/// recorded one, or if `receive` returns an error.
pub fn hits(
    setting: &Setting,
    reading: &Reading,
    kernel: &Kernel,
    options: &Options<'_>,
    receive: &mut dyn FnMut(BranchHits, u64) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let targets = match options.branches.is_empty() {
        true => replays::first_targets(reading, u64::MAX)?,
        false => replays::targets_of(reading, &options.branches)?,
    };
    let (kernels, others): (Vec<_>, Vec<_>) =
        options.probes.iter().enumerate().partition(|(_, probe)| probe.program == KERNEL);
    let in_kernel = kernels.into_iter().map(|(n, probe)| Ok((n, in_kernel(kernel, probe)?)));
    let in_kernel = in_kernel.collect::<anyhow::Result<_>>()?;
    let exec = match others.is_empty() {
        true => None,
        false => Some(kernel.address_of(EXEC).with_context(|| format!("the kernel has no function {EXEC}"))?),
    };
    let stop = || options.interrupt.wanted();
    let probing = Probing {
        probes: &options.probes,
        condition: options.condition.as_ref(),
        only_counts: options.only_counts,
        has_stack: options.has_stack,
        with_logs: options.with_logs,
        node: options.node,
        kernel,
        exec,
        in_kernel,
        programs: Programs::of_launcher(&setting.launcher, &options.debug)?,
        stop: &stop,
    };
    let count = targets.len() as u64;
    replays::run(setting, &targets, options.workers, &probing, &stop, &mut |hits| receive(hits, count))?;
    Ok(count)
}

/// Returns the addresses of a probe in the kernel.
fn in_kernel(kernel: &Kernel, probe: &Probe) -> anyhow::Result<Vec<u64>> {
    let address = match &probe.place {
        Place::Address(address) => Some(*address),
        Place::Function(name, offset) => {
            kernel.address_of(name).map(|start| start.wrapping_add(offset.unwrap_or(0)))
        }
        Place::Line(..) => None,
    };
    let address = address.with_context(|| format!("{}: the kernel has no such function", probe.name))?;
    Ok(vec![address])
}
