//! Boot a kernel on the soft engine: the console goes to the terminal, figures to stderr at the end.
//!
//! `cargo run --release -p everett-vmm --example boot -- KERNEL [--initramfs FILE] [--append TEXT] [--memory MIB]
//! [--disk FILE[:SERIAL]] [--for SECONDS] [--until TEXT] [--seed N] [--card] [--trail]`
#![allow(clippy::disallowed_types)] // Host time for the figures only.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use everett_cpu::CacheConfig;
use everett_vmm::Trail;
use everett_vmm::disk::Disk;
use everett_vmm::machine::output::NoteEvent;
use everett_vmm::machine::{CardConfig, DiskConfig, Machine, MachineConfig, Stop, Until};
use everett_vmm::virtio::blk::Latency;
use everett_vmm::virtio::console::{PORT_NAMES, PORTS};
use everett_vmm::virtio::net::Wire;

struct Options {
    config: MachineConfig,
    vtime: u64,
    until: Option<Vec<u8>>,
    trail: bool,
}

fn options() -> Result<Options, String> {
    let mut args = std::env::args().skip(1);
    let kernel = args.next().ok_or("usage: boot KERNEL [options]")?;
    let mut options =
        Options { config: MachineConfig::new(kernel), vtime: 60_000_000_000, until: None, trail: false };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match arg.as_str() {
            "--initramfs" => options.config.initramfs = Some(PathBuf::from(value()?)),
            "--append" => options.config.cmdline = format!("{} {}", options.config.cmdline, value()?),
            "--memory" => options.config.memory_bytes = number(value()?)? << 20,
            "--for" => options.vtime = number(value()?)? * 1_000_000_000,
            "--seed" => options.config.seed = number(value()?)?,
            "--until" => options.until = Some(value()?.into_bytes()),
            "--card" => {
                options.config.cards.push(CardConfig { mac: [2, 0, 0, 0, 0, 1], wire: Wire::Unplugged });
            }
            "--trail" => options.trail = true,
            "--disk" => {
                let text = value()?;
                let (path, serial) = text.split_once(':').unwrap_or((&text, "everett-root"));
                options.config.disks.push(DiskConfig {
                    disk: Disk::open(Path::new(path), None).map_err(|e| e.to_string())?,
                    serial: serial.into(),
                    read_only: true,
                    latency: Latency::default(),
                });
            }
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(options)
}

fn main() -> Result<(), String> {
    let Options { config, vtime, until, trail: keep_trail } = options()?;
    let mut machine = Machine::soft(config, CacheConfig::default()).map_err(|error| chain(&error))?;
    let start = Instant::now();
    let mut trail = Trail::new(100_000_000);
    let mut said = Vec::new();
    let stop = loop {
        let slice = Until::vtime(vtime.min(machine.vtime() + 10_000_000));
        let stop = if keep_trail { trail.run(&mut machine, &slice) } else { machine.run(&slice) };
        let console = machine.output().take_console();
        let mut out = std::io::stdout().lock();
        // A closed terminal is no reason to stop counting.
        let _ = out.write_all(&console).and_then(|()| out.flush());
        said.extend(console);
        let found = until.as_ref().is_some_and(|text| said.windows(text.len()).any(|w| w == text.as_slice()));
        for note in machine.output().take_notes() {
            if !matches!(note.event, NoteEvent::Console { .. }) {
                eprintln!("note at {} ns: {:x?}", note.vtime, note.event);
            }
        }
        for (port, name) in PORT_NAMES.iter().enumerate().take(PORTS) {
            for write in machine.output().take_port(port) {
                eprintln!("{name} at {} ns: {}", write.vtime, String::from_utf8_lossy(&write.bytes));
            }
        }
        if matches!(stop, Stop::End(_)) || machine.vtime() >= vtime || found {
            break stop;
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let cpu = machine.cpu();
    eprintln!("\n{stop:?} at vtime {:.6} s, rip {:#x}", machine.vtime() as f64 / 1e9, cpu.rip);
    eprintln!(
        "{} instructions in {seconds:.3} s: {:.1} MIPS; {:?}",
        machine.icount(),
        machine.icount() as f64 / seconds / 1e6,
        machine.stats()
    );
    eprintln!("digest {}", machine.digest());
    if keep_trail {
        eprintln!("trail {} of {} points", trail.digest(), trail.points().len());
    }
    Ok(())
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
