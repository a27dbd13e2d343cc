//! What moments cost: going back, taking, branching in another worker, keeping many.
//!
//! A guest of 256 MiB, all of it written once, dirties N uniformly random pages and is brought back, device state and
//! caches included. Beside it, in the same run: QEMU's `loadvm` of a guest of that size, and a bare memcpy of the pages.
//!
//! `cargo bench -p benches --bench moments [-- --json] [-- --runs N]`
#![allow(clippy::disallowed_types)] // Measuring host time is what benches are for.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use benches::guest::{self, INSTRUCTIONS_A_PAGE};
use benches::host::{CacheEvictor, resident_bytes};
use benches::{Options, Report, Samples, peer};
use clap::Parser;
use everett_cpu::CacheConfig;
use everett_snapshot::{Base, BaseFile, Image, PageBytes, Pool};
use everett_vmm::engine::Engine;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::Moment;
use everett_vmm::{Machine, Until};

/// Pages that the guest dirties: a power of two, so that a mask draws one.
const PAGES: u64 = 1 << 15;
/// Restores in a round.
const RESTORES: usize = 200;
/// Cold ones: each costs a walk through the host's caches.
const COLD_RESTORES: usize = 20;
/// Moments that workers go to.
const BRANCHES: u64 = 16;
/// Moments that are kept at a time.
const KEPT: usize = 10_000;
/// Branches that come and go.
const CYCLES: usize = 100_000;

type Worker = Machine<SoftEngine>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("moments: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut report = Report::new("moments", options.json);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let kernel = guest::kernel(folder.path(), PAGES)?;
    let pool = Pool::default();
    let root = root(&kernel, folder.path(), &pool)?;
    let mut worker = start(&kernel, &root)?;
    let mut evictor = CacheEvictor::default();

    for pages in [100, 1000] {
        let [mut hot, mut cold, mut copy, mut take] = [const { Vec::new() }; 4].map(Samples::from);
        for round in 1..=options.runs {
            report.note(&format!("{pages} dirty pages, round {round} of {}", options.runs));
            hot.push(median_us(RESTORES, || restored(&mut worker, &root, pages, None))?);
            cold.push(median_us(COLD_RESTORES, || restored(&mut worker, &root, pages, Some(&mut evictor)))?);
            copy.push(median_us(RESTORES, || Ok(copied(&root, pages)))?);
            take.push(median_us(RESTORES, || taken(&mut worker, &root, pages, &pool))?);
        }
        let memcpy = format!("memcpy_{pages}_us");
        report.figure(&format!("restore_{pages}_us"), "us", &hot, Some((&memcpy, &copy)));
        report.figure(&format!("restore_{pages}_cold_us"), "us", &cold, None);
        report.figure(&format!("take_{pages}_us"), "us", &take, Some((&memcpy, &copy)));
        report.figure(&memcpy, "us", &copy, None);
    }
    branches(&mut report, options, &kernel, &root, &pool)?;
    memory(&mut report, &kernel, &root, &pool)?;
    qemu(&mut report, options, folder.path())?;
    report.print();
    Ok(())
}

/// A moment with all memory written, on a base file, as the moments of booted worlds are.
fn root(kernel: &Path, folder: &Path, pool: &Pool) -> Result<Moment, String> {
    let mut machine =
        Machine::soft(guest::config(kernel), CacheConfig::default()).map_err(|e| e.to_string())?;
    machine.run(&Until::icount(INSTRUCTIONS_A_PAGE * PAGES * 12));
    let moment = machine.moment(pool);
    let path = folder.join("root.base");
    BaseFile::write(&path, moment.memory()).map_err(|e| e.to_string())?;
    let base = BaseFile::open(&path).map_err(|e| e.to_string())?;
    Ok(moment.on(Image::on(Arc::new(Base::File(base)))))
}

fn start(kernel: &Path, moment: &Moment) -> Result<Worker, String> {
    Machine::soft_from_moment(guest::config(kernel), moment, CacheConfig::default())
        .map_err(|e| e.to_string())
}

/// The median of `times` measurements, in microseconds.
fn median_us(times: usize, mut once: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let samples: Result<Vec<f64>, String> = (0..times).map(|_| once()).collect();
    Ok(Samples::from(samples?).median() * 1e6)
}

fn dirty(worker: &mut Worker, pages: u64) {
    worker.run(&Until::icount(worker.icount() + pages * INSTRUCTIONS_A_PAGE));
}

/// Seconds to go back after `pages` pages were dirtied.
fn restored(
    worker: &mut Worker,
    root: &Moment,
    pages: u64,
    evictor: Option<&mut CacheEvictor>,
) -> Result<f64, String> {
    dirty(worker, pages);
    if let Some(evictor) = evictor {
        evictor.evict();
    }
    let start = Instant::now();
    worker.restore(root).map_err(|e| e.to_string())?;
    Ok(start.elapsed().as_secs_f64())
}

/// Seconds to take a moment after `pages` pages were dirtied.
fn taken(worker: &mut Worker, root: &Moment, pages: u64, pool: &Pool) -> Result<f64, String> {
    worker.restore(root).map_err(|e| e.to_string())?;
    dirty(worker, pages);
    let start = Instant::now();
    black_box(worker.moment(pool));
    Ok(start.elapsed().as_secs_f64())
}

/// Seconds to copy `pages` random pages of the root, and nothing else.
fn copied(root: &Moment, pages: u64) -> f64 {
    let mut target: Vec<PageBytes> = vec![[0; 4096]; 1024];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let indices: Vec<u64> = (0..pages)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            guest::FIRST_PAGE + state % PAGES
        })
        .collect();
    target.fill([1; 4096]);
    let start = Instant::now();
    for (i, &index) in indices.iter().enumerate() {
        if let Some(page) = root.memory().page(index) {
            target[i % 1024].copy_from_slice(page);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    black_box(&target);
    seconds
}

/// A moment, 1,000 dirty pages from the root, in a worker that has never seen it: one that is made for it, and one that is
/// there and was at another such moment.
fn branches(
    report: &mut Report,
    options: &Options,
    kernel: &Path,
    root: &Moment,
    pool: &Pool,
) -> Result<(), String> {
    let mut first = start(kernel, root)?;
    let mut moments = Vec::new();
    for branch in 1..=BRANCHES {
        first.restore(root).map_err(|e| e.to_string())?;
        // Another draw: other pages.
        let mut cpu = first.cpu();
        cpu.gpr[0] = branch.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        first.engine_mut().set_state(&cpu);
        dirty(&mut first, 1000);
        moments.push(first.moment(pool));
    }
    let [mut made, mut there] = [const { Vec::new() }; 2].map(Samples::from);
    for round in 0..options.runs * 10 {
        let moment = |i: usize| &moments[(round + i) % moments.len()];
        let (new, other) = std::thread::scope(|scope| {
            let worker = scope.spawn(|| -> Result<(f64, f64), String> {
                let clock = Instant::now();
                let mut worker = start(kernel, moment(0))?;
                worker.run(&Until::icount(worker.icount() + 1));
                let new = clock.elapsed().as_secs_f64();
                worker.restore(moment(1)).map_err(|e| e.to_string())?;
                let clock = Instant::now();
                worker.restore(moment(2)).map_err(|e| e.to_string())?;
                worker.run(&Until::icount(worker.icount() + 1));
                Ok((new, clock.elapsed().as_secs_f64()))
            });
            worker.join().map_err(|_| String::from("a worker failed"))?
        })?;
        made.push(new * 1e6);
        there.push(other * 1e6);
    }
    report.figure("branch_new_worker_us", "us", &made, None);
    report.figure("branch_other_worker_us", "us", &there, None);
    Ok(())
}

/// Many moments kept, and many that come and go.
fn memory(report: &mut Report, kernel: &Path, root: &Moment, pool: &Pool) -> Result<(), String> {
    let mut worker = start(kernel, root)?;
    dirty(&mut worker, PAGES * 12);
    worker.restore(root).map_err(|e| e.to_string())?;
    let (before, pages) = (resident_bytes()?, pool.stats().pages);
    let mut kept = Vec::with_capacity(KEPT);
    for _ in 0..KEPT {
        // Each goes on from the one before; from time to time from the root, as a tree does.
        if kept.len() % 50 == 0 {
            let count = worker.icount();
            worker.restore(root).map_err(|e| e.to_string())?;
            worker.run(&Until::icount(root.icount() + (count - root.icount()) % 1000 * INSTRUCTIONS_A_PAGE));
        }
        dirty(&mut worker, 100);
        kept.push(worker.moment(pool));
    }
    let bytes = resident_bytes()?.saturating_sub(before) as f64;
    let distinct = (pool.stats().pages - pages) as f64 * 4096.0;
    let one = |value: f64| Samples::from(vec![value]);
    report.figure("store_moments", "", &one(KEPT as f64), None);
    report.figure("store_pages_mib", "MiB", &one(distinct / (1 << 20) as f64), None);
    report.figure("store_bytes_ratio", "", &one(bytes / distinct), None);
    drop(kept);

    let (mut before, mut most) = (0, 0);
    for cycle in 0..CYCLES {
        dirty(&mut worker, 10);
        let child = worker.moment(pool);
        worker.restore(root).map_err(|e| e.to_string())?;
        drop(child);
        if cycle == CYCLES / 10 {
            before = resident_bytes()?;
        } else if cycle > CYCLES / 10 && cycle % 1000 == 0 {
            most = most.max(resident_bytes()?);
        }
    }
    let growth = most.saturating_sub(before) as f64 / (1 << 20) as f64;
    report.figure("cycles", "", &one(CYCLES as f64), None);
    report.figure("cycles_growth_mib", "MiB", &one(growth), None);
    Ok(())
}

/// `loadvm` of a guest of the same size, with its memory written, by the peer's own monitor.
fn qemu(report: &mut Report, options: &Options, folder: &Path) -> Result<(), String> {
    const QEMU: &str = "qemu-system-x86_64";
    const QEMU_IMG: &str = "qemu-img";
    if !peer::installed(QEMU) || !peer::installed(QEMU_IMG) {
        eprintln!(
            "moments: no {QEMU} and {QEMU_IMG}, so there is no peer: apt-get install qemu-system-x86 qemu-utils"
        );
        return Ok(());
    }
    let seconds = peer::loadvm::seconds(QEMU, QEMU_IMG, folder, options.runs)?;
    let samples = Samples::from(seconds.into_iter().map(|s| s * 1e6).collect::<Vec<_>>());
    report.figure("qemu_loadvm_us", "us", &samples, None);
    Ok(())
}
