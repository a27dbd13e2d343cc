//! Measures the boot of a kernel and initramfs up to the first line of the agent, which is Everett's program in guests.
//! Compares the soft engine (Everett's own CPU), QEMU's TCG with `-icount`, and plain TCG.
//!
//! `cargo bench -p benches --bench boot [-- --json] [-- --runs N]`
#![allow(clippy::disallowed_types)] // Benches measure host time.

use benches::{Options, Report, Samples, peer};
use clap::Parser;
use everett_cpu::CacheConfig;
use everett_guest_image::configure::NoMachine;
use everett_guest_image::{Cache, ImageSpec, RootSource, Silent, build};
use everett_input::causes::with_causes;
use everett_remote_client::Online;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::{Machine, MachineConfig, Stop, Until, boot};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Beginning of the agent's first line on the console.
const FIRST_LINE: &str = "everett-agent:";
/// Guest memory on all engines, in MiB.
const MEMORY_MIB: u64 = 256;
/// Maximum vtime of a boot, in nanoseconds. Every boot needs less.
const VTIME_MAX_NS: u64 = 60_000_000_000;
/// Interval between two checks of the console, in nanoseconds of vtime.
const LOOK_NS: u64 = 1_000_000;

fn main() -> ExitCode {
    benches::end("boot", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    let mut report = Report::new("boot", options.json);
    let mut spec = ImageSpec::of_packages("bookworm", Vec::new(), everett_host::time::unix_s());
    spec.root = RootSource::None;
    let cache = Cache::of_user().map_err(|error| with_causes(&error))?;
    let image =
        build(&spec, &cache, &Online, &mut NoMachine, &mut Silent).map_err(|error| with_causes(&error))?;
    let (kernel, initramfs) = (image.vmlinux.path.as_path(), image.initramfs.path.as_path());

    let with_qemu = peer::has_qemu("boot");
    report.note(&format!("command line: {}", boot::DEFAULT_CMDLINE));
    let [mut soft, mut interpreted, mut mips, mut instructions, mut icount, mut tcg] =
        [const { Vec::new() }; 6].map(Samples::from);
    for round in 1..=options.runs {
        report.note(&format!("round {round} of {}", options.runs));
        let interpreter = CacheConfig { translate_after: None, ..CacheConfig::default() };
        interpreted.push(boot_soft(kernel, initramfs, interpreter)?.0);
        let (seconds, count) = boot_soft(kernel, initramfs, CacheConfig::default())?;
        soft.push(seconds);
        mips.push(count as f64 / seconds / 1e6);
        instructions.push(count as f64);
        if with_qemu {
            icount.push(boot_qemu(&["-accel", "tcg", "-icount", "shift=0,sleep=off"], kernel, initramfs)?);
            tcg.push(boot_qemu(&["-accel", "tcg"], kernel, initramfs)?);
        }
    }
    report.figure("boot_soft_s", "s", &soft, Some(("boot_icount_s", &icount)));
    report.figure("boot_interpreted_s", "s", &interpreted, Some(("boot_icount_s", &icount)));
    report.figure("boot_icount_s", "s", &icount, None);
    report.figure("boot_tcg_s", "s", &tcg, Some(("boot_icount_s", &icount)));
    report.figure("boot_soft_mips", "MIPS", &mips, None);
    report.figure("boot_soft_instructions", "", &instructions, None);
    report.print();
    Ok(())
}

/// Boots on the soft engine. Returns seconds and the number of guest instructions.
fn boot_soft(kernel: &Path, initramfs: &Path, caches: CacheConfig) -> Result<(f64, u64), String> {
    let start = Instant::now();
    let mut config = MachineConfig::new(kernel);
    config.initramfs = Some(initramfs.to_path_buf());
    config.memory_bytes = MEMORY_MIB << 20;
    let mut machine = Machine::new(config, |ram| Ok(SoftEngine::new(ram.shared(), caches)))
        .map_err(|error| with_causes(&error))?;
    let mut said = Vec::new();
    loop {
        let stop = machine.run(&Until::vtime(machine.vtime() + LOOK_NS));
        said.extend(machine.output().take_console());
        if said.windows(FIRST_LINE.len()).any(|window| window == FIRST_LINE.as_bytes()) {
            return Ok((start.elapsed().as_secs_f64(), machine.icount()));
        }
        if let Stop::End(end) = stop {
            return Err(format!("the guest ended before its agent's first line: {end}"));
        }
        if machine.vtime() > VTIME_MAX_NS {
            return Err(String::from("the guest's agent said nothing"));
        }
    }
}

fn boot_qemu(acceleration: &[&str], kernel: &Path, initramfs: &Path) -> Result<f64, String> {
    let mut qemu = peer::qemu(acceleration, MEMORY_MIB, kernel, initramfs, boot::DEFAULT_CMDLINE);
    peer::seconds_until(&mut qemu, FIRST_LINE)
}
