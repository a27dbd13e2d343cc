//! Measures user code in a stock Debian guest: SHA-256, SQLite, Redis under load, CPython, PostgreSQL, H2 on a JVM, and
//! Node.js. Compares the soft engine (Everett's own CPU) with and without translation, QEMU's TCG with `-icount`, and
//! plain TCG. All use the same kernel, initramfs, root file system and programs. A native run executes the same programs
//! on the host, on one CPU.
//!
//! `cargo bench -p benches --bench guest [-- --json] [-- --runs N] [-- --only NAME]… [-- --without RUNNER]…`
//!
//! `--only` chooses a workload. `--without` leaves out a runner (a peer, or Everett without translation).
#![allow(clippy::disallowed_types)] // Benches measure host time.

use benches::debian::native::Native;
use benches::debian::workloads::{self, Workload};
use benches::debian::{Debian, MEMORY_MIB};
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

#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    options: Options,
    /// Run only this workload. Can be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave out this runner. Can be given more than once
    #[arg(long, value_name = "RUNNER")]
    without: Vec<Runner>,
}

/// Something else that runs the workloads, and with which the soft engine with translation is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Runner {
    /// Soft engine without translation.
    Interpreted,
    /// QEMU's TCG with a count of instructions.
    Icount,
    /// QEMU's TCG.
    Tcg,
    /// The host, without a guest.
    Native,
}

impl Runner {
    const ALL: [Runner; 4] = [Runner::Interpreted, Runner::Icount, Runner::Tcg, Runner::Native];

    fn name(self) -> &'static str {
        match self {
            Runner::Interpreted => "interpreted",
            Runner::Icount => "icount",
            Runner::Tcg => "tcg",
            Runner::Native => "native",
        }
    }

    fn needs_qemu(self) -> bool {
        matches!(self, Runner::Icount | Runner::Tcg)
    }
}

/// The guest, on any runner.
struct Bench {
    guest: Debian,
    /// The guest's root file system on the host. `None` without native runs.
    native: Option<Native>,
}

impl Bench {
    /// Runs all workloads. The clock of the spans is in seconds.
    fn spans(&self, runner: Runner) -> Result<Vec<Span<f64>>, String> {
        let icount = ["-accel", "tcg", "-icount", "shift=0,sleep=off"];
        match (runner, &self.native) {
            (Runner::Interpreted, _) => {
                let interpreter = CacheConfig { translate_after: None, ..CacheConfig::default() };
                let spans = soft(&self.guest, interpreter)?;
                Ok(spans.into_iter().map(|span| span.map(|reading| reading.seconds)).collect())
            }
            (Runner::Icount, _) => peer::spans(&mut self.guest.qemu(&icount)),
            (Runner::Tcg, _) => peer::spans(&mut self.guest.qemu(&["-accel", "tcg"])),
            (Runner::Native, Some(native)) => peer::spans(&mut native.command()),
            (Runner::Native, None) => Err(String::from("there are no native runs")),
        }
    }
}

fn main() -> ExitCode {
    benches::end("guest", run(&Args::parse()))
}

/// Samples of one part of a workload.
#[derive(Default)]
struct Part {
    name: &'static str,
    soft: Samples,
    mips: Samples,
    instructions: Samples,
    others: Vec<Other>,
}

/// Samples of one part on another runner.
struct Other {
    runner: Runner,
    seconds: Samples,
    /// Time on the soft engine divided by the time on this runner in the same round.
    ratio: Samples,
}

impl Part {
    fn new(name: &'static str, runners: &[Runner]) -> Part {
        let other =
            |&runner: &Runner| Other { runner, seconds: Samples::default(), ratio: Samples::default() };
        Part { name, others: runners.iter().map(other).collect(), ..Part::default() }
    }

    /// Adds the measurements of a round. `others` has a span for each of the other runners, in their order.
    fn add<'s>(&mut self, ours: &Span<Reading>, others: impl Iterator<Item = &'s Span<f64>>) {
        let seconds = ours.end.seconds - ours.begin.seconds;
        let count = ours.end.instructions - ours.begin.instructions;
        self.soft.push(seconds);
        self.mips.push(count as f64 / seconds / 1e6);
        self.instructions.push(count as f64);
        for (other, theirs) in self.others.iter_mut().zip(others) {
            other.seconds.push(theirs.end - theirs.begin);
            other.ratio.push(seconds / (theirs.end - theirs.begin));
        }
    }

    fn report(&self, report: &mut Report) {
        let name = self.name;
        report.figure(&format!("{name}_soft_s"), "s", &self.soft, None);
        for Other { runner, seconds, .. } in &self.others {
            report.figure(&format!("{name}_{}_s", runner.name()), "s", seconds, None);
        }
        for Other { runner, ratio, .. } in &self.others {
            report.figure(&format!("{name}_soft_to_{}", runner.name()), "x", ratio, None);
        }
        report.figure(&format!("{name}_soft_mips"), "MIPS", &self.mips, None);
        report.figure(&format!("{name}_soft_instructions"), "", &self.instructions, None);
    }
}

fn run(args: &Args) -> Result<(), String> {
    let mut report = Report::new("guest", args.options.json);
    let chosen = workloads::chosen(&args.only)?;
    let guest = Debian::of_user(&chosen)?;
    let mut runners: Vec<_> =
        Runner::ALL.into_iter().filter(|runner| !args.without.contains(runner)).collect();
    if runners.iter().any(|runner| runner.needs_qemu()) && !peer::has_qemu("guest") {
        runners.retain(|runner| !runner.needs_qemu());
    }
    let mut bench = Bench { guest, native: None };
    if runners.contains(&Runner::Native) {
        match bench.guest.native() {
            Ok(native) => bench.native = Some(native),
            Err(error) => {
                eprintln!("guest: no native runs on this host: {error}");
                runners.retain(|&runner| runner != Runner::Native);
            }
        }
    }
    report.note(&format!("{MEMORY_MIB} MiB, command line: {}", Debian::cmdline()));
    let names = chosen.iter().flat_map(|workload| workload.parts);
    let mut parts: Vec<_> = names.map(|name| Part::new(name, &runners)).collect();
    for round in 1..=args.options.runs {
        report.note(&format!("round {round} of {}", args.options.runs));
        let ours = soft(&bench.guest, CacheConfig::default())?;
        check(&chosen, &ours, &ours)?;
        let mut others = Vec::new();
        for &runner in &runners {
            let theirs = bench.spans(runner)?;
            check(&chosen, &ours, &theirs).map_err(|error| format!("{}: {error}", runner.name()))?;
            others.push(theirs);
        }
        for (place, (part, ours)) in parts.iter_mut().zip(&ours).enumerate() {
            part.add(ours, others.iter().map(|spans| &spans[place]));
        }
    }
    parts.iter().for_each(|part| part.report(&mut report));
    report.print();
    if !runners.is_empty() {
        report.note(&ratios(&parts, &runners));
    }
    Ok(())
}

/// Returns a table of the ratios in Markdown: a row for each part, a column for each runner.
fn ratios(parts: &[Part], runners: &[Runner]) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let heads = runners.iter().map(|runner| format!("Everett / {}", runner.name()));
    let mut table = String::from("\n") + &row(std::iter::once(String::from("work")).chain(heads).collect());
    table += &row(vec![String::from("---"); runners.len() + 1]);
    for part in parts {
        let cells = part.others.iter().map(|other| other.ratio.with_range());
        table += &row(std::iter::once(part.name.to_owned()).chain(cells).collect());
    }
    table.truncate(table.trim_end().len());
    table
}

/// Checks that a runner ran all parts of the chosen workloads, with the same results as the soft engine.
///
/// # Errors
/// Returns a one-line message if a part is missing or a result differs.
fn check<T>(chosen: &[&Workload], ours: &[Span<Reading>], theirs: &[Span<T>]) -> Result<(), String> {
    let expected = chosen.iter().flat_map(|workload| workload.parts).copied();
    if !theirs.iter().map(|span| span.name.as_str()).eq(expected) {
        return Err(String::from("not the expected workloads ran"));
    }
    for (ours, theirs) in ours.iter().zip(theirs) {
        if ours.result != theirs.result {
            let (name, here, there) = (&ours.name, &ours.result, &theirs.result);
            return Err(format!("the result of {name} is {there:?}, and {here:?} on the soft engine"));
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
