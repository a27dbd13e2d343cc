//! Compares the kvm engine (the host's processor through `/dev/kvm`) with the soft engine (Everett's own CPU):
//! instructions per second in rings 0 and 3, exits per second, and restores of moments. Also measures the parts of an
//! exit and of a restore. From these parts `docs/design/engines.md` projects figures for other hosts.
//!
//! On a host that emulates `/dev/kvm` in software, ring 0 is slow and the figures for restores are not
//! representative. `everett doctor` shows the kind of host. Without `/dev/kvm` the bench measures nothing.
//!
//! `cargo bench -p benches --bench kvm [-- --json] [-- --runs N]`
#![allow(clippy::disallowed_types)] // Benches measure host time.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant as Stopwatch;

use benches::guest;
use benches::instant::Instant;
use benches::{Options, Report, Samples};
use clap::Parser;
use everett_cpu::CacheConfig;
use everett_cpu::Request;
use everett_host::doctor::kvm::guest::{Guest, RAM_BYTES, Ring};
use everett_input::causes::with_causes;
use everett_snapshot::Pool;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::kvm::{KvmEngine, Parts, Proved};
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use everett_vmm::kvm::{Host, Vcpu, Vm};
use everett_vmm::machine::Moment;
use everett_vmm::{ClockMode, Machine, MachineConfig, MachineError, ram};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Number of pages among which the guest picks each page to write. A power of two.
const PAGES: u64 = 1 << 15;
/// Number of restores in a round. The option `--runs` sets the number of rounds.
const RESTORES: usize = 50;
/// Number of repetitions in a round of each short measurement, e.g. of a port access.
const EXITS: u64 = 20_000;
/// Number of repetitions in a round of each longer measurement, e.g. of a TLB flush.
const RESETS: u64 = 200;
/// Memory of the virtual machine on which requests to KVM are measured, in bytes.
const PARTS_BYTES: usize = 512 << 20;
/// Number of instructions in one pass of the loop of [`Guest::spinning`].
const PER_ROUND: u64 = 2;
/// Minimum duration of a measurement of a loop, in seconds. A shorter measurement is repeated with more passes of the
/// loop.
const ENOUGH_S: f64 = 0.2;
const ROUNDS_FIRST: u64 = 100_000;
const ROUNDS_MAX: u64 = 10_000_000_000;

/// Host features that the bench assumes without a check. The processor delivers exceptions and system calls, so the
/// engine uses no workarounds for them. The engine neither counts branches nor keeps the TSC at a fixed value. After
/// Everett has replaced page tables, a TLB flush is enough for the guest to see them.
const SOUND: Proved = Proved { branches: None, tsc: false, system_calls: true, coherent: true };

/// Step of [`dirty`] on the kvm engine: number of exits between two checks whether the guest has written all pages.
const ONE_EXIT: u64 = 1;
/// Step of [`dirty`] on the soft engine: number of instructions between two checks whether the guest has written all
/// pages.
const SOME_INSTRUCTIONS: u64 = 100;

/// Code of the guest: executes OUT to a port without a device as many times as RCX says.
const ASKING: [u8; 7] = [
    0xe6, 0x80, // out 0x80, al
    0x48, 0xff, 0xc9, // dec rcx
    0x75, 0xf9, // jnz back
];

fn main() -> ExitCode {
    benches::end("kvm", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    let mut report = Report::new("kvm", options.json);
    let host = match Host::open() {
        Ok(host) => host,
        Err(error) => {
            report.note(&format!("nothing is measured: {}", with_causes(&error)));
            return Ok(());
        }
    };
    let on_kvm = |memory: &Arc<GuestMemoryMmap>| {
        KvmEngine::new(&host, Arc::clone(memory), SOUND).map_err(|error| with_causes(&error))
    };
    let on_soft =
        |memory: &Arc<GuestMemoryMmap>| Ok(SoftEngine::new(Arc::clone(memory), CacheConfig::default()));
    for (ring, name) in [(Ring::Zero, "ring0_mips"), (Ring::Three, "ring3_mips")] {
        let [mut kvm, mut soft] = [const { Vec::new() }; 2].map(Samples::from);
        for round in 1..=options.runs {
            report.note(&format!("{name}, round {round} of {}", options.runs));
            kvm.push(mips(ring, on_kvm)?);
            soft.push(mips(ring, on_soft)?);
        }
        report.figure(name, "MIPS", &kvm, Some(("soft", &soft)));
        report.figure(&format!("soft_{name}"), "MIPS", &soft, None);
    }
    let [mut kvm, mut soft] = [const { Vec::new() }; 2].map(Samples::from);
    for _ in 1..=options.runs {
        kvm.push(exits_per_s(on_kvm)?);
        soft.push(exits_per_s(on_soft)?);
    }
    report.figure("exits_per_s", "1/s", &kvm, Some(("soft", &soft)));
    report.figure("soft_exits_per_s", "1/s", &soft, None);
    parts(&mut report, options, &host)?;
    restores(&mut report, options, &host)?;
    report.print();
    Ok(())
}

/// Creates an engine that is ready to run a guest.
fn ready<E: Engine>(
    guest: &Guest,
    engine: impl Fn(&Arc<GuestMemoryMmap>) -> Result<E, String>,
) -> Result<E, String> {
    let memory =
        GuestMemoryMmap::from_ranges(&[(GuestAddress(0), RAM_BYTES)]).map_err(|e| with_causes(&e))?;
    memory.write_slice(&guest.memory(), GuestAddress(0)).map_err(|e| with_causes(&e))?;
    let mut engine = engine(&Arc::new(memory))?;
    engine.set_state(&guest.registers());
    Ok(engine)
}

/// Runs a guest up to its HLT. Returns seconds and the number of port writes.
fn to_its_end(engine: &mut impl Engine) -> Result<(f64, u64), String> {
    let (start, mut asked) = (Stopwatch::now(), 0);
    loop {
        match engine.run(Until { icount: u64::MAX, ..Until::default() }) {
            Exit::Halt => return Ok((start.elapsed().as_secs_f64(), asked)),
            Exit::Device(Request::PioWrite { .. }) => asked += 1,
            other => return Err(format!("the guest ended with {other:?}")),
        }
    }
}

/// Returns the speed of a loop, in millions of instructions per second.
fn mips<E: Engine>(
    ring: Ring,
    engine: impl Fn(&Arc<GuestMemoryMmap>) -> Result<E, String>,
) -> Result<f64, String> {
    let mut rounds = ROUNDS_FIRST;
    loop {
        let mut engine = ready(&Guest::spinning("spinning", ring, rounds), &engine)?;
        let (seconds, _) = to_its_end(&mut engine)?;
        if seconds >= ENOUGH_S || rounds >= ROUNDS_MAX {
            return Ok((rounds * PER_ROUND) as f64 / 1e6 / seconds);
        }
        rounds *= 4;
    }
}

fn exits_per_s<E: Engine>(
    engine: impl Fn(&Arc<GuestMemoryMmap>) -> Result<E, String>,
) -> Result<f64, String> {
    let guest = Guest { rcx: EXITS, ..Guest::new("asking", Ring::Zero, &ASKING) };
    let (seconds, asked) = to_its_end(&mut ready(&guest, engine)?)?;
    if asked != EXITS {
        return Err(format!("the guest wrote to the port {asked} times instead of {EXITS}"));
    }
    Ok(asked as f64 / seconds)
}

/// Measures each request to KVM that an exit or a restore needs, and the engine's own work at an exit.
fn parts(report: &mut Report, options: &Options, host: &Host) -> Result<(), String> {
    let names = ["engine", "engine_and_soft_cpu", "run", "registers", "flush", "remove", "dirty_log"];
    let mut figures = names.map(|name| (name, Samples::default()));
    let guest = Guest::spinning("parts", Ring::Zero, 1);
    for _ in 1..=options.runs {
        let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), PARTS_BYTES)]);
        let memory = Arc::new(memory.map_err(|e| with_causes(&e))?);
        memory.write_slice(&guest.memory(), GuestAddress(0)).map_err(|e| with_causes(&e))?;
        let registers = guest.registers();
        let engine = |bridged| {
            let processor = Box::new(Instant::new(registers.clone(), bridged));
            KvmEngine::from_parts(Parts { processor, counting: None, tsc: None }, Arc::clone(&memory))
                .map_err(|e| with_causes(&e))
        };
        let exit = |engine: &mut KvmEngine| match engine.run(Until { icount: u64::MAX, ..Until::default() }) {
            Exit::Device(_) => Ok(()),
            other => Err(format!("the engine ended with {other:?}")),
        };
        let (mut plain, mut bridged) = (engine(false)?, engine(true)?);
        let vm = Arc::new(Vm::new(host, Arc::clone(&memory)).map_err(|e| with_causes(&e))?);
        let mut vcpu = Vcpu::new(&vm, registers.msrs.apic_base).map_err(|e| with_causes(&e))?;
        vcpu.load(&registers).map_err(|e| with_causes(&e))?;
        let ns = [
            each_ns(EXITS, |_| exit(&mut plain))?,
            each_ns(RESETS, |_| exit(&mut bridged))?,
            each_ns(EXITS, |_| vcpu.finish().map(drop).map_err(|e| with_causes(&e)))?,
            each_ns(EXITS, |n| {
                // The previous measurement left the registers in the page that KVM shares with Everett, where
                // `save_place` would read them without a request. `load` invalidates that page, and only an entry into
                // the guest fills it again. So each `save_place` makes its requests.
                if n == 0 {
                    vcpu.load(&registers).map_err(|e| with_causes(&e))?;
                }
                vcpu.save_place().map(drop).map_err(|e| with_causes(&e))
            })?,
            each_ns(RESETS, |_| vcpu.flush_translations().map_err(|e| with_causes(&e)))?,
            each_ns(RESETS, |_| vm.forget_memory().map_err(|e| with_causes(&e)))?,
            each_ns(RESETS, |_| vm.take_dirty_pages().map(drop).map_err(|e| with_causes(&e)))?,
        ];
        for ((_, samples), ns) in figures.iter_mut().zip(ns) {
            samples.push(ns / 1000.0);
        }
    }
    for (name, samples) in &figures {
        report.figure(&format!("{name}_us"), "us", samples, None);
    }
    Ok(())
}

/// Returns the mean duration of a step, in nanoseconds.
fn each_ns(times: u64, mut step: impl FnMut(u64) -> Result<(), String>) -> Result<f64, String> {
    let start = Stopwatch::now();
    (0..times).try_for_each(&mut step)?;
    Ok(start.elapsed().as_nanos() as f64 / times as f64)
}

/// Measures how long a machine takes to return to an earlier moment of its own, for several numbers of dirty pages.
fn restores(report: &mut Report, options: &Options, host: &Host) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| with_causes(&error))?;
    let kernel = guest::kernel_in_batches(folder.path(), PAGES)?;
    let pool = Pool::default();
    let on_kvm = |ram: &ram::Ram| Ok(KvmEngine::new(host, ram.shared(), SOUND)?);
    let on_soft = |ram: &ram::Ram| Ok(SoftEngine::new(ram.shared(), CacheConfig::default()));
    let in_exits = MachineConfig { clock: ClockMode::Exit, ..guest::config(&kernel) };
    let (mut kvm, kvm_root) = machine(in_exits, &pool, on_kvm, ONE_EXIT)?;
    let (mut soft, soft_root) = machine(guest::config(&kernel), &pool, on_soft, SOME_INSTRUCTIONS)?;
    for pages in [100, 1000] {
        let [mut on_kvm, mut on_soft] = [const { Vec::new() }; 2].map(Samples::from);
        for round in 1..=options.runs {
            report.note(&format!("{pages} dirty pages, round {round} of {}", options.runs));
            on_kvm.push(restored_us(&mut kvm, &kvm_root, pages, ONE_EXIT)?);
            on_soft.push(restored_us(&mut soft, &soft_root, pages, SOME_INSTRUCTIONS)?);
        }
        let name = format!("restore_{pages}_us");
        report.figure(&name, "us", &on_kvm, Some(("soft", &on_soft)));
        report.figure(&format!("soft_{name}"), "us", &on_soft, None);
    }
    Ok(())
}

/// Creates a machine and lets its guest write one batch of [`PAGES`] pages. Returns the machine and its moment after
/// that batch.
fn machine<E: Into<AnyEngine>>(
    config: MachineConfig,
    pool: &Pool,
    engine: impl FnOnce(&ram::Ram) -> Result<E, MachineError>,
    step: u64,
) -> Result<(Machine, Moment), String> {
    let mut machine = Machine::new(config, engine).map_err(|error| with_causes(&error))?;
    dirty(&mut machine, PAGES, step)?;
    let moment = machine.moment(pool);
    Ok((machine, moment))
}

/// Lets the guest write a batch of `pages` random pages. A port access ends the batch, but does not stop the machine.
/// So the machine runs in slices of `step` exits or instructions, and the accesses are counted after each slice.
fn dirty(machine: &mut Machine, pages: u64, step: u64) -> Result<(), String> {
    let mut cpu = machine.cpu();
    cpu.gpr[1] = pages;
    machine.engine_mut().set_state(&cpu);
    let before = machine.stats().pio;
    while machine.stats().pio == before {
        let stop = machine.run(&everett_vmm::Until::icount(machine.icount() + step));
        if let everett_vmm::Stop::End(end) = stop {
            return Err(format!("the guest ended: {end}"));
        }
    }
    Ok(())
}

/// Returns the median duration of a restore, in microseconds.
fn restored_us(machine: &mut Machine, root: &Moment, pages: u64, step: u64) -> Result<f64, String> {
    let once = |_| -> Result<f64, String> {
        dirty(machine, pages, step)?;
        let start = Stopwatch::now();
        machine.restore(root).map_err(|error| with_causes(&error))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let samples: Result<Vec<f64>, String> = (0..RESTORES).map(once).collect();
    Ok(Samples::from(samples?).median() * 1e6)
}
