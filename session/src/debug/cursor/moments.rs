//! Moments along a timeline, from which a cursor runs again. They are denser where the cursor last was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use everett_vmm::world::WorldMoment;

use super::{Aim, Cursor};
use crate::explore::branch_moment::bytes_beyond;
use crate::world::timeline::SessionState;

/// A first run leaves moments at multiples of this vtime only, in nanoseconds. Trails have a digest at the same vtimes, so
/// the pages are hashed anyway.
const EVERY_NS: u64 = 100_000_000;
/// Least number of instructions of all nodes between two moments that a first run leaves. Machines that mostly wait need
/// few moments, because running them again is cheap.
const APART_INSTRUCTIONS: u64 = 4_000_000;
/// Distances in vtime of the moments before an instant to which the cursor moves, in nanoseconds.
const BEFORE_NS: [u64; 6] = [50_000_000, 20_000_000, 8_000_000, 3_000_000, 1_000_000, 300_000];
/// Maximum number of moments, so that choosing one stays cheap.
const MOMENTS_MAX: usize = 512;

/// A moment of the timeline.
#[derive(Debug)]
pub(super) struct Kept {
    world: WorldMoment,
    session: SessionState,
    give_up_ns: Option<u64>,
    /// Number of instructions that each node has retired.
    counts: Vec<u64>,
    /// Approximate memory in bytes, without the pages shared with the moment before it when this one was taken.
    bytes: u64,
}

impl Kept {
    /// Returns the number of instructions that all nodes have executed.
    pub(super) fn executed(&self) -> u64 {
        self.counts.iter().copied().fold(0, u64::saturating_add)
    }

    /// Returns the approximate memory in bytes, without the pages shared with the moment before it.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// All moments of a cursor.
#[derive(Debug)]
pub(super) struct Moments {
    /// Moments by vtime in nanoseconds. The first is the root moment, which is always kept.
    kept: BTreeMap<u64, Arc<Kept>>,
    /// Vtimes at which the next run leaves moments.
    wanted: BTreeSet<u64>,
    budget_bytes: u64,
    /// True if runs leave moments.
    is_kept: bool,
}

impl Moments {
    pub(super) fn new(budget_bytes: u64) -> Moments {
        Moments { kept: BTreeMap::new(), wanted: BTreeSet::new(), budget_bytes, is_kept: true }
    }

    /// Returns no moments, of a cursor that leaves none.
    pub(super) fn none() -> Moments {
        Moments { is_kept: false, ..Moments::new(0) }
    }

    /// Returns the memory that moments may use, in bytes.
    pub(super) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Returns the vtime after `now` at which the run should stop and leave a moment.
    pub(super) fn next_after(&self, now: u64) -> u64 {
        if !self.is_kept {
            return u64::MAX;
        }
        let regular = (now / EVERY_NS + 1) * EVERY_NS;
        self.wanted.range(now + 1..).next().map_or(regular, |&wanted| wanted.min(regular))
    }

    /// True if the run should leave a moment at this vtime, at which the nodes have executed this number of instructions.
    pub(super) fn wants(&self, now: u64, executed: u64) -> bool {
        let last = self.kept.range(..now).next_back();
        let is_far =
            || executed.saturating_sub(last.map_or(0, |(_, last)| last.executed())) >= APART_INSTRUCTIONS;
        self.is_kept
            && !self.kept.contains_key(&now)
            && (self.wanted.contains(&now) || now.is_multiple_of(EVERY_NS) && is_far())
    }

    /// Returns the vtime of the last moment at which `aim` has not been passed.
    fn before(&self, aim: Aim) -> Option<u64> {
        let last = match aim {
            Aim::Vtime(vtime_ns) => self.kept.range(..=vtime_ns).next_back(),
            Aim::Count { node, count } => {
                self.kept.iter().rev().find(|(_, kept)| kept.counts.get(node).is_some_and(|&at| at <= count))
            }
        };
        last.map(|(&vtime_ns, _)| vtime_ns)
    }

    /// Returns all moments before `vtime_ns` with their vtimes, the latest first.
    pub(super) fn all_before(&self, vtime_ns: u64) -> impl Iterator<Item = (u64, Arc<Kept>)> {
        self.kept.range(..vtime_ns).rev().map(|(&at, kept)| (at, Arc::clone(kept)))
    }

    /// Returns the number of instructions that a node has retired at the root moment.
    pub(super) fn first_count(&self, node: usize) -> Option<u64> {
        self.kept.first_key_value()?.1.counts.get(node).copied()
    }

    /// Drops moments until the budget holds. Drops those first whose loss lengthens the way to an instant least,
    /// compared with the instant's distance from `here`.
    fn thin(&mut self, here: u64) {
        let mut bytes = self.kept.values().fold(0, |sum: u64, kept| sum.saturating_add(kept.bytes));
        while self.kept.len() > MOMENTS_MAX || bytes > self.budget_bytes {
            let vtimes: Vec<u64> = self.kept.keys().copied().collect();
            let cost = |gap: &[u64]| {
                let distance_ns = here.abs_diff(gap[1]).saturating_add(BEFORE_NS[BEFORE_NS.len() - 1]);
                u128::from(gap[2] - gap[0]) * (1 << 64) / u128::from(distance_ns)
            };
            let Some(least) = vtimes.windows(3).min_by_key(|gap| cost(gap)) else { return };
            if let Some(dropped) = self.kept.remove(&least[1]) {
                bytes = bytes.saturating_sub(dropped.bytes);
            }
        }
    }
}

impl Cursor<'_> {
    /// Keeps a moment of the timeline as it is now. All nodes must be at one vtime.
    pub(super) fn keep_moment(&mut self) {
        let now = self.timeline.vtime();
        let before = self.moments.kept.range(..now).next_back().map(|(_, before)| Arc::clone(before));
        let kept = Arc::new(self.moment_after(before.as_deref()));
        self.keep(now, kept);
    }

    /// Keeps a moment of this cursor or of another one on the same branch.
    pub(super) fn keep(&mut self, at_ns: u64, kept: Arc<Kept>) {
        self.moments.kept.insert(at_ns, kept);
        self.moments.thin(at_ns);
    }

    /// Returns a moment of the timeline as it is now. All nodes must be at one vtime. `before` is the moment before it.
    pub(super) fn moment_after(&mut self, before: Option<&Kept>) -> Kept {
        let counts = self.timeline.world().nodes().iter().map(|node| node.retired()).collect();
        let session = self.timeline.save();
        let world = self.timeline.world_mut().moment(&self.setting.pool);
        let bytes = before.map_or(0, |before| bytes_beyond(&world, &before.world));
        Kept { world, session, give_up_ns: self.give_up_ns, counts, bytes }
    }

    /// Restores the moment at the vtime `at_ns`.
    pub(super) fn restore(&mut self, at_ns: u64) -> anyhow::Result<()> {
        let Some(kept) = self.moments.kept.get(&at_ns).map(Arc::clone) else {
            anyhow::bail!("there is no moment at {at_ns} ns");
        };
        self.restore_kept(&kept)
    }

    /// Restores a moment of this cursor or of another one on the same branch.
    pub(super) fn restore_kept(&mut self, kept: &Kept) -> anyhow::Result<()> {
        self.setting.launcher.go_to(&mut self.timeline, &kept.world, kept.session.clone())?;
        let plan = self.setting.fates().plan(self.timeline.path());
        self.timeline.apply_faults(Some(self.setting.faults(plan)))?;
        (self.act_ns, self.give_up_ns, self.over) = (0, kept.give_up_ns, None);
        Ok(())
    }

    /// Restores the root moment.
    pub(super) fn restore_first(&mut self) -> anyhow::Result<()> {
        let first = self.moments.kept.first_key_value().map_or(0, |(&at_ns, _)| at_ns);
        self.restore(first)
    }

    /// Restores the last moment from which `aim` can be reached. Does nothing if the cursor is between that moment and
    /// `aim` already.
    pub(super) fn restore_before(&mut self, aim: Aim) -> anyhow::Result<()> {
        let is_before = match aim {
            Aim::Vtime(vtime_ns) => self.timeline.world().nodes().iter().all(|node| node.vtime() <= vtime_ns),
            Aim::Count { node, count } => self.node(node).retired() <= count,
        };
        match self.moments.before(aim) {
            Some(at_ns) if !is_before || at_ns > self.vtime() => self.restore(at_ns),
            _ => Ok(()),
        }
    }

    /// Makes the next run leave moments shortly before the vtime `near_ns`.
    pub(super) fn approach(&mut self, near_ns: u64) {
        self.moments.wanted = BEFORE_NS.iter().filter_map(|before| near_ns.checked_sub(*before)).collect();
    }
}
