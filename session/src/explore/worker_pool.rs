//! Pool of worker threads. Each worker has its own machines and runs one branch at a time.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::anyhow;
use everett_explorer::expedition::Job;
use everett_explorer::run::{Hit, Record};
use everett_explorer::search::Path;
use everett_host::interrupt::Interrupt;
use everett_host::time::CpuClock;
use everett_input::causes::with_causes;
use everett_vmm::machine::MachineError;

use super::cpu_time::CpuTime;
use super::marks;
use super::moment_store::MomentStore;
use super::path_runner::{Aim, Branch, Failed, Interrupted, PathRunner, Watch};
use super::setting::Setting;
use super::witness::{HitWithEvidence, Inherited};
use super::working::{Activity, Desk, Working};
use crate::run::launch::LaunchError;

/// Number of a branch, and either the branch's record or the error because of which the branch has no record.
pub type Done = (u64, anyhow::Result<Record>);

/// Callback before each branch, with the branch's number. Tests use it to slow down workers.
pub type Before<'b> = &'b (dyn Fn(u64) + Sync);

/// State that the workers of one exploration share.
pub struct WorkerPool<'s> {
    setting: &'s Setting,
    store: &'s MomentStore,
    root: Inherited,
    before: Before<'s>,
    halt: Interrupt,
    queue: Mutex<Queue>,
    worker_count: Mutex<WorkerCount>,
    spent: Mutex<CpuTime>,
    desks: Vec<Desk>,
    changed: Condvar,
}

/// Number of active workers, and reasons of the workers that stopped.
#[derive(Debug)]
struct WorkerCount {
    working: usize,
    /// Reasons of the workers that stopped because the host could not provide their machines.
    absent: Vec<String>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl<'s> WorkerPool<'s> {
    /// Creates the pool for `workers` workers, with an empty queue. Raising `halt` ends the running branches without
    /// results.
    ///
    /// # Errors
    /// See [`Setting::inherited_at_boot`].
    pub fn new(
        setting: &'s Setting,
        store: &'s MomentStore,
        before: Before<'s>,
        halt: Interrupt,
        workers: usize,
    ) -> anyhow::Result<WorkerPool<'s>> {
        let root = setting.inherited_at_boot()?;
        Ok(WorkerPool {
            setting,
            store,
            root,
            before,
            halt,
            queue: Mutex::default(),
            worker_count: Mutex::new(WorkerCount { working: workers, absent: Vec::new() }),
            spent: Mutex::default(),
            desks: (0..workers).map(|_| Desk::default()).collect(),
            changed: Condvar::new(),
        })
    }

    /// Appends a job, i.e. a branch to run, to the queue.
    pub fn ask(&self, job: Job) {
        self.queue().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// Removes and returns the jobs that no worker has begun.
    pub fn call_off(&self) -> Vec<Job> {
        self.queue().jobs.drain(..).collect()
    }

    /// Returns the number of jobs that no worker has begun.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue().jobs.len()
    }

    /// Closes the queue. Workers stop when it is empty.
    pub fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }

    /// Stops all workers, even in the middle of a branch.
    pub fn stop_all(&self) {
        self.halt.raise();
        self.close();
    }

    /// Runs jobs until the queue is closed and empty. `worker` is the worker's number, from 0. An error or a panic
    /// becomes the result of the current branch.
    pub fn work(&self, worker: usize, results: &Sender<Done>) {
        let unknown = Desk::default();
        let desk = self.desks.get(worker).unwrap_or(&unknown);
        let mut own_runner = None;
        while let Some(job) = self.next() {
            let number = job.choice.number;
            desk.begin(number, if own_runner.is_some() { Activity::Runs } else { Activity::Starts });
            let _panic_report = PanicReport { number, results };
            (self.before)(number);
            let runner = match &mut own_runner {
                Some(runner) => runner,
                empty => match PathRunner::new(self.setting) {
                    Ok(made) => empty.insert(made),
                    Err(error) if self.stops(&error) => {
                        desk.rest(Activity::Stopped);
                        self.ask_first(job);
                        return;
                    }
                    Err(error) => {
                        // Sending fails only if the leader, i.e. the thread that chooses branches, has ended and needs
                        // no more results.
                        let _ = results.send((number, Err(error)));
                        return;
                    }
                },
            };
            let done = self.run(runner, desk, &job);
            desk.rest(Activity::Waits);
            let failed = runner.failure().is_some();
            // An interrupted branch has no result.
            let called_off = done.as_ref().is_err_and(|error| error.is::<Interrupted>());
            if called_off || results.send((number, done)).is_err() {
                return;
            }
            if failed {
                // The result contains the failure. The worker makes new machines for the next branch.
                own_runner = None;
            }
        }
    }

    /// Returns true if this worker stops because the host cannot provide its machines. The function then records the
    /// reason, and other workers continue. For the last worker it returns false, so that the error is reported.
    fn stops(&self, error: &anyhow::Error) -> bool {
        let host = matches!(
            error.downcast_ref(),
            Some(LaunchError::Machine(MachineError::Engine(_) | MachineError::Ram(_)))
        );
        let mut worker_count = self.worker_count.lock().unwrap_or_else(PoisonError::into_inner);
        if !host || worker_count.working <= 1 {
            return false;
        }
        worker_count.working -= 1;
        worker_count.absent.push(with_causes(error.as_ref()));
        true
    }

    /// Returns the current activity of each worker.
    #[must_use]
    pub fn workers(&self) -> Vec<Working> {
        self.desks.iter().map(Desk::look).collect()
    }

    /// Returns the reasons of the workers that stopped because the host could not provide their machines.
    #[must_use]
    pub fn absent(&self) -> Vec<String> {
        self.worker_count.lock().unwrap_or_else(PoisonError::into_inner).absent.clone()
    }

    /// Puts a job at the front of the queue.
    fn ask_first(&self, job: Job) {
        self.queue().jobs.push_front(job);
        self.changed.notify_one();
    }

    fn run(&self, runner: &mut PathRunner<'s>, desk: &Desk, job: &Job) -> anyhow::Result<Record> {
        let mut watch = Halt { interrupt: &self.halt, desk };
        let clock = CpuClock::start();
        let (mut there, mut at_moment) = self.store.nearest(&job.way);
        let mut executed = 0u64;
        while let Some((_, path)) = job.way.get(there) {
            desk.turn(Activity::Derives);
            let memory = at_moment.as_ref().map_or(&self.root, |at_moment| &at_moment.memory);
            let branch = runner.branch(at_moment.as_deref(), path, memory, Aim::Moment, &mut watch);
            let mut branch = branch.map_err(|error| self.described(error, path))?;
            executed = executed.saturating_add(branch.instructions);
            self.account(branch.spent);
            let Some(derived) = branch.at_moment.take() else {
                anyhow::bail!("{}: no branch can continue from here", self.setting.name(path));
            };
            there += 1;
            let way = job.way.get(..there).unwrap_or_default();
            at_moment = Some(self.store.keep(way, branch.instructions, derived));
        }
        desk.turn(Activity::Runs);
        let memory = at_moment.as_ref().map_or(&self.root, |at_moment| &at_moment.memory);
        let path = &job.choice.path;
        let branch = runner.branch(at_moment.as_deref(), path, memory, Aim::Whole, &mut watch);
        let mut branch = branch.map_err(|error| self.described(error, path))?;
        executed = executed.saturating_add(branch.instructions);
        self.account(branch.spent);
        if let Some(kept) = branch.at_moment.take() {
            let mut way = job.way.clone();
            way.push((job.choice.number, path.clone()));
            self.store.keep(&way, branch.instructions, kept);
        }
        Ok(record(self.setting, job, branch, executed, clock.elapsed_ns()))
    }

    /// Returns a branch's error, with an explanation for the operator if the host or the engine failed. Such a branch
    /// gets no record, because its result would not repeat.
    fn described(&self, error: anyhow::Error, path: &Path) -> anyhow::Error {
        match error.downcast_ref::<Failed>() {
            Some(failed) => anyhow!(
                "{}: {failed}; this branch was not recorded, and the exploration can be resumed",
                self.setting.name(path)
            ),
            None => error,
        }
    }

    /// Returns the CPU time of all workers so far, by activity.
    #[must_use]
    pub fn spent(&self) -> CpuTime {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self, spent: CpuTime) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += spent;
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if self.halt.wanted() {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports a worker's panic as the result of its branch. Otherwise the leader, i.e. the thread that chooses branches,
/// would wait for the branch forever.
struct PanicReport<'r> {
    number: u64,
    results: &'r Sender<Done>,
}

impl Drop for PanicReport<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // Sending fails only if the leader has ended and needs no more results.
            let _ = self.results.send((self.number, Err(anyhow!("a worker has panicked"))));
        }
    }
}

/// Observer of a branch that reports its vtime for displays and ends the branch when the interrupt is raised.
struct Halt<'h> {
    interrupt: &'h Interrupt,
    desk: &'h Desk,
}

impl Watch for Halt<'_> {
    fn at(&mut self, vtime_ns: u64) -> bool {
        self.desk.at(vtime_ns);
        !self.interrupt.wanted()
    }
}

/// Returns the record of a branch for the run directory.
fn record(setting: &Setting, job: &Job, branch: Branch, executed: u64, cpu_ns: u64) -> Record {
    let testimony = branch.testimony;
    let name = |node: Option<u16>| {
        let node = setting.launcher.world.nodes.get(usize::from(node?))?;
        Some(node.name.clone())
    };
    let hit = |HitWithEvidence { hit, evidence }: HitWithEvidence| Hit {
        node: name(hit.node),
        property: hit.property,
        signature: hit.signature,
        text: hit.text,
        vtime_ns: hit.vtime_ns,
        evidence,
    };
    Record {
        choice: job.choice.number,
        from: job.way.last().map(|(branch, _)| *branch),
        path: job.choice.path.clone(),
        open_ns: branch.open.then_some(branch.end_ns),
        end_ns: branch.last_ns,
        instructions: branch.instructions,
        final_phase: branch.final_phase,
        executed,
        cpu_ns,
        trail: marks::digest(&branch.marks),
        marks: marks::shortened(&branch.marks),
        checked: branch.checked,
        faults: testimony.faults,
        losses: testimony.losses,
        messages: testimony.messages,
        delta: testimony.delta,
        hits: testimony.found.into_iter().map(hit).collect(),
        sometimes: testimony.sometimes,
        commands: branch.commands,
        history: branch.history,
        log_bytes: testimony.log_bytes,
        log_cut: testimony.log_cut,
        broken: branch.broken,
    }
}
