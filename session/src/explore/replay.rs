//! Replay of a branch from its path. The digests are compared with the recorded digests on the way.

use std::collections::BTreeMap;

use anyhow::bail;
use everett_cpu::Edge;
use everett_explorer::run::{Reading, Record};
use everett_explorer::search::Path;
use everett_vmm::digest::Digest;
use everett_vmm::wire::log::FrameStep;
use everett_vmm::world::Captured;

use super::marks::short;
use super::path_runner::{Branch, Interrupted, PathRunner, Route, Watch, ended_early};
use super::setting::Setting;
use crate::world::event::Event;

/// Recorded digests along a path, by vtime in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Recorded(BTreeMap<u64, String>);

impl Recorded {
    /// Collects the recorded digests of a branch and its ancestors from a run directory.
    ///
    /// # Errors
    /// Returns an error if the run directory is damaged.
    pub fn of(reading: &Reading, record: &Record) -> anyhow::Result<Recorded> {
        let mut marks = BTreeMap::new();
        let mut until_ns = u64::MAX;
        let mut next = Some(record.clone());
        while let Some(record) = next {
            // An ancestor runs its final checks after the fork. They are not on this path, so their digests are left
            // out.
            let of_way = record.marks.iter().filter(|(at, _)| *at <= until_ns);
            marks.extend(of_way.map(|(at, digest)| (*at, digest.clone())));
            until_ns = record.path.forks().last().map_or(0, |fork| fork.vtime_ns);
            next = record.from.map(|choice| reading.get(choice)).transpose()?.flatten();
        }
        Ok(Recorded(marks))
    }

    /// Returns the shortened digests by vtime in nanoseconds.
    #[must_use]
    pub fn digests(&self) -> &BTreeMap<u64, String> {
        &self.0
    }

    /// Returns the number of recorded digests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no digest is recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Result of a replay.
#[derive(Debug)]
pub enum Replayed {
    /// All digests of the replay equal the recorded digests.
    Same(Box<Branch>),
    /// A digest of the replay differs from the recorded digest.
    Left {
        /// Vtime of the first different digest, in nanoseconds.
        vtime_ns: u64,
        /// Recorded digest, shortened to eight bytes.
        recorded: String,
        /// Digest of the replay, shortened to eight bytes.
        came: String,
    },
    /// The caller's `watch` ended the replay at this vtime, in nanoseconds.
    Ended(u64),
}

/// Replays a path and compares its digests with `recorded`.
///
/// # Errors
/// Returns an error if the path cannot be run to its end.
pub fn replay(
    setting: &Setting,
    path: &Path,
    recorded: &Recorded,
    watch: &mut dyn Watch,
) -> anyhow::Result<Replayed> {
    let mut compare = Compare { recorded, watch, left: None };
    let mut runner = PathRunner::new(setting)?;
    match runner.journey(&Route::along(path.clone()), &mut compare) {
        Ok(branches) => match (ended_early(&branches, path), branches.into_iter().next_back()) {
            (Some(early), _) => bail!("{}: {early}", setting.name(path)),
            (None, Some(last)) => Ok(Replayed::Same(Box::new(last))),
            (None, None) => Ok(Replayed::Ended(runner.timeline().vtime())),
        },
        Err(error) if error.is::<Interrupted>() => Ok(match compare.left {
            Some((vtime_ns, recorded, came)) => Replayed::Left { vtime_ns, recorded, came },
            None => Replayed::Ended(runner.timeline().vtime()),
        }),
        Err(error) => Err(error),
    }
}

struct Compare<'c> {
    recorded: &'c Recorded,
    watch: &'c mut dyn Watch,
    left: Option<(u64, String, String)>,
}

impl Watch for Compare<'_> {
    fn event(&mut self, event: &Event) {
        self.watch.event(event);
    }

    fn message(&mut self, step: &FrameStep) {
        self.watch.message(step);
    }

    fn frames(&mut self, frames: &[Captured]) {
        self.watch.frames(frames);
    }

    fn mark(&mut self, vtime_ns: u64, digest: Digest) -> bool {
        let came = short(digest);
        if let Some(recorded) = self.recorded.0.get(&vtime_ns)
            && *recorded != came
        {
            self.left = Some((vtime_ns, recorded.clone(), came));
            return false;
        }
        self.watch.mark(vtime_ns, digest)
    }

    fn edges(&mut self, node: usize, edges: &[Edge]) {
        self.watch.edges(node, edges);
    }

    fn at(&mut self, vtime_ns: u64) -> bool {
        self.watch.at(vtime_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first different digest ends a replay. Vtimes without a recorded digest are not compared.
    #[test]
    fn a_replay_ends_where_it_leaves_the_recorded_trail() {
        let digest = |byte| Digest([byte; 32]);
        let recorded = Recorded([(10, short(digest(1))), (30, short(digest(3)))].into());
        let mut compare = Compare { recorded: &recorded, watch: &mut (), left: None };
        assert!(compare.mark(10, digest(1)) && compare.mark(20, digest(9)));
        assert_eq!(compare.left, None);
        assert!(!compare.mark(30, digest(4)));
        assert_eq!(compare.left, Some((30, "0303030303030303".to_owned(), "0404040404040404".to_owned())));
    }
}
