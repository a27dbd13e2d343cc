//! Measures user code in a stock Debian guest: SHA-256, SQLite, and Redis under load. Compares the soft engine
//! (Everett's own CPU) with and without translation, QEMU's TCG with `-icount`, and plain TCG. All use the same kernel,
//! initramfs, root file system and programs.
//!
//! `cargo bench -p benches --bench guest [-- --json] [-- --runs N]`
#![allow(clippy::disallowed_types)] // Benches measure host time.

use benches::debian::{Debian, MEMORY_MIB, WORKLOADS};
use benches::marks::{Marks, Span};
use benches::{Options, Report, Samples, peer};
use clap::Parser;
use everett_cpu::CacheConfig;
use everett_input::causes::with_causes;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::{Machine, Stop, Until};
use std::process::ExitCode;
use std::time::Instant;

/// Maximum vtime of a guest, in nanoseconds. Every guest needs less.
const VTIME_MAX_NS: u64 = 600_000_000_000;
/// Interval between two checks of the console, in nanoseconds of vtime.
const LOOK_NS: u64 = 1_000_000;

fn main() -> ExitCode {
    benches::end("guest", run(&Options::parse()))
}

/// Samples of one workload.
#[derive(Default)]
struct Work {
    soft: Samples,
    interpreted: Samples,
    icount: Samples,
    tcg: Samples,
    /// Time on the soft engine divided by the time on plain TCG in the same round.
    soft_to_tcg: Samples,
    mips: Samples,
    instructions: Samples,
}

impl Work {
    /// Adds a measurement of the soft engine with translation.
    fn ours(&mut self, span: &Span<Reading>) {
        let (seconds, count) = (seconds(span), span.end.instructions - span.begin.instructions);
        self.soft.push(seconds);
        self.mips.push(count as f64 / seconds / 1e6);
        self.instructions.push(count as f64);
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut report = Report::new("guest", options.json);
    let guest = Debian::of_user()?;
    let with_qemu = peer::has_qemu("guest");
    report.note(&format!("{MEMORY_MIB} MiB, command line: {}", Debian::cmdline()));
    let mut works = WORKLOADS.map(|_| Work::default());
    for round in 1..=options.runs {
        report.note(&format!("round {round} of {}", options.runs));
        let interpreter = CacheConfig { translate_after: None, ..CacheConfig::default() };
        let interpreted = soft(&guest, interpreter)?;
        let translated = soft(&guest, CacheConfig::default())?;
        check(&translated, &interpreted)?;
        for ((work, interpreted), translated) in works.iter_mut().zip(&interpreted).zip(&translated) {
            work.interpreted.push(seconds(interpreted));
            work.ours(translated);
        }
        if with_qemu {
            let icount = ["-accel", "tcg", "-icount", "shift=0,sleep=off"];
            let icount = peer::spans(&mut guest.qemu(&icount))?;
            check(&translated, &icount)?;
            let tcg = peer::spans(&mut guest.qemu(&["-accel", "tcg"]))?;
            check(&translated, &tcg)?;
            for (((work, ours), icount), tcg) in works.iter_mut().zip(&translated).zip(&icount).zip(&tcg) {
                work.icount.push(icount.end - icount.begin);
                work.tcg.push(tcg.end - tcg.begin);
                work.soft_to_tcg.push(seconds(ours) / (tcg.end - tcg.begin));
            }
        }
    }
    for (name, work) in WORKLOADS.iter().zip(&works) {
        let peer = format!("{name}_icount_s");
        let peer = Some((peer.as_str(), &work.icount));
        report.figure(&format!("{name}_soft_s"), "s", &work.soft, peer);
        report.figure(&format!("{name}_interpreted_s"), "s", &work.interpreted, peer);
        report.figure(&format!("{name}_icount_s"), "s", &work.icount, None);
        report.figure(&format!("{name}_tcg_s"), "s", &work.tcg, peer);
        report.figure(&format!("{name}_soft_to_tcg"), "x", &work.soft_to_tcg, None);
        report.figure(&format!("{name}_soft_mips"), "MIPS", &work.mips, None);
        report.figure(&format!("{name}_soft_instructions"), "", &work.instructions, None);
    }
    report.print();
    Ok(())
}

/// Checks that a guest ran all workloads, with the same results as another guest.
///
/// # Errors
/// Returns a one-line message if a workload is missing or a result differs.
fn check<T, U>(one: &[Span<T>], other: &[Span<U>]) -> Result<(), String> {
    if !one.iter().map(|span| span.name.as_str()).eq(WORKLOADS) {
        return Err(String::from("the guest did not run the expected workloads"));
    }
    for span in one {
        let there = other.iter().find(|other| other.name == span.name).map(|other| other.result.as_str());
        if there != Some(span.result.as_str()) {
            return Err(format!(
                "{}: the result is {:?} in one guest and {there:?} in another",
                span.name, span.result
            ));
        }
    }
    Ok(())
}

/// Values read from the soft machine when the guest prints a mark, i.e. the line that begins or ends a workload.
#[derive(Clone, Copy)]
struct Reading {
    seconds: f64,
    instructions: u64,
}

/// Returns the host time that a workload took on the soft machine, in seconds.
fn seconds(span: &Span<Reading>) -> f64 {
    span.end.seconds - span.begin.seconds
}

/// Boots the soft machine and runs all workloads in it.
fn soft(guest: &Debian, caches: CacheConfig) -> Result<Vec<Span<Reading>>, String> {
    let start = Instant::now();
    let mut machine = Machine::new(guest.config()?, |ram| Ok(SoftEngine::new(ram.shared(), caches)))
        .map_err(|error| with_causes(&error))?;
    let mut marks = Marks::default();
    loop {
        let stop = machine.run(&Until::vtime(machine.vtime() + LOOK_NS));
        let now = Reading { seconds: start.elapsed().as_secs_f64(), instructions: machine.icount() };
        if marks.hear(&machine.output().take_console(), now)? {
            return Ok(marks.into_spans());
        }
        if let Stop::End(end) = stop {
            return Err(format!("the guest ended before it was done: {end}"));
        }
        if machine.vtime() > VTIME_MAX_NS {
            return Err(String::from("the guest takes too long"));
        }
    }
}
