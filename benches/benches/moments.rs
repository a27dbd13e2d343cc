//! Measures the cost of moments: taking them, restoring them, and keeping many. A worker (a machine that runs branches)
//! is restored to the moment from which it started, or to a moment at which it has never been.
//!
//! The guest has 256 MiB, of which 128 MiB are written. It dirties about 100 or 1000 random pages and is restored. The
//! time includes restoring device state and invalidating caches. The same run measures QEMU's `loadvm` of a guest of
//! the same size, and a bare memcpy of as many pages.
//!
//! `cargo bench -p benches --bench moments [-- --json] [-- --runs N]`
#![allow(clippy::disallowed_types)] // Benches measure host time.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use benches::guest::{self, INSTRUCTIONS_A_PAGE};
use benches::host::{CacheEvictor, resident_bytes};
use benches::{Options, Report, Samples, peer};
use clap::Parser;
use everett_cpu::CacheConfig;
use everett_input::causes::with_causes;
use everett_snapshot::{Base, BaseFile, PageBytes, PageImage, Pool};
use everett_vmm::engine::Engine;
use everett_vmm::machine::{Moment, STATE_VERSION};
use everett_vmm::{Machine, Until};

/// Number of pages among which the guest picks each page to write. A power of two, so that a mask selects a page.
const PAGES: u64 = 1 << 15;
/// Number of restores in a round.
const RESTORES: usize = 200;
/// Number of restores with cold caches in a round. Before each, a walk through a large buffer evicts all data from
/// the host's caches.
const COLD_RESTORES: usize = 20;
/// Number of moments to which workers are restored.
const BRANCHES: u64 = 16;
/// Number of moments that are kept at the same time.
const KEPT: usize = 10_000;
/// Length of a chain of kept moments. Each chain starts at the root.
const CHAIN: u64 = 50;
/// Number of branches that are created and dropped.
const CYCLES: usize = 100_000;

/// Environment variable that makes this process only measure memory. Its value is the folder with the root moment and
/// the kernel.
const MEMORY_PART: &str = "EVERETT_BENCH_MEMORY_PART";

const MIB: f64 = (1 << 20) as f64;

fn main() -> ExitCode {
    // Memory is measured in a separate process: this process would reuse memory that it has freed, which would hide
    // growth.
    let result = match std::env::var_os(MEMORY_PART) {
        Some(folder) => memory_part(Path::new(&folder)),
        None => run(&Options::parse()),
    };
    benches::end("moments", result)
}

fn run(options: &Options) -> Result<(), String> {
    let mut report = Report::new("moments", options.json);
    let folder = tempfile::tempdir().map_err(|error| with_causes(&error))?;
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
    branches(&mut report, options, (&kernel, &root, &pool), 100, "")?;
    branches(&mut report, options, (&kernel, &root, &pool), 1000, "_1000")?;
    memory(&mut report, folder.path())?;
    qemu(&mut report, options, folder.path())?;
    report.print();
    Ok(())
}

/// Creates a moment of a guest that has written nearly all of the [`PAGES`] pages. The moment's memory is in a file on
/// the disk (its base), as the memory of a booted world is.
fn root(kernel: &Path, folder: &Path, pool: &Pool) -> Result<Moment, String> {
    let mut machine =
        Machine::soft(guest::config(kernel), CacheConfig::default()).map_err(|e| with_causes(&e))?;
    machine.run(&Until::icount(INSTRUCTIONS_A_PAGE * PAGES * 12));
    let moment = machine.moment(pool);
    BaseFile::write(&folder.join("root.base"), moment.memory()).map_err(|e| with_causes(&e))?;
    std::fs::write(folder.join("root.state"), moment.state()).map_err(|e| with_causes(&e))?;
    stored_root(folder)
}

/// Loads the root moment from its files.
fn stored_root(folder: &Path) -> Result<Moment, String> {
    let base = BaseFile::open(&folder.join("root.base")).map_err(|e| with_causes(&e))?;
    let state = std::fs::read(folder.join("root.state")).map_err(|e| with_causes(&e))?;
    let memory = PageImage::on(Arc::new(Base::File(base)));
    Moment::from_parts(STATE_VERSION, state.into(), memory, &[]).map_err(|e| with_causes(&e))
}

fn start(kernel: &Path, moment: &Moment) -> Result<Machine, String> {
    Machine::soft_from_moment(guest::config(kernel), moment, CacheConfig::default())
        .map_err(|e| with_causes(&e))
}

/// Returns the median of `times` measurements, in microseconds.
fn median_us(times: usize, mut once: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let samples: Result<Vec<f64>, String> = (0..times).map(|_| once()).collect();
    Ok(Samples::from(samples?).median() * 1e6)
}

/// Lets the guest write to `pages` random pages, some of which may coincide.
fn dirty(worker: &mut Machine, pages: u64) {
    worker.run(&Until::icount(worker.icount() + pages * INSTRUCTIONS_A_PAGE));
}

/// Makes the guest pick other pages from now on. `number` seeds its pseudo-random sequence.
fn draw(worker: &mut Machine, number: u64) {
    let mut cpu = worker.cpu();
    cpu.gpr[0] = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    worker.engine_mut().set_state(&cpu);
}

/// Returns the duration of a restore after `pages` page writes, in seconds.
fn restored(
    worker: &mut Machine,
    root: &Moment,
    pages: u64,
    evictor: Option<&mut CacheEvictor>,
) -> Result<f64, String> {
    dirty(worker, pages);
    if let Some(evictor) = evictor {
        evictor.evict();
    }
    let start = Instant::now();
    worker.restore(root).map_err(|e| with_causes(&e))?;
    Ok(start.elapsed().as_secs_f64())
}

/// Returns the duration of taking a moment after `pages` page writes, in seconds.
fn taken(worker: &mut Machine, root: &Moment, pages: u64, pool: &Pool) -> Result<f64, String> {
    worker.restore(root).map_err(|e| with_causes(&e))?;
    dirty(worker, pages);
    let start = Instant::now();
    black_box(worker.moment(pool));
    Ok(start.elapsed().as_secs_f64())
}

/// Returns the duration of a bare copy of `pages` random pages of the root moment, in seconds.
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

/// Measures restoring a moment that differs from the root moment by about `pages` pages. The worker has never been at
/// this moment: it is new, or was at another of these moments.
fn branches(
    report: &mut Report,
    options: &Options,
    (kernel, root, pool): (&Path, &Moment, &Pool),
    pages: u64,
    suffix: &str,
) -> Result<(), String> {
    let mut first = start(kernel, root)?;
    let mut moments = Vec::new();
    for branch in 1..=BRANCHES {
        first.restore(root).map_err(|e| with_causes(&e))?;
        draw(&mut first, branch);
        dirty(&mut first, pages);
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
                worker.restore(moment(1)).map_err(|e| with_causes(&e))?;
                let clock = Instant::now();
                worker.restore(moment(2)).map_err(|e| with_causes(&e))?;
                worker.run(&Until::icount(worker.icount() + 1));
                Ok((new, clock.elapsed().as_secs_f64()))
            });
            worker.join().map_err(|_| String::from("a worker failed"))?
        })?;
        made.push(new * 1e6);
        there.push(other * 1e6);
    }
    report.figure(&format!("branch_new_worker{suffix}_us"), "us", &made, None);
    report.figure(&format!("branch_other_worker{suffix}_us"), "us", &there, None);
    Ok(())
}

/// Measures, in a new process, the memory of many kept moments, and its growth when many are created and dropped.
fn memory(report: &mut Report, folder: &Path) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| with_causes(&error))?;
    let output = Command::new(program).env(MEMORY_PART, folder).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| with_causes(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let values: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [bytes, distinct, growth] = values[..] else {
        return Err(String::from("the process that measures memory failed"));
    };
    let one = |value: f64| Samples::from(vec![value]);
    report.figure("store_moments", "", &one(KEPT as f64), None);
    report.figure("store_pages_mib", "MiB", &one(distinct / MIB), None);
    report.figure("store_bytes_ratio", "", &one(bytes / distinct), None);
    report.figure("cycles", "", &one(CYCLES as f64), None);
    report.figure("cycles_growth_mib", "MiB", &one(growth / MIB), None);
    Ok(())
}

/// Prints the memory of many kept moments, the size of their distinct pages, and the growth of memory while branches
/// are created and dropped, all in bytes.
fn memory_part(folder: &Path) -> Result<(), String> {
    let kernel = folder.join("vmlinux");
    let (root, pool) = (stored_root(folder)?, Pool::default());
    let mut worker = start(&kernel, &root)?;
    // Before the measurement, the guest writes nearly every page at least once. The worker then has a copy of its own
    // of each of these pages, so later writes do not add to the worker's memory.
    dirty(&mut worker, PAGES * 12);
    worker.restore(&root).map_err(|e| with_causes(&e))?;
    let (before, pages) = (resident_bytes()?, pool.stats().pages);
    let mut kept = Vec::with_capacity(KEPT);
    for index in 0..KEPT as u64 {
        // Each moment continues from the previous one. Each chain begins at the root moment with another seed, like the
        // branches of a tree.
        if index.is_multiple_of(CHAIN) {
            worker.restore(&root).map_err(|e| with_causes(&e))?;
            draw(&mut worker, index + 1);
        }
        dirty(&mut worker, 100);
        kept.push(worker.moment(&pool));
    }
    let bytes = resident_bytes()?.saturating_sub(before);
    let distinct = (pool.stats().pages - pages) * 4096;
    drop(kept);

    let (mut before, mut most) = (0, 0);
    for cycle in 0..CYCLES {
        dirty(&mut worker, 10);
        let child = worker.moment(&pool);
        worker.restore(&root).map_err(|e| with_causes(&e))?;
        drop(child);
        if cycle == CYCLES / 10 {
            before = resident_bytes()?;
        } else if cycle > CYCLES / 10 && cycle % 1000 == 0 {
            most = most.max(resident_bytes()?);
        }
    }
    println!("{bytes} {distinct} {}", most.saturating_sub(before));
    Ok(())
}

/// Measures `loadvm` of a guest of the same size, with as much memory written, through QEMU's monitor.
fn qemu(report: &mut Report, options: &Options, folder: &Path) -> Result<(), String> {
    const QEMU: &str = "qemu-system-x86_64";
    const QEMU_IMG: &str = "qemu-img";
    if !peer::installed(QEMU) || !peer::installed(QEMU_IMG) {
        eprintln!(
            "moments: {QEMU} or {QEMU_IMG} is missing, so nothing is compared with QEMU; install both with: apt-get install qemu-system-x86 qemu-utils"
        );
        return Ok(());
    }
    let seconds = peer::loadvm::seconds(QEMU, QEMU_IMG, folder, options.runs)?;
    let samples = Samples::from(seconds.into_iter().map(|s| s * 1e6).collect::<Vec<_>>());
    report.figure("qemu_loadvm_us", "us", &samples, None);
    Ok(())
}
