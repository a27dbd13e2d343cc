//! Workers: each a thread with machines of its own, which runs one branch after the other.

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
use everett_vmm::machine::MachineError;

use super::marks;
use super::moment_store::MomentStore;
use super::path_runner::{Aim, Branch, Failed, Interrupted, PathRunner, Watch};
use super::setting::Setting;
use super::spent::Spent;
use super::witness::{Found, Inherited};
use crate::launch::LaunchError;

/// What a worker brings back.
pub type Done = (u64, anyhow::Result<Record>);

/// Somebody who is asked before a branch is run, with its number: tests are slow there.
pub type Before<'b> = &'b (dyn Fn(u64) + Sync);

/// What workers share.
pub struct WorkerPool<'s> {
    setting: &'s Setting,
    shelf: &'s MomentStore,
    root: Inherited,
    before: Before<'s>,
    halt: Interrupt,
    queue: Mutex<Queue>,
    staff: Mutex<Staff>,
    spent: Mutex<Spent>,
    changed: Condvar,
}

/// Who works.
#[derive(Debug)]
struct Staff {
    working: usize,
    /// Why others have gone home: the host has no machines for them.
    absent: Vec<String>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl<'s> WorkerPool<'s> {
    /// Of so many workers nobody has anything to do. Branches that run end when `halt` says so, without a result.
    ///
    /// # Errors
    /// See [`Setting::memory_of_boot`].
    pub fn new(
        setting: &'s Setting,
        shelf: &'s MomentStore,
        before: Before<'s>,
        halt: Interrupt,
        workers: usize,
    ) -> anyhow::Result<WorkerPool<'s>> {
        let root = setting.memory_of_boot()?;
        Ok(WorkerPool {
            setting,
            shelf,
            root,
            before,
            halt,
            queue: Mutex::default(),
            staff: Mutex::new(Staff { working: workers, absent: Vec::new() }),
            spent: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Have this run, after all that was asked for before.
    pub fn ask(&self, job: Job) {
        self.queue().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// Nothing more that has not begun is wanted. Which was not begun.
    pub fn call_off(&self) -> Vec<Job> {
        self.queue().jobs.drain(..).collect()
    }

    /// How many wait to be begun.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue().jobs.len()
    }

    /// No job will come any more: workers go home when there is none.
    pub fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }

    /// Nobody works on, however far a branch is.
    pub fn dismiss(&self) {
        self.halt.raise();
        self.close();
    }

    /// Work until there is nothing more to do. A worker that cannot go on says so, also one that panics.
    pub fn work(&self, results: &Sender<Done>) {
        let mut hired = None;
        while let Some(job) = self.next() {
            let number = job.choice.number;
            let _farewell = Farewell { number, results };
            (self.before)(number);
            let runner = match &mut hired {
                Some(runner) => runner,
                empty => match PathRunner::new(self.setting) {
                    Ok(made) => empty.insert(made),
                    Err(error) if self.goes_home(&error) => {
                        self.ask_first(job);
                        return;
                    }
                    Err(error) => {
                        // If nobody listens any more, nobody waits.
                        let _ = results.send((number, Err(error)));
                        return;
                    }
                },
            };
            let done = self.run(runner, &job);
            let failed = runner.failure().is_some();
            // Who is called off has nothing to bring.
            let called_off = done.as_ref().is_err_and(|error| error.is::<Interrupted>());
            if called_off || results.send((number, done)).is_err() {
                return;
            }
            if failed {
                // The result says so. Another branch, if there is one, gets other machines.
                hired = None;
            }
        }
    }

    /// A worker for whom the host has no machines goes home, and others go on; the last one says what is wrong.
    fn goes_home(&self, error: &anyhow::Error) -> bool {
        let host = matches!(
            error.downcast_ref(),
            Some(LaunchError::Machine(MachineError::Engine(_) | MachineError::Ram(_)))
        );
        let mut staff = self.staff.lock().unwrap_or_else(PoisonError::into_inner);
        if !host || staff.working <= 1 {
            return false;
        }
        staff.working -= 1;
        staff.absent.push(error.to_string());
        true
    }

    /// Why workers have gone home before their time.
    #[must_use]
    pub fn absent(&self) -> Vec<String> {
        self.staff.lock().unwrap_or_else(PoisonError::into_inner).absent.clone()
    }

    /// Have this run, before all that was asked for.
    fn ask_first(&self, job: Job) {
        self.queue().jobs.push_front(job);
        self.changed.notify_one();
    }

    fn run(&self, runner: &mut PathRunner<'s>, job: &Job) -> anyhow::Result<Record> {
        let mut watch = Halt(&self.halt);
        let clock = CpuClock::start();
        let (mut there, mut stand) = self.shelf.nearest(&job.way);
        let mut executed = 0u64;
        while let Some((_, path)) = job.way.get(there) {
            let memory = stand.as_ref().map_or(&self.root, |stand| &stand.memory);
            let branch = runner.branch(stand.as_deref(), path, memory, Aim::Moment, &mut watch);
            let mut branch = branch.map_err(|error| self.told(error, path))?;
            executed = executed.saturating_add(branch.instructions);
            self.account(branch.spent);
            let Some(derived) = branch.stand.take() else {
                anyhow::bail!("{}: no branch can go on from here", self.setting.name(path));
            };
            there += 1;
            let way = job.way.get(..there).unwrap_or_default();
            stand = Some(self.shelf.keep(way, branch.instructions, derived));
        }
        let memory = stand.as_ref().map_or(&self.root, |stand| &stand.memory);
        let path = &job.choice.path;
        let branch = runner.branch(stand.as_deref(), path, memory, Aim::Whole, &mut watch);
        let mut branch = branch.map_err(|error| self.told(error, path))?;
        executed = executed.saturating_add(branch.instructions);
        self.account(branch.spent);
        if let Some(kept) = branch.stand.take() {
            let mut way = job.way.clone();
            way.push((job.choice.number, path.clone()));
            self.shelf.keep(&way, branch.instructions, kept);
        }
        Ok(record(self.setting, job, branch, executed, clock.elapsed_ns()))
    }

    /// The error of a branch. One in which the host or the engine failed has no result: how far it came is not exact, and a record
    /// must be.
    fn told(&self, error: anyhow::Error, path: &Path) -> anyhow::Error {
        match error.downcast_ref::<Failed>() {
            Some(failed) => anyhow!(
                "{}: {failed}; nothing is recorded of this branch, and the exploration can be resumed",
                self.setting.name(path)
            ),
            None => error,
        }
    }

    /// Where the time of all workers went so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self, spent: Spent) {
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

/// Tells the leader, who would wait for the branch as long as other workers live, that its worker has panicked.
struct Farewell<'r> {
    number: u64,
    results: &'r Sender<Done>,
}

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // If nobody listens any more, nobody waits.
            let _ = self.results.send((self.number, Err(anyhow!("a worker has panicked"))));
        }
    }
}

/// A branch that ends when somebody says so.
struct Halt<'h>(&'h Interrupt);

impl Watch for Halt<'_> {
    fn at(&mut self, _: u64) -> bool {
        !self.0.wanted()
    }
}

/// What is written down of a branch.
fn record(setting: &Setting, job: &Job, branch: Branch, executed: u64, cpu_ns: u64) -> Record {
    let testimony = branch.testimony;
    let name = |node: Option<u16>| {
        let node = setting.launcher.world.nodes.get(usize::from(node?))?;
        Some(node.name.clone())
    };
    let hit = |Found { hit, evidence }: Found| Hit {
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
