//! `everett disk`: writes the image of a machine's disk at an instant, also as a power loss would leave it.

use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use everett_host::interrupt::Interrupt;
use everett_input::units::{Vtime, show_bytes};
use everett_session::explore::path_runner::Interrupted;
use everett_session::inside::file_system::FileSystem;
use everett_session::inside::node_disks::{NodeDisk, node_disks};
use everett_session::output::show;
use everett_session::world::event::Loss;
use everett_session::world::timeline::disk_copy::Outcome as LossOutcome;
use everett_streams::Seed;
use everett_vmm::disk::{Disk, LossMode, PowerLoss, PowerLossOptions};
use serde::Serialize;

use super::super::Outcome;
use super::for_shell;
use super::instant::{Instant, InstantArgs};
use super::new_file::NewFile;
use crate::ui::{Ui, printable};

/// `everett disk`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// The disk: the path at which a data disk is mounted, "root", or a serial number. Default: the only data disk
    #[arg(long, value_name = "NAME|SERIAL")]
    pub disk: Option<String>,
    /// File for the image. It must not exist
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Write the image that the fault power_loss at this instant would leave
    #[arg(long)]
    pub after_power_loss: bool,
    /// With --after-power-loss: draw what the disk loses under this seed. Default: as the fault would draw it
    #[arg(long, value_name = "SEED", requires = "after_power_loss")]
    pub seed: Option<Seed>,
    /// With --after-power-loss: rule by which writes survive. Default: drawn
    #[arg(long, value_name = "MODE", requires = "after_power_loss")]
    pub mode: Option<Mode>,
    /// With --after-power-loss: tear sectors, as the fault does with tear_sectors
    #[arg(long, requires = "after_power_loss")]
    pub tear_sectors: bool,
}

/// Rule by which unflushed writes survive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// No unflushed write survives
    AllLost,
    /// All completed writes survive
    AllKept,
    /// The first writes survive, up to a drawn place
    Prefix,
    /// Each request survives as a whole or not at all
    Requests,
    /// Each sector holds any of its versions
    Sectors,
}

impl From<Mode> for LossMode {
    fn from(mode: Mode) -> LossMode {
        match mode {
            Mode::AllLost => LossMode::AllLost,
            Mode::AllKept => LossMode::AllKept,
            Mode::Prefix => LossMode::Prefix,
            Mode::Requests => LossMode::Requests,
            Mode::Sectors => LossMode::Sectors,
        }
    }
}

/// Returns the name of a mode, as the option `--mode` spells it.
fn name_of(mode: LossMode) -> &'static str {
    match mode {
        LossMode::AllLost => "all-lost",
        LossMode::AllKept => "all-kept",
        LossMode::Prefix => "prefix",
        LossMode::Requests => "requests",
        LossMode::Sectors => "sectors",
    }
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    disk: &'a str,
    serial: &'a str,
    vtime_ns: u64,
    file: String,
    /// Size of the disk in bytes.
    bytes: u64,
    /// Bytes of the blocks that are in the file. All other blocks are zeroes, and holes in the file.
    content_bytes: u64,
    file_system: Option<&'static str>,
    needs_recovery: bool,
    /// Writes at the instant that no flush had made durable.
    unflushed_writes: u64,
    /// Requests at the instant that the disk had not completed.
    requests_in_flight: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    power_loss: Option<LossLine>,
    /// Commands that check the image.
    checks: &'a [String],
}

/// Data that the image lost.
#[derive(Serialize)]
struct LossLine {
    mode: Option<&'static str>,
    #[serde(flatten)]
    loss: Loss,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let file = NewFile::create(&args.output)?;
    let interrupt = Interrupt::install()?;
    let instant = Instant::open(ui, &args.instant, &interrupt)?;
    let number = match (&args.instant.node, instant.nodes()) {
        (Some(node), _) => instant.number_of(node).context("no such node")?,
        (None, [_]) => 0,
        (None, nodes) => bail!("--node: name a node; this world has {}", nodes.join(", ")),
    };
    let node = &instant.setting.launcher.world.nodes[number];
    let mut runner = instant.reach(&interrupt)?;
    let timeline = &*runner.timeline();
    let machine = timeline.machine(number);
    let there = chosen(args.disk.as_deref(), node_disks(node, machine), &node.name)?;
    let now = machine.disks().get(there.index).context("no such disk")?;
    let lost = if args.after_power_loss {
        let options = PowerLossOptions { tear_sectors: args.tear_sectors };
        let outcome = LossOutcome { options, seed: args.seed, mode: args.mode.map(LossMode::from) };
        let lost = timeline.disk_after_power_loss(number, there.index, &outcome);
        Some(lost.context("--after-power-loss: this timeline has no fault plan; give a --seed")?)
    } else {
        None
    };
    let disk = lost.as_ref().map_or(now, |(disk, _)| disk);
    let content_bytes = write(disk, &file, &interrupt).with_context(|| args.output.display().to_string())?;
    file.keep()?;
    let file_system = FileSystem::of(disk);
    let path = for_shell(&args.output.display().to_string());
    let commands = file_system.map_or(&[][..], FileSystem::checks);
    let checks: Vec<String> = commands.iter().map(|command| format!("{command} {path}")).collect();
    let line = Line {
        kind: "disk",
        node: &node.name,
        disk: &there.name,
        serial: &there.serial,
        vtime_ns: instant.at_ns,
        file: args.output.display().to_string(),
        bytes: disk.len(),
        content_bytes,
        file_system: file_system.map(FileSystem::name),
        needs_recovery: file_system.is_some_and(FileSystem::needs_recovery),
        unflushed_writes: now.unflushed_writes(),
        requests_in_flight: machine.requests_of_disk(there.index).unwrap_or(0),
        power_loss: lost.as_ref().map(|(_, lost)| of_loss(there.index, lost)),
        checks: &checks,
    };
    ui.record(&line)?;
    tell(ui, &line)?;
    instant.warn_of_engine(ui)?;
    Ok(Outcome::Fine)
}

/// Returns the disk that the operator wants.
fn chosen(wanted: Option<&str>, disks: Vec<NodeDisk>, node: &str) -> anyhow::Result<NodeDisk> {
    let listed = disks.iter().map(|disk| format!("{} ({})", disk.name, disk.serial)).collect::<Vec<_>>();
    let has = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    let (mut found, missing) = match wanted {
        Some(wanted) => {
            let is_wanted = |disk: &NodeDisk| disk.name == wanted || disk.serial == wanted;
            (disks.into_iter().filter(is_wanted).collect::<Vec<_>>(), format!("no disk {wanted}"))
        }
        None => {
            let found = disks.into_iter().filter(|disk| !disk.is_root).collect::<Vec<_>>();
            let missing = if found.is_empty() { "no data disk" } else { "several data disks" };
            (found, missing.to_owned())
        }
    };
    match (found.pop(), found.is_empty()) {
        (Some(disk), true) => Ok(disk),
        _ => bail!("--disk: {node} has {missing}; its disks are {has}"),
    }
}

/// Writes the content of a disk to a file, whose holes are blocks of zeroes. Returns the number of bytes that are no
/// hole.
fn write(disk: &Disk, file: &NewFile, interrupt: &Interrupt) -> anyhow::Result<u64> {
    let mut bytes = 0;
    file.file().set_len(disk.len())?;
    disk.visit_content(|offset, content| {
        if interrupt.wanted() {
            return Err(anyhow::Error::from(Interrupted));
        }
        bytes += content.len() as u64;
        Ok(file.file().write_all_at(content, offset)?)
    })?;
    Ok(bytes)
}

fn of_loss(disk: usize, lost: &PowerLoss) -> LossLine {
    LossLine { mode: lost.mode.map(name_of), loss: Loss::of(disk, lost) }
}

fn tell(ui: &Ui, line: &Line<'_>) -> anyhow::Result<()> {
    let Line { node, disk, serial, bytes, content_bytes, unflushed_writes, requests_in_flight, .. } = *line;
    let at = Vtime(line.vtime_ns).to_string();
    ui.say(printable(&format!("{node} {disk} ({serial}) at {} s", at.trim())))?;
    let (bytes, content) = (show_bytes(bytes), show_bytes(content_bytes));
    let file_system = line.file_system.unwrap_or("no known file system");
    ui.say(format!("    {bytes}, {content} of them not zeroes; {file_system}"))?;
    let (writes, requests) =
        (counted(unflushed_writes, "write"), counted(requests_in_flight as u64, "request"));
    ui.say(format!("    {writes} not flushed, {requests} in flight"))?;
    if let Some(LossLine { mode, loss }) = &line.power_loss {
        let text = match mode {
            Some(mode) => format!("after a power loss, {mode}: {}", show::loss_text(loss)),
            None => "after a power loss, which loses nothing".to_owned(),
        };
        ui.say(format!("    {text}"))?;
    }
    for check in line.checks {
        ui.say(printable(&format!("    {check}")))?;
    }
    Ok(())
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(index: usize, serial: &str, name: &str) -> NodeDisk {
        NodeDisk { index, serial: serial.to_owned(), name: name.to_owned(), is_root: name == "root" }
    }

    #[test]
    fn the_only_data_disk_is_the_default() {
        let all =
            [disk(0, "everett-root", "root"), disk(1, "everett-data0", "/a"), disk(2, "everett-data1", "/b")];
        let choose = |wanted: Option<&str>, count: usize| {
            chosen(wanted, all[..count].to_vec(), "n1")
                .map(|disk| disk.index)
                .map_err(|error| error.to_string())
        };
        assert_eq!(choose(None, 2), Ok(1));
        assert_eq!(choose(Some("/b"), 3), Ok(2));
        assert_eq!(choose(Some("everett-data0"), 3), Ok(1));
        assert_eq!(choose(Some("root"), 3), Ok(0));
        let all = "root (everett-root), /a (everett-data0), /b (everett-data1)";
        let several = format!("--disk: n1 has several data disks; its disks are {all}");
        assert_eq!(choose(None, 3), Err(several));
        let none = "--disk: n1 has no data disk; its disks are root (everett-root)";
        assert_eq!(choose(None, 1).unwrap_err(), none);
        let unknown = format!("--disk: n1 has no disk /c; its disks are {all}");
        assert_eq!(choose(Some("/c"), 3), Err(unknown));
        assert_eq!(choose(None, 0).unwrap_err(), "--disk: n1 has no data disk; its disks are none");
    }
}
