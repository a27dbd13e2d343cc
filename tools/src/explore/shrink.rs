//! A finding with the fewest faults: without forks if it can be, then fewer faults, then shorter ones.
//!
//! **Invariant.** What comes of it does not depend on how many runs are made at a time: of the sets of a round the first that shows
//! the finding is taken.

use std::thread;

use anyhow::{Context, bail};
use everett_explorer::fate::End;
use everett_explorer::plan::{Entry, Plan, What};
use everett_explorer::run::Hit;
use everett_explorer::search::Path;
use everett_explorer::shrink::Shrink;

use super::setting::Setting;
use super::traveller::{Branch, Interrupted, Route, Traveller, Watch};
use super::witness::Found;
use crate::interrupt::Interrupt;
use crate::worker::joined;

/// How often the time of a fault is halved.
const HALVINGS_MAX: u32 = 4;

/// What is to be shown again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The property.
    pub property: String,
    /// Its signature: any of the property's if there is none.
    pub signature: Option<String>,
}

impl Wanted {
    /// What was found.
    #[must_use]
    pub fn of(hit: &Hit) -> Wanted {
        Wanted { property: hit.property.clone(), signature: Some(hit.signature.clone()) }
    }

    /// Where a branch shows it.
    #[must_use]
    pub fn in_branch<'b>(&self, branch: &'b Branch) -> Option<&'b Found> {
        let signature = self.signature.as_deref();
        branch.testimony.found.iter().find(|found| {
            found.hit.property == self.property
                && signature.is_none_or(|wanted| wanted == found.hit.signature)
        })
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs that were made.
    pub runs: u64,
    /// Faults that are left.
    pub faults: usize,
}

/// What came of it.
#[derive(Debug)]
pub struct Shrunk {
    /// How it is run: a plan and an end of its own.
    pub route: Route,
    /// Faults that there were.
    pub faults_before: usize,
    /// What it shows.
    pub found: Found,
    /// Its trail's digest.
    pub trail: String,
    /// Runs that were made.
    pub runs: u64,
}

/// Shrink the finding of a path.
///
/// # Errors
/// It is not shown again; it cannot be run; somebody interrupts.
pub fn shrink(
    setting: &Setting,
    path: &Path,
    wanted: &Wanted,
    workers: usize,
    interrupt: &Interrupt,
    told: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Shrunk> {
    let fates = setting.fates();
    let end = fates.end(path).context("the root moment has no finding")?;
    let entries: Vec<Entry> = faults_before(&fates.plan(path), end.at_ns.saturating_sub(setting.root_ns));
    let faults_before = entries.len();
    let progress = Progress { runs: 0, faults: faults_before };
    let mut shrinker =
        Shrinker { setting, wanted, workers, interrupt, told, progress, travellers: Vec::new() };

    // Simpler is without forks: then it is a run of the world under a seed and a plan, and nothing else.
    let route = |path: &Path, entries: &[Entry]| -> anyhow::Result<Route> {
        let plan = Plan::new(entries.to_vec(), &setting.lens.names)?;
        Ok(Route { path: path.clone(), plan: Some(plan), end: Some(End { open: false, ..end }) })
    };
    let paths = [Path::default(), path.clone()];
    let routes = paths.iter().map(|path| route(path, &entries)).collect::<anyhow::Result<Vec<_>>>()?;
    let Some(first) = shrinker.first(&routes)? else {
        bail!(
            "{}: {} is not found again: the run is not exact, or the world has changed",
            setting.name(path),
            wanted.property
        );
    };
    let path = paths.get(first).cloned().unwrap_or_default();

    let mut kept = entries;
    let mut search = Shrink::new(kept.len());
    loop {
        let round = search.round();
        if round.is_empty() {
            break;
        }
        let sets = round.iter().map(|set| {
            let subset: Vec<Entry> = set.iter().filter_map(|&i| kept.get(i).cloned()).collect();
            route(&path, &subset)
        });
        let shows = shrinker.first(&sets.collect::<anyhow::Result<Vec<_>>>()?)?;
        search.tell(shows);
        shrinker.progress.faults = search.kept().len();
        (shrinker.told)(&shrinker.progress);
    }
    kept = search.kept().iter().filter_map(|&i| kept.get(i).cloned()).collect();
    for fault in 0..kept.len() {
        for _ in 0..HALVINGS_MAX {
            let mut shorter = kept.clone();
            let Some(lasts) =
                shorter.get_mut(fault).and_then(|entry| entry.for_ns.as_mut()).filter(|ns| **ns > 1)
            else {
                break;
            };
            *lasts /= 2;
            // A shorter one may be in the way of another no less.
            let Ok(shorter_route) = route(&path, &shorter) else { break };
            if shrinker.first(&[shorter_route])?.is_none() {
                break;
            }
            kept = shorter;
        }
    }
    let route = route(&path, &kept)?;
    let branch = shrinker.run(&route)?;
    let found = wanted.in_branch(&branch).cloned().context("what was just found is not found again")?;
    let trail = super::marks::digest(&branch.marks);
    Ok(Shrunk { route, faults_before, found, trail, runs: shrinker.progress.runs })
}

/// The faults of a plan that begin before a time.
fn faults_before(plan: &Plan, end_ns: u64) -> Vec<Entry> {
    let begins = |entry: &&Entry| entry.at_ns < end_ns && matches!(entry.what, What::Fault(_));
    plan.entries().iter().filter(begins).cloned().collect()
}

struct Shrinker<'s, 't> {
    setting: &'s Setting,
    wanted: &'t Wanted,
    workers: usize,
    interrupt: &'t Interrupt,
    told: &'t mut dyn FnMut(&Progress),
    progress: Progress,
    /// Those that have nothing to do.
    travellers: Vec<Traveller<'s>>,
}

impl<'s> Shrinker<'s, '_> {
    /// The first of these that shows it.
    fn first(&mut self, routes: &[Route]) -> anyhow::Result<Option<usize>> {
        for (chunk, routes) in routes.chunks(self.workers.max(1)).enumerate() {
            while self.travellers.len() < routes.len() {
                self.travellers.push(Traveller::new(self.setting)?);
            }
            let (wanted, interrupt) = (self.wanted, self.interrupt);
            let results: Vec<anyhow::Result<bool>> = thread::scope(|scope| {
                let runs = routes.iter().zip(&mut self.travellers).map(|(route, traveller)| {
                    scope.spawn(move || {
                        let branch = go(traveller, route, interrupt)?;
                        Ok(wanted.in_branch(&branch).is_some())
                    })
                });
                let runs: Vec<_> = runs.collect();
                runs.into_iter().map(joined).collect()
            });
            self.progress.runs += results.len() as u64;
            (self.told)(&self.progress);
            for (i, shown) in results.into_iter().enumerate() {
                if shown? {
                    return Ok(Some(chunk * self.workers.max(1) + i));
                }
            }
        }
        Ok(None)
    }

    fn run(&mut self, route: &Route) -> anyhow::Result<Branch> {
        let mut traveller = match self.travellers.pop() {
            Some(traveller) => traveller,
            None => Traveller::new(self.setting)?,
        };
        self.progress.runs += 1;
        go(&mut traveller, route, self.interrupt)
    }
}

fn go(traveller: &mut Traveller<'_>, route: &Route, interrupt: &Interrupt) -> anyhow::Result<Branch> {
    struct Until<'i>(&'i Interrupt);
    impl Watch for Until<'_> {
        fn at(&mut self, _: u64) -> bool {
            !self.0.wanted()
        }
    }
    let branches = traveller.journey(route, &mut Until(interrupt))?;
    branches.into_iter().next_back().ok_or_else(|| Interrupted.into())
}
