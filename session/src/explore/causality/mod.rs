//! Finds the step that decided a finding. From moments of the finding's timeline it runs many *futures*, i.e. other
//! continuations of the timeline, and counts how many of them have the finding again.
//!
//! - this file: the search
//! - `steps`: events and messages of the finding's timeline, in order
//! - `moments`: moments from which futures start
//! - `futures`: runs futures from these moments, on all workers
//! - `code`: lists the guest code that ran in the interval of vtime in which the finding became likely
//!
//! Not here: the choice of the vtimes at which futures fork, and statistics (`everett_explorer::causality`).
//!
//! **Invariants.**
//! - The result of a future is a function of the setting (booted world, seed, properties), the finding's path, the
//!   vtime at which the future forks, and the future's number.
//! - The result after n futures does not depend on the number of workers. If a batch of futures is interrupted,
//!   the search uses only the results that precede the first missing one.

mod code;
mod futures;
mod moments;
mod steps;

use std::fmt;

use anyhow::bail;
use everett_explorer::causality::result::SCHEMA_VERSION;
use everett_explorer::causality::search;
use everett_explorer::causality::{
    Causality, CausalityEnd, Count, Cuts, Jump, JumpInterval, Point, Search, Vary,
};
use everett_explorer::fate::BranchEnd;
use everett_explorer::run::Finding;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;

use super::path_runner::Interrupted;
use super::replay::{Recorded, Replayed, replay};
use super::setting::Setting;
use super::shrink::Wanted;
use crate::run::edges::table::Names;
use crate::run::launch::Launcher;
use futures::{Future, Runners};
use moments::Moments;
use steps::Steps;

/// Options of a search.
#[derive(Debug, Clone, Copy)]
pub struct Options<'o> {
    /// Choices that each future draws for itself: random streams only, or the fault plan as well.
    pub vary: Vary,
    /// Maximum number of futures, and the accepted probability of a wrong result.
    pub limits: search::Limits,
    /// Number of futures that run in parallel.
    pub workers: usize,
    /// Maximum duration of the search, in nanoseconds of host time. `None` means no limit.
    pub host_ns: Option<u64>,
    /// Budget for the memory of moments, in bytes.
    pub memory_bytes: u64,
    /// Interrupt that ends the search.
    pub interrupt: &'o Interrupt,
    /// Opens the sources of the names of executed code.
    pub names: OpenNames<'o>,
}

/// Function that opens the sources of names of a world's code, for the launcher that starts the world.
#[derive(Clone, Copy)]
pub struct OpenNames<'o>(pub &'o dyn Fn(&Launcher) -> anyhow::Result<Names>);

impl fmt::Debug for OpenNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenNames")
    }
}

/// Progress of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CausalityProgress {
    /// The finding's timeline is being replayed and has reached this vtime, in nanoseconds.
    Replaying(u64),
    /// Futures are running.
    Futures {
        /// Number of futures so far.
        futures: u64,
        /// Interval of vtime in which the finding became likely, in nanoseconds, if one is known.
        between: Option<(u64, u64)>,
    },
}

/// Observer of a search.
pub trait Onlooker {
    /// Reports the progress.
    fn at(&mut self, progress: &CausalityProgress);

    /// Keeps the result so far. Called after each batch and at the end.
    ///
    /// # Errors
    /// An error ends the search.
    fn keep(&mut self, causality: &Causality) -> anyhow::Result<()>;
}

/// Conditions that end a search early.
struct Ending<'i> {
    interrupt: &'i Interrupt,
    clock: Stopwatch,
    host_ns: Option<u64>,
}

impl Ending<'_> {
    fn why(&self) -> Option<CausalityEnd> {
        let over = |ns: u64| self.clock.elapsed().as_nanos() >= u128::from(ns);
        match self.interrupt.wanted() {
            true => Some(CausalityEnd::Interrupted),
            false => self.host_ns.is_some_and(over).then_some(CausalityEnd::Budget),
        }
    }
}

/// Finds the step at which a finding became likely. `recorded` has the digests along the finding's path. Returns the
/// result, and the error that ended the search early, if one did.
///
/// # Errors
/// Returns an error if the finding cannot be replayed, or if `onlooker` returns one.
pub fn causality(
    setting: &Setting,
    finding: &Finding,
    recorded: &Recorded,
    options: &Options<'_>,
    onlooker: &mut dyn Onlooker,
) -> anyhow::Result<(Causality, Option<anyhow::Error>)> {
    let ending = Ending { interrupt: options.interrupt, clock: Stopwatch::start(), host_ns: options.host_ns };
    let Some(end) = setting.fates().end(&finding.path) else { bail!("the root moment has no finding") };
    let steps = steps_of(setting, finding, recorded, &ending, onlooker)?;
    let mut work = Work::new(setting, finding, end, options, &ending, steps)?;
    let (why, failed) = loop {
        let batch = work.search.batch();
        if batch.is_empty() {
            break (work.search.over().unwrap_or(CausalityEnd::Futures), None);
        }
        let error = work.batch(&batch, onlooker).err();
        let why = match error.as_ref() {
            None => ending.why(),
            Some(error) if error.is::<Interrupted>() => ending.why().or(Some(CausalityEnd::Interrupted)),
            Some(_) => Some(CausalityEnd::Failed),
        };
        if let Some(why) = why {
            break (why, error.filter(|_| why == CausalityEnd::Failed));
        }
        onlooker.keep(&work.result(CausalityEnd::Running))?;
    };
    let mut result = work.result(why);
    let code = match failed {
        None => work.code(&mut result),
        Some(_) => Ok(()),
    };
    onlooker.keep(&result)?;
    // The result is valid even without the list of executed code. An interrupt while Everett collects this list is
    // therefore no error.
    let failed = failed.or(code.err().filter(|error| !error.is::<Interrupted>()));
    Ok((result, failed))
}

/// Replays the finding's timeline. Returns its steps.
fn steps_of(
    setting: &Setting,
    finding: &Finding,
    recorded: &Recorded,
    ending: &Ending<'_>,
    onlooker: &mut dyn Onlooker,
) -> anyhow::Result<Steps> {
    let name = setting.name(&finding.path);
    let stop = || ending.why().is_some();
    let mut recorder = steps::Recorder::new(setting, finding.hit.vtime_ns, &stop, onlooker);
    match replay(setting, &finding.path, recorded, &mut recorder)? {
        Replayed::Same(branch) if Wanted::of(&finding.hit).in_branch(&branch).is_some() => {
            Ok(recorder.steps())
        }
        Replayed::Same(_) => bail!("{name} has its recorded trail, but the finding does not show again"),
        Replayed::Left { vtime_ns, .. } => {
            bail!("{name} leaves the recorded trail at {vtime_ns} ns of vtime; see everett replay")
        }
        Replayed::Ended(_) => bail!("ended before the finding's timeline was replayed once"),
    }
}

/// State of a search.
struct Work<'s, 'w> {
    setting: &'s Setting,
    finding: &'w Finding,
    end: BranchEnd,
    vary: Vary,
    error_ppm: u32,
    names: OpenNames<'w>,
    ending: &'w Ending<'w>,
    steps: Steps,
    cuts: Cuts,
    search: Search,
    moments: Moments<'s, 'w>,
    runners: Runners<'s>,
}

impl<'s, 'w> Work<'s, 'w> {
    fn new(
        setting: &'s Setting,
        finding: &'w Finding,
        end: BranchEnd,
        options: &'w Options<'_>,
        ending: &'w Ending<'w>,
        steps: Steps,
    ) -> anyhow::Result<Work<'s, 'w>> {
        // Futures start at the end of the path's last branch at the latest. If the finding is earlier than that end,
        // they start before the finding. The checks run after the end of the branch. The search therefore never tries
        // a step of the checks, even if a check reported the finding.
        let last_ns = end.at_ns.min(finding.hit.vtime_ns.saturating_sub(1)).max(setting.root_ns);
        let cuts = Cuts::new(setting.root_ns, last_ns, steps.times(last_ns));
        Ok(Work {
            setting,
            finding,
            end,
            vary: options.vary,
            error_ppm: options.limits.error_ppm,
            names: options.names,
            ending,
            search: Search::new(&cuts, options.limits),
            steps,
            cuts,
            moments: Moments::new(setting, &finding.path, options.memory_bytes)?,
            runners: Runners::new(setting, Wanted::of(&finding.hit), options.workers),
        })
    }

    /// Runs a batch of futures. If the batch is interrupted, the search gets only the results that precede the first
    /// missing one.
    fn batch(&mut self, batch: &[search::Ask], onlooker: &mut dyn Onlooker) -> anyhow::Result<()> {
        let stop = || self.ending.why().is_some();
        let places = batch.iter().map(|ask| self.cuts.at(ask.cut));
        let mut runner = self.runners.take()?;
        let moments = self.moments.get(&mut runner, places.collect(), &stop);
        self.runners.give(runner);
        let moments = moments?;
        let mut futures = Vec::with_capacity(batch.len());
        for ask in batch {
            let vtime_ns = self.cuts.at(ask.cut);
            let from = moments.get(&vtime_ns).cloned().flatten();
            futures.push(Future::new(
                &self.setting.fates(),
                &self.finding.path,
                vtime_ns,
                ask.number,
                self.vary,
                from,
            )?);
        }
        let (before, between) = (self.search.futures(), self.between());
        let mut done = 0;
        let (shown, error) = self.runners.run(&futures, self.end, &stop, &mut || {
            done += 1;
            onlooker.at(&CausalityProgress::Futures { futures: before + done, between });
        });
        self.search.tell(&shown);
        error.map_or(Ok(()), Err)
    }

    /// Adds to `result` the guest code that ran in the interval of vtime in which the finding became likely. Adds
    /// nothing if that interval is longer than [`code::INTERVAL_NS_MAX`].
    fn code(&mut self, result: &mut Causality) -> anyhow::Result<()> {
        let Some(jump) = &mut result.jump else { return Ok(()) };
        let (from_ns, to_ns) = (jump.from_ns, jump.to_ns.min(self.cuts.at(self.cuts.last())));
        if to_ns <= from_ns || to_ns - from_ns > code::INTERVAL_NS_MAX {
            return Ok(());
        }
        // The search is over, so only an interrupt can end the collection.
        let stop = || self.ending.interrupt.wanted();
        let before_ns = from_ns.saturating_sub(code::BEFORE_NS).max(self.setting.root_ns);
        let mut runner = self.runners.take()?;
        let moments = self.moments.get(&mut runner, vec![before_ns], &stop)?;
        let from = moments.get(&before_ns).cloned().flatten();
        let root = self.setting.inherited_at_boot()?;
        let (path, interval, names) = (&self.finding.path, (from_ns, to_ns), self.names.0);
        jump.code = code::between(self.setting, path, from, &root, interval, names, &stop)?;
        Ok(())
    }

    fn between(&mut self) -> Option<(u64, u64)> {
        let found = self.search.found()?;
        Some((self.cuts.at(found.from), self.until(&found)))
    }

    /// Returns the end of the interval in which the finding became likely, in nanoseconds.
    fn until(&self, found: &JumpInterval) -> u64 {
        found.to.map_or(self.finding.hit.vtime_ns, |to| self.cuts.at(to))
    }

    fn result(&mut self, why: CausalityEnd) -> Causality {
        let count = |(cut, count): (usize, Count)| Point { vtime_ns: self.cuts.at(cut), count };
        let points: Vec<Point> = self.search.counts().map(count).collect();
        let jump = self.search.found().map(|found| self.jump(&found));
        let mut result = Causality {
            schema_version: SCHEMA_VERSION,
            timeline: self.setting.name(&self.finding.path),
            property: self.finding.hit.property.clone(),
            signature: self.finding.hit.signature.clone(),
            found_ns: self.finding.hit.vtime_ns,
            root_ns: self.setting.root_ns,
            end_ns: self.end.at_ns,
            vary: self.vary,
            error_ppm: self.error_ppm,
            why,
            futures: self.search.futures(),
            points,
            jump,
            digest: String::new(),
        };
        result.digest = result.digest_of();
        result
    }

    fn jump(&self, found: &JumpInterval) -> Jump {
        let (from_ns, to_ns) = (self.cuts.at(found.from), self.until(found));
        let (before, within, after) = self.steps.around(from_ns, to_ns);
        Jump {
            from_ns,
            to_ns,
            before: self.search.count(found.from),
            after: found.to.map(|to| self.search.count(to)),
            probability_ppm: found.probability_ppm,
            is_narrowest: found.is_narrowest,
            steps_count: within.len() as u64,
            steps: steps::last(within, steps::WITHIN_MAX),
            steps_before: steps::last(before, steps::AROUND_MAX),
            steps_after: steps::first(after, steps::AROUND_MAX),
            context: steps::context(before, within, after),
            code: Vec::new(),
        }
    }
}
