//! Moments of a finding's timeline, from which futures start. A future is a rerun that follows the timeline up to the
//! moment, and from there on draws its own random numbers and faults.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use everett_explorer::search::Path;

use super::super::branch_moment::BranchMoment;
use super::super::path_runner::{PathRunner, Uninterrupted};
use super::super::setting::Setting;
use super::super::witness::Inherited;

/// Moments by vtime in nanoseconds. `None` is the root moment.
pub(super) type Places = BTreeMap<u64, Option<Arc<BranchMoment>>>;

/// Store of moments with a memory budget. A moment shares pages with the moment before it. The size of a moment does
/// not count these shared pages.
pub(super) struct Moments<'s, 'w> {
    setting: &'s Setting,
    path: &'w Path,
    root: Inherited,
    kept: BTreeMap<u64, (u64, Arc<BranchMoment>)>,
    budget_bytes: u64,
}

impl<'s, 'w> Moments<'s, 'w> {
    pub(super) fn new(
        setting: &'s Setting,
        path: &'w Path,
        budget_bytes: u64,
    ) -> anyhow::Result<Moments<'s, 'w>> {
        let root = setting.inherited_at_boot()?;
        Ok(Moments { setting, path, root, kept: BTreeMap::new(), budget_bytes })
    }

    /// Returns the moments at these vtimes. A missing moment is derived from the nearest stored moment before it.
    pub(super) fn get(
        &mut self,
        runner: &mut PathRunner<'s>,
        mut places: Vec<u64>,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Places> {
        places.sort_unstable();
        places.dedup();
        let mut all = Places::new();
        for at_ns in places {
            let moment = match at_ns <= self.setting.root_ns {
                true => None,
                false => Some(self.at(runner, at_ns, stop)?),
            };
            all.insert(at_ns, moment);
        }
        self.shrink(&all);
        Ok(all)
    }

    fn at(
        &mut self,
        runner: &mut PathRunner<'s>,
        at_ns: u64,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Arc<BranchMoment>> {
        let before = self.kept.range(..=at_ns).next_back();
        if let Some((&kept_ns, (_, moment))) = before
            && kept_ns == at_ns
        {
            return Ok(Arc::clone(moment));
        }
        let from = before.map(|(_, (_, moment))| Arc::clone(moment));
        let moment =
            runner.rewind(self.path, from.as_deref(), at_ns, &self.root, &mut Uninterrupted(stop))?;
        let moment = Arc::new(moment);
        self.kept.insert(at_ns, (0, Arc::clone(&moment)));
        self.measure(at_ns);
        self.measure_next(at_ns);
        Ok(moment)
    }

    /// Updates the size of the moment at `at_ns`.
    fn measure(&mut self, at_ns: u64) {
        let before = self.kept.range(..at_ns).next_back().map(|(_, (_, moment))| Arc::clone(moment));
        let Some((bytes, moment)) = self.kept.get_mut(&at_ns) else { return };
        *bytes = match before {
            Some(before) => moment.bytes_beyond(&before.world, &before.memory.chain),
            None => moment.bytes_beyond(&self.setting.ready.moment, &self.root.chain),
        };
    }

    /// Updates the size of the first moment after `at_ns`.
    fn measure_next(&mut self, at_ns: u64) {
        let next = self.kept.range((Bound::Excluded(at_ns), Bound::Unbounded)).next();
        if let Some(&next_ns) = next.map(|(next_ns, _)| next_ns) {
            self.measure(next_ns);
        }
    }

    fn bytes(&self) -> u64 {
        self.kept.values().map(|(bytes, _)| *bytes).fold(0, u64::saturating_add)
    }

    /// Drops moments over the budget. The moments farthest from `needed` are dropped first.
    fn shrink(&mut self, needed: &Places) {
        let distance = |at: u64| {
            let below = needed.range(..=at).next_back().map(|(needed, _)| at - needed);
            let above = needed.range(at..).next().map(|(needed, _)| needed - at);
            below.into_iter().chain(above).min().unwrap_or(u64::MAX)
        };
        let mut farthest: Vec<u64> = self.kept.keys().copied().collect();
        farthest.sort_by_key(|at| distance(*at));
        while self.bytes() > self.budget_bytes
            && let Some(at) = farthest.pop()
        {
            self.kept.remove(&at);
            self.measure_next(at);
        }
    }
}
