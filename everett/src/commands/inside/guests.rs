//! The guests of the machines at an instant, read from outside.
//!
//! Nothing is forked and nothing in a guest changes, so the machines are as they were in the exploration.

use everett_host::interrupt::Interrupt;
use everett_input::causes::with_causes;
use everett_inspect::registers::CpuRegisters;
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};
use everett_session::explore::path_runner::Interrupted;
use everett_session::explore::setting::Setting;
use everett_session::inside::kernel_types;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::run::launch::Launcher;
use serde::Serialize;

use super::instant::{Instant, InstantArgs};
use crate::ui::{Ui, printable, style};

/// A guest at the instant.
pub(super) struct Inside<'g> {
    /// Name of the node.
    pub(super) node: &'g str,
    /// The guest.
    pub(super) guest: Guest<'g>,
    /// Its processes.
    pub(super) processes: Vec<Process>,
    /// The kernel.
    pub(super) kernel: &'g Kernel,
    /// Registers of the machine's CPU.
    pub(super) cpu: CpuRegisters,
    /// Length of the machine's RAM, in bytes. It begins at 0.
    pub(super) ram_bytes: u64,
    /// Launcher of the world's timelines, with its files.
    pub(super) launcher: &'g Launcher,
    interrupt: &'g Interrupt,
}

impl Inside<'_> {
    /// Returns an error if the operator has interrupted the command. A hostile guest can have many processes.
    pub(super) fn go_on(&self) -> anyhow::Result<()> {
        if self.interrupt.wanted() { Err(Interrupted.into()) } else { Ok(()) }
    }
}

/// Line of `--json`: a part of a machine that cannot be read.
#[derive(Serialize)]
struct Unreadable<'a> {
    kind: &'static str,
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    error: &'a str,
}

/// Prints why a machine, a process or a thread cannot be read.
pub(super) fn unreadable(
    ui: &Ui,
    node: &str,
    pid: Option<u32>,
    tid: Option<u32>,
    error: &everett_inspect::Error,
) -> anyhow::Result<()> {
    let error = with_causes(error);
    ui.record(&Unreadable { kind: "unreadable", node, pid, tid, error: &error })?;
    let text = match (pid, tid) {
        (Some(pid), Some(tid)) => format!("{pid:>8} {tid:>6} {}", printable(&error)),
        (Some(pid), None) => format!("{pid:>8} {}", printable(&error)),
        (None, _) => format!("    {}", printable(&error)),
    };
    Ok(ui.say(style::paint(style::BAD, text))?)
}

/// Goes to the instant, prints the name of each node that is asked for, and calls `look` if its guest can be read.
/// Returns true if all of them can be read.
pub(super) fn each_guest(
    ui: &Ui,
    args: &InstantArgs,
    mut look: impl FnMut(&Inside<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let interrupt = Interrupt::install()?;
    let instant = Instant::open(ui, args, &interrupt)?;
    let kernel = kernel(&instant.setting)?;
    let mut runner = instant.reach(&interrupt)?;
    let timeline = runner.timeline();
    let mut all_read = true;
    for (n, node) in instant.nodes().iter().enumerate() {
        if args.node.as_ref().is_some_and(|wanted| wanted != node) {
            continue;
        }
        ui.say(style::paint(style::HEAD, printable(node)))?;
        let ram = MachineRam(timeline.machine(n));
        let cpu = registers(&timeline.machine(n).cpu());
        match Guest::new(&kernel, &ram).and_then(|guest| Ok((guest, guest.processes()?))) {
            Ok((guest, processes)) => {
                let (kernel, launcher) = (&kernel, &instant.setting.launcher);
                let ram_bytes = ram.0.ram().len();
                look(&Inside {
                    node,
                    guest,
                    processes,
                    kernel,
                    cpu,
                    ram_bytes,
                    launcher,
                    interrupt: &interrupt,
                })?;
            }
            Err(error) => {
                all_read = false;
                unreadable(ui, node, None, None, &error)?;
            }
        }
    }
    instant.warn_of_engine(ui)?;
    Ok(all_read)
}

/// Reads the types and symbols of the kernel that all machines run.
pub(super) fn kernel(setting: &Setting) -> anyhow::Result<Kernel> {
    kernel_types::kernel(&setting.launcher.files)
}

/// Returns true if a process has this ID, or if its first thread has this name.
pub(super) fn is_named(process: &Process, wanted: &str) -> bool {
    wanted == process.pid.to_string() || process.threads.first().is_some_and(|thread| thread.name == wanted)
}
