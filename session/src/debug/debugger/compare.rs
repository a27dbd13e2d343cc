//! Comparison with another timeline of the same world.

use everett_explorer::search::Path;

use super::answer::{Answer, Compared, Differing};
use super::differences::{self, Comparison, Difference};
use super::entry::Kind;
use super::error::Refused;
use super::observe::observe;
use super::text::line;
use super::{Debugger, Recorded};
use crate::debug::cursor::Cursor;

impl Debugger<'_> {
    /// Runs another recorded branch once, and moves to the first entry that differs after the common part of both
    /// timelines.
    ///
    /// # Errors
    /// See [`Debugger::run`].
    pub fn compare(&mut self, other: &Recorded) -> anyhow::Result<Answer> {
        let origin = self.origin();
        let answer = self.compare_with(other);
        self.settled(answer, origin)
    }

    fn compare_with(&mut self, other: &Recorded) -> anyhow::Result<Answer> {
        if other.path == self.recorded.path {
            return Err(Refused::because(format!("{} is this timeline", other.name)));
        }
        let common_ns = common_ns(&self.recorded, other);
        // The cursor only moves forwards, so it needs no moments.
        let mut cursor = Cursor::new(self.setting, &other.path, other.end_ns, 0)?;
        let goes_on = || !(self.interrupted)();
        let there = observe(self.setting, &other.path, &mut cursor, None, &[], &goes_on)?;
        let here = &self.index;
        let ends = (self.recorded.end_ns, other.end_ns);
        let sides = ((here, here.known_until_ns(ends.0)), (&there, there.known_until_ns(ends.1)));
        let all = |comparison| differences::differences(sides.0, sides.1, common_ns, comparison, &goes_on);
        let (exact, mattered) = (all(Comparison::Exact)?, all(Comparison::Template)?);
        let until = |of: fn(&(u64, u64)) -> u64| of(&exact.until_ns).min(of(&mattered.until_ns));
        let cut = |until_ns: u64, end_ns: u64| (until_ns < end_ns).then_some(until_ns);
        let cuts = [cut(until(|of| of.0), ends.0), cut(until(|of| of.1), ends.1)];
        let (exact, mattered) = (exact.first.into_iter().next(), mattered.first);
        let lines = |(what, difference): (Kind, Difference)| Differing {
            what,
            here: difference.here.and_then(|n| here.entries().get(n)).map(|entry| line(entry, &self.nodes)),
            there: difference
                .there
                .and_then(|n| there.entries().get(n))
                .map(|entry| line(entry, &self.nodes)),
        };
        let mut compared = Compared {
            other: other.name.clone(),
            common_ns,
            until_ns: cuts.into_iter().flatten().min(),
            first: exact.map(lines),
            mattered: mattered.iter().copied().map(lines).collect(),
            now: None,
        };
        if let Some((_, difference)) = mattered.first().copied().or(exact) {
            let at_ns = difference.there.and_then(|n| there.entries().get(n)).map(|entry| entry.vtime_ns);
            compared.now = match (difference.here, at_ns) {
                (Some(n), _) => stopped(self.stand_at(n)?),
                (None, Some(at_ns)) => {
                    self.move_to_vtime(at_ns.min(self.cursor.end_ns()))?;
                    stopped(self.stopped(super::Reason::Reached))
                }
                (None, None) => None,
            };
        }
        Ok(Answer::Compared(Box::new(compared)))
    }
}

fn stopped(answer: Answer) -> Option<Box<super::answer::Stopped>> {
    if let Answer::Stopped(stopped) = answer { Some(stopped) } else { None }
}

/// Returns the vtime up to which two branches are one timeline, in nanoseconds: their first fork that differs, or the end
/// of the shorter one.
fn common_ns(one: &Recorded, other: &Recorded) -> u64 {
    let forks = |path: &Path| path.forks().to_vec();
    let (ours, theirs) = (forks(&one.path), forks(&other.path));
    let same = ours.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
    let next =
        |all: &[everett_explorer::search::Fork], end_ns| all.get(same).map_or(end_ns, |fork| fork.vtime_ns);
    next(&ours, one.end_ns).min(next(&theirs, other.end_ns))
}
