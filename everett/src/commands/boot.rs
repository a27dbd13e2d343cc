//! `everett boot`: runs one machine with its console on the terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use anyhow::{Context, bail};
use everett_cpu::CpuModel;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::text::Console;
use everett_input::units::{self, show_duration_ns};
use everett_protocol::{Exec, Exit};
use everett_session::images;
use everett_session::machines::engines::Engine;
use everett_session::output::show;
use everett_session::run::booted;
use everett_session::run::launch::Launcher;
use everett_session::world::event::{Event, StreamName, What};
use everett_session::world::timeline::{COMMAND, Timeline};
use everett_streams::{BootSeed, Seed};
use everett_vmm::boot::DEFAULT_CMDLINE;
use everett_vmm::machine::{End, MachineConfig, Stop, Until};
use everett_world_file::{Clock, Workload, World};
use serde::Serialize;

use super::engine_choice::EngineArgs;
use super::engine_options::{Hidden, engine_options};
use super::{Outcome, common};
use crate::features;
use crate::ui::{Ui, printable, style};

/// `everett boot`
#[derive(Debug, clap::Args)]
#[command(after_help = "COMMAND runs in the guest when the services are ready. Then the machine powers \
                        off. The exit status is 0 if COMMAND ends with status 0, else 1.")]
pub struct Args {
    /// The world file
    #[arg(required_unless_present = "kernel")]
    pub world: Option<PathBuf>,
    /// The node to boot, if the world has several
    #[arg(long, value_name = "NAME", requires = "world")]
    pub node: Option<String>,
    /// Boot this vmlinux or bzImage instead of the image's kernel
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Boot with this initramfs instead of the image's; without a world file, Everett contacts no agent in the guest
    #[arg(long, value_name = "FILE")]
    pub initramfs: Option<PathBuf>,
    /// Text added to the kernel's command line
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub cmdline: String,
    /// RAM of a machine without a world file, such as 256M
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes, conflicts_with = "world")]
    pub memory: Option<u64>,
    /// The seed
    #[arg(long, value_name = "N")]
    pub seed: Option<Seed>,
    /// Stop at this vtime; by default the guest runs until it powers off or you press Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub duration_ns: Option<u64>,
    /// Command to run in the guest before it powers off
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Options that set how the engine executes
    #[command(flatten)]
    pub hidden: Hidden,
}

/// Interval at which console and keyboard are polled, in nanoseconds of vtime.
const STEP_NS: u64 = 20_000_000;
/// Time that a guest has to power off after Ctrl-C, in nanoseconds of vtime.
const POWER_OFF_NS: u64 = 10_000_000_000;

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Record<'a> {
    Console { vtime_ns: u64, text: &'a str },
    End { vtime_ns: u64, instructions: u64, why: String, host_seconds: f64 },
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    match &args.world {
        Some(file) => boot_world(ui, args, file),
        None => boot_raw(ui, args),
    }
}

/// Boots a kernel without contacting an agent. An initramfs is optional.
fn boot_raw(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let Some(kernel) = &args.kernel else { bail!("name a world file, or a kernel with --kernel") };
    if !args.argv.is_empty() {
        bail!("COMMAND needs a world file: only images that Everett builds have the agent that runs it");
    }
    let engine = Engine::choose(args.engine.asked(), Clock::Insn, CpuModel::V2)?;
    let unpacked = images::unpack_kernel(kernel)?;
    let mut config = MachineConfig::new(unpacked.path());
    config.initramfs.clone_from(&args.initramfs);
    // In a world, the operator's seed takes effect at *ready*, when all services are up. A raw kernel has no services
    // and never reaches *ready*, so here the operator's seed becomes the seed of the boot.
    config.boot_seed = BootSeed::new(args.seed.unwrap_or_default().number());
    config.cmdline = format!("{DEFAULT_CMDLINE} {}", args.cmdline).trim_end().to_owned();
    if let Some(bytes) = args.memory {
        config.memory_bytes = bytes;
    }
    let mut machine = engine.options(engine_options(&args.hidden)?).machine(config)?;
    let interrupt = Interrupt::install()?;
    let mut terminal = Terminal::new(ui, true);
    let clock = Stopwatch::start();
    let last_ns = args.duration_ns.unwrap_or(u64::MAX);
    let end = loop {
        let next_ns = (machine.vtime() + STEP_NS).min(last_ns);
        let stop = machine.run(&Until::vtime(next_ns));
        for port in 0..everett_vmm::output::PORTS {
            machine.output().take_port(port);
        }
        machine.output().take_notes();
        terminal.console(machine.vtime(), &machine.output().take_console())?;
        if let Stop::End(end) = stop {
            break Some(end);
        }
        if machine.vtime() >= last_ns || interrupt.wanted() {
            break None;
        }
        let typed = terminal.typed();
        machine.console_input(&typed);
        pace(args, clock, machine.vtime(), &interrupt);
    };
    terminal.end(machine.vtime(), Clock::Insn, machine.icount(), end.as_ref(), clock)
}

fn boot_world(ui: &Ui, args: &Args, file: &Path) -> anyhow::Result<Outcome> {
    let mut world = common::load(file)?;
    let only = Some(pick_node(&world, args.node.as_deref())?);
    let engine = Engine::choose(args.engine.asked(), world.clock, world.cpu)?;
    let options = engine.options(engine_options(&args.hidden)?);
    world.workload = Workload::default();
    let seed = args.seed.or(world.seed).unwrap_or_default();
    let interrupt = Interrupt::install()?;
    let mut files = images::get(ui, &world, features::access(), &interrupt)?.files;
    let unpacked = args.kernel.as_deref().map(images::unpack_kernel).transpose()?;
    if let Some(kernel) = &unpacked {
        files.kernel = kernel.path().to_owned();
    }
    if let Some(initramfs) = &args.initramfs {
        files.initramfs = Some(initramfs.clone());
    }
    let launcher = Launcher { only, cmdline: args.cmdline.clone(), ..Launcher::new(world, files, options) };
    let mut timeline = launcher.start(seed)?;
    let with_command = !args.argv.is_empty();
    if with_command {
        timeline.command_when_ready(Exec::new(args.argv.clone()));
    }
    let mut terminal = Terminal::new(ui, !with_command);
    let clock = Stopwatch::start();
    let mut last_ns = args.duration_ns.unwrap_or(u64::MAX);
    let mut asked = false;
    let end = loop {
        let next_ns = (timeline.vtime() + STEP_NS).min(last_ns);
        let stop = timeline.run(&Until::vtime(next_ns));
        if let Some(refused) = timeline.refused_file() {
            return Err(booted::named(refused.into(), &launcher));
        }
        terminal.timeline(&mut timeline)?;
        if let Stop::End(end) = stop {
            break Some(end);
        }
        let now = timeline.vtime();
        if interrupt.wanted() && !asked {
            asked = true;
            last_ns = last_ns.min(now + POWER_OFF_NS);
            timeline.power_off();
        }
        if now >= last_ns {
            break None;
        }
        let typed = terminal.typed();
        timeline.machine_mut(0).console_input(&typed);
        if !asked {
            pace(args, clock, now, &interrupt);
        }
    };
    common::tell_bridged(ui, &timeline)?;
    common::warn_of_engine(ui, &engine)?;
    let machine = timeline.machine(0);
    let outcome =
        terminal.end(machine.vtime(), launcher.world.clock, machine.icount(), end.as_ref(), clock)?;
    match timeline.command_exit() {
        _ if timeline.findings() > 0 => Ok(Outcome::Found),
        Some(Exit::Code(0)) => Ok(Outcome::Fine),
        Some(_) => Ok(Outcome::Found),
        None if with_command => Err(anyhow::anyhow!("the machine ended before the command did")),
        None => Ok(outcome),
    }
}

fn pick_node(world: &World, name: Option<&str>) -> anyhow::Result<usize> {
    let file = world.file.display();
    match name {
        None if world.nodes.len() == 1 => Ok(0),
        None => bail!("{file}: node: the world has several nodes; choose one with --node NAME"),
        Some(name) => world.nodes.iter().position(|node| node.name == name).with_context(|| {
            let names: Vec<&str> = world.nodes.iter().map(|node| node.name.as_str()).collect();
            format!("{file}: node: no node is named \"{name}\"; the nodes are {}", names.join(", "))
        }),
    }
}

/// Waits until host time has caught up with vtime. Otherwise the vtime of an idle guest would run ahead of the
/// operator at the console. Does not wait if the operator gave `--for` or COMMAND.
fn pace(args: &Args, clock: Stopwatch, vtime_ns: u64, interrupt: &Interrupt) {
    if args.duration_ns.is_none() && args.argv.is_empty() {
        clock.wait_for_ns(vtime_ns, || interrupt.wanted());
    }
}

/// Everett's side of a guest's console.
struct Terminal<'a> {
    ui: &'a Ui,
    /// True to show the kernel's console and the services; false to show only the output of COMMAND.
    all: bool,
    keyboard: Option<Receiver<Vec<u8>>>,
    console: Console,
}

impl<'a> Terminal<'a> {
    fn new(ui: &'a Ui, all: bool) -> Terminal<'a> {
        let keyboard = (all && !ui.json && io::stdin().is_terminal()).then(|| {
            let (lines, keyboard) = channel();
            // Nobody joins this thread: it may wait forever for a typed line, and ends with the process.
            thread::spawn(move || {
                let mut stdin = io::stdin().lock();
                let mut line = Vec::new();
                while stdin.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                    if lines.send(std::mem::take(&mut line)).is_err() {
                        break;
                    }
                }
            });
            keyboard
        });
        Terminal { ui, all, keyboard, console: Console::default() }
    }

    /// Returns the next typed line, or an empty vector if there is none.
    fn typed(&mut self) -> Vec<u8> {
        match self.keyboard.as_ref().map(Receiver::try_recv) {
            Some(Ok(line)) => line,
            Some(Err(TryRecvError::Disconnected)) => {
                self.keyboard = None;
                Vec::new()
            }
            Some(Err(TryRecvError::Empty)) | None => Vec::new(),
        }
    }

    fn console(&mut self, vtime_ns: u64, bytes: &[u8]) -> anyhow::Result<()> {
        if bytes.is_empty() || !self.all {
            return Ok(());
        }
        if self.ui.json {
            let text = String::from_utf8_lossy(bytes);
            self.ui.record(&Record::Console { vtime_ns, text: &text })?;
        } else {
            self.ui.pass(&self.console.take(bytes))?;
        }
        Ok(())
    }

    fn timeline(&mut self, timeline: &mut Timeline) -> anyhow::Result<()> {
        let vtime_ns = timeline.vtime();
        let console = timeline.machine_mut(0).output().take_console();
        timeline.machine_mut(0).output().take_notes();
        self.console(vtime_ns, &console)?;
        for event in timeline.take_events() {
            self.event(&event)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        self.ui.record(event)?;
        match &event.what {
            What::Line { unit, stream, text, .. } if unit == COMMAND && !self.ui.json => match stream {
                StreamName::Stdout => writeln!(io::stdout(), "{}", printable(text))?,
                StreamName::Stderr => writeln!(io::stderr(), "{}", printable(text))?,
            },
            What::Exit { unit, success: true, .. } if unit == COMMAND => {}
            What::Finding { .. } => self.ui.say(show::line(event, false))?,
            What::Exit { success: false, .. } => self.ui.say(show::line(event, false))?,
            _ if self.all => self.ui.say(show::line(event, false))?,
            _ => {}
        }
        Ok(())
    }

    fn end(
        &mut self,
        vtime_ns: u64,
        of: Clock,
        instructions: u64,
        end: Option<&End>,
        clock: Stopwatch,
    ) -> anyhow::Result<Outcome> {
        let seconds = clock.seconds();
        let why = end.map_or_else(|| "stopped by Everett".to_owned(), ToString::to_string);
        if self.all {
            let (executed, at) = (common::executed(of, instructions, seconds), show_duration_ns(vtime_ns));
            let line = format!("everett: {why} at {at} of vtime; {executed}");
            self.ui.say(style::paint(style::FAINT, line))?;
        }
        self.ui.record(&Record::End { vtime_ns, instructions, why, host_seconds: seconds })?;
        let orderly = end.is_none_or(|end| *end == End::PowerOff);
        Ok(if orderly { Outcome::Fine } else { Outcome::Found })
    }
}
