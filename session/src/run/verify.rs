//! Runs a timeline several times in parallel and compares the trails.
//!
//! The runs differ in everything that must not matter: thread, load of the host, cache sizes, and times of cache
//! flushes. Some runs reuse the machines of an earlier run. Each point of a trail is compared with the same point of
//! the first run that reached it. A mismatch ends all runs at once.
//!
//! Not here: the printed report (`commands::verify`), and the search for the instruction at which two runs diverge
//! (bisection in `everett_vmm`).

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use everett_cpu::CacheConfig;
use everett_host::interrupt::Interrupt;
use everett_host::time::CpuClock;
use everett_streams::Seed;
use everett_vmm::digest::Digest;
use everett_vmm::engine::soft::FlushSchedule;

use crate::machines::EngineOptions;
use crate::run::drive::{Ended, Watch, drive};
use crate::run::launch::Launcher;
use crate::run::worker::joined;
use crate::world::event::Event;
use crate::world::timeline::Timeline;

/// Half of the maximum interval between cache flushes in a run with flushes, in instructions. The intervals are random.
const DISTURBED_FLUSH_INTERVAL: u64 = 8_000_000;

/// Divisor of the default cache sizes for a run with small caches.
const SMALLER: usize = 4;

/// A timeline to run, and the number of runs.
#[derive(Debug, Clone)]
pub struct Job {
    /// Launcher from which every run starts.
    pub launcher: Launcher,
    /// Seed of all runs.
    pub seed: Seed,
    /// Duration of the workload after *ready* (all services are up), in nanoseconds of vtime.
    pub duration_ns: u64,
    /// Number of runs.
    pub runs: u32,
    /// Number of runs in parallel.
    pub jobs: NonZero<u16>,
}

/// Result of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// Number of the run, from 0.
    pub run: u32,
    /// Digest of the run's trail.
    pub trail: Digest,
    /// Number of points in the trail.
    pub points: usize,
    /// Count since power-on, including the boot. The clock mode decides the unit: instructions, conditional branches or
    /// exits.
    pub instructions: u64,
    /// Part of `instructions` after the moment at which the run started.
    pub executed: u64,
    /// CPU time of the run, in nanoseconds.
    pub cpu_ns: u64,
    /// Vtime at the end of the run, in nanoseconds.
    pub vtime_ns: u64,
    /// Number of findings in the run.
    pub findings: u64,
    /// True if the run reused the machines of an earlier run, false if it had new machines.
    pub on_restored_machine: bool,
}

/// First point at which a run's trail differs from the other trails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// Number of the run whose trail differs.
    pub run: u32,
    /// Number of the run that reached the point first, with which the other runs are compared.
    pub reference: u32,
    /// Vtime of the point, in nanoseconds.
    pub vtime_ns: u64,
}

/// Result of all runs.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Results of the runs that completed, by run number.
    pub runs: Vec<RunResult>,
    /// Events of run 0.
    pub events: Vec<Event>,
    /// First mismatch that was discovered.
    pub mismatch: Option<Mismatch>,
    /// True if the operator interrupted the runs.
    pub interrupted: bool,
}

impl Job {
    /// Starts the timeline of the run number `run`.
    ///
    /// # Errors
    /// Returns an error if a file of the world cannot be read or is invalid.
    pub fn start(&self, run: u32) -> anyhow::Result<Timeline> {
        let mut timeline = self.launcher(run).start(self.seed)?;
        timeline.end_after(self.duration_ns);
        Ok(timeline)
    }

    /// Starts the timeline of the run number `run` on the machines of an earlier timeline.
    fn start_again(&self, mut timeline: Timeline, run: u32) -> anyhow::Result<Timeline> {
        if !self.launcher(run).start_again(&mut timeline, self.seed)? {
            return self.start(run);
        }
        timeline.end_after(self.duration_ns);
        Ok(timeline)
    }

    fn launcher(&self, run: u32) -> Launcher {
        let mut launcher = self.launcher.clone();
        disturb(&mut launcher.options, run);
        launcher
    }

    /// Executes all runs. Any thread may call `progress`, with the vtime since *ready* and the instructions of all runs
    /// so far.
    ///
    /// # Errors
    /// Returns an error if a run cannot be started or fails.
    pub fn run(
        &self,
        interrupt: &Interrupt,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> anyhow::Result<VerifyReport> {
        let shared = Shared::new(interrupt, progress);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.get())
                .map(|_| {
                    scope.spawn(|| {
                        // A worker that fails or panics stops the other workers.
                        let _stops = StopsOnPanic(&shared.stop);
                        let result = self.work(&shared);
                        if result.is_err() {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                        result
                    })
                })
                .collect();
            let ends: Vec<_> = workers.into_iter().map(joined).collect();
            ends.into_iter().collect::<anyhow::Result<()>>()
        })?;
        let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut report = state.report;
        report.runs.sort_by_key(|result| result.run);
        report.interrupted = interrupt.wanted();
        Ok(report)
    }

    fn work(&self, shared: &Shared<'_>) -> anyhow::Result<()> {
        // A timeline with the default cache sizes is reused for the worker's next run, as explorations reuse machines.
        let mut kept: Option<Timeline> = None;
        while !shared.stopped() {
            let run = shared.next_run.fetch_add(1, Ordering::Relaxed);
            if run >= self.runs {
                break;
            }
            let clock = CpuClock::start();
            let usual = self.launcher(run).options.caches == self.launcher.options.caches;
            let again = if usual { kept.take() } else { None };
            let on_restored_machine = again.is_some() && self.launcher.from.is_some();
            let mut timeline = match again {
                Some(timeline) => self.start_again(timeline, run)?,
                None => self.start(run)?,
            };
            let instructions = timeline.icount();
            let mut comparer = Comparer { shared, run, points: 0, vtime_ns: 0, instructions };
            if drive(&mut timeline, self.duration_ns, &mut comparer)? == Ended::Cut {
                break;
            }
            let result = RunResult {
                run,
                trail: timeline.trail().digest(),
                points: timeline.trail().points().len(),
                instructions: timeline.icount(),
                executed: timeline.icount() - instructions,
                cpu_ns: clock.elapsed_ns(),
                vtime_ns: timeline.vtime(),
                findings: timeline.findings(),
                on_restored_machine,
            };
            shared.finished(result);
            if usual {
                kept = Some(timeline);
            }
        }
        Ok(())
    }
}

/// Changes the caches of the run number `run`: random flushes, small sizes, both or neither.
fn disturb(options: &mut EngineOptions, run: u32) {
    let (dropped, small) = (run % 2 == 1, run % 4 >= 2);
    if dropped && options.flushes.is_none() {
        options.flushes = Some(FlushSchedule { interval: DISTURBED_FLUSH_INTERVAL, seed: u64::from(run) });
    }
    let usual = CacheConfig::default();
    if small && options.caches == usual {
        options.caches = CacheConfig {
            tlb_entries: usual.tlb_entries / SMALLER,
            block_entries: usual.block_entries / SMALLER,
            ..usual
        };
    }
}

/// Points of the longest trail so far, each with the first run that reached it, and the report.
#[derive(Default)]
struct State {
    points: Vec<(u64, Digest, u32)>,
    report: VerifyReport,
}

struct Shared<'a> {
    state: Mutex<State>,
    next_run: AtomicU32,
    stop: AtomicBool,
    vtime_ns: AtomicU64,
    instructions: AtomicU64,
    interrupt: &'a Interrupt,
    progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl<'a> Shared<'a> {
    fn new(interrupt: &'a Interrupt, progress: &'a (dyn Fn(u64, u64) + Sync)) -> Shared<'a> {
        Shared {
            state: Mutex::default(),
            next_run: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            vtime_ns: AtomicU64::new(0),
            instructions: AtomicU64::new(0),
            interrupt,
            progress,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.interrupt.wanted()
    }

    fn mismatch(&self, state: &mut State, mismatch: Mismatch) {
        state.report.mismatch.get_or_insert(mismatch);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Compares the point number `index` of a run with the same point of the first run that reached it.
    fn compare(&self, run: u32, index: usize, vtime_ns: u64, digest: Digest) {
        let mut state = self.state();
        match state.points.get(index).copied() {
            None => state.points.push((vtime_ns, digest, run)),
            Some((at, first, _)) if (at, first) == (vtime_ns, digest) => {}
            Some((at, _, reference)) => {
                let mismatch = Mismatch { run, reference, vtime_ns: at.min(vtime_ns) };
                self.mismatch(&mut state, mismatch);
            }
        }
    }

    /// Records a completed run. A different number of points is a mismatch.
    fn finished(&self, result: RunResult) {
        let mut state = self.state();
        if let Some(first) = state.report.runs.first().filter(|first| first.points != result.points) {
            let mismatch = Mismatch {
                run: result.run,
                reference: first.run,
                vtime_ns: first.vtime_ns.min(result.vtime_ns),
            };
            self.mismatch(&mut state, mismatch);
        }
        state.report.runs.push(result);
    }
}

/// Observer that compares a run with the other runs.
struct Comparer<'a> {
    shared: &'a Shared<'a>,
    run: u32,
    points: usize,
    vtime_ns: u64,
    instructions: u64,
}

impl Watch for Comparer<'_> {
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        if self.run == 0 {
            self.shared.state().report.events.push(event.clone());
        }
        Ok(())
    }

    fn point(&mut self, vtime_ns: u64, digest: Digest) -> anyhow::Result<()> {
        self.shared.compare(self.run, self.points, vtime_ns, digest);
        self.points += 1;
        Ok(())
    }

    fn at(&mut self, since_ready_ns: u64, instructions: u64) -> bool {
        let add = |total: &AtomicU64, new: u64, old: &mut u64| {
            let step = new - *old;
            *old = new;
            total.fetch_add(step, Ordering::Relaxed) + step
        };
        let vtime = add(&self.shared.vtime_ns, since_ready_ns, &mut self.vtime_ns);
        let total = add(&self.shared.instructions, instructions, &mut self.instructions);
        (self.shared.progress)(vtime, total);
        !self.shared.stopped()
    }
}

/// Stops the other workers if the current worker panics.
struct StopsOnPanic<'s>(&'s AtomicBool);

impl Drop for StopsOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(run: u32, points: usize) -> RunResult {
        RunResult {
            run,
            trail: Digest([0; 32]),
            points,
            instructions: 0,
            executed: 0,
            cpu_ns: 0,
            vtime_ns: points as u64,
            findings: 0,
            on_restored_machine: false,
        }
    }

    #[test]
    fn runs_have_different_caches_unless_the_caller_chose() {
        let disturbed = |run, mut options| {
            disturb(&mut options, run);
            (options.flushes, options.caches)
        };
        let usual = |run| disturbed(run, EngineOptions::default());
        assert_eq!(usual(0), (None, CacheConfig::default()));
        assert_ne!(usual(1).0, usual(3).0);
        assert!(usual(2).1.tlb_entries < usual(1).1.tlb_entries && usual(2).0.is_none());
        let chosen = CacheConfig { tlb_entries: 64, block_entries: 64, ..CacheConfig::default() };
        assert_eq!(disturbed(2, EngineOptions { caches: chosen, ..EngineOptions::default() }).1, chosen);
    }

    #[test]
    fn the_first_run_to_reach_a_point_is_the_reference() {
        let interrupt = Interrupt::default();
        let shared = Shared::new(&interrupt, &|_, _| {});
        let digest = |n| Digest([n; 32]);
        shared.compare(1, 0, 0, digest(1));
        shared.compare(0, 0, 0, digest(1));
        shared.compare(0, 1, 100, digest(2));
        assert!(!shared.stopped());
        shared.compare(1, 1, 100, digest(3));
        assert!(shared.stopped());
        shared.compare(2, 0, 5, digest(1));
        let mismatch = shared.state().report.mismatch;
        assert_eq!(
            mismatch,
            Some(Mismatch { run: 1, reference: 0, vtime_ns: 100 }),
            "the first mismatch is kept"
        );
    }

    #[test]
    fn a_shorter_run_is_a_mismatch() {
        let interrupt = Interrupt::default();
        let shared = Shared::new(&interrupt, &|_, _| {});
        shared.finished(result(0, 5));
        shared.finished(result(2, 5));
        assert!(!shared.stopped());
        shared.finished(result(1, 4));
        assert_eq!(shared.state().report.mismatch, Some(Mismatch { run: 1, reference: 0, vtime_ns: 4 }));
    }
}
