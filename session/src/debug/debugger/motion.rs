//! Moves to what happened, and to instants.

use everett_input::units::Vtime;

use super::answer::{Answer, Reason};
use super::command::{Direction, Goal};
use super::entry::{Entry, Happened, Kind};
use super::error::Refused;
use super::index::{UNKNOWN, UNLISTED};
use super::points::is_log;
use super::{At, Debugger};
use crate::debug::cursor::position::Position;
use crate::debug::cursor::{Aim, Stop};

/// Place at which a debugger stood: the kind of place, its position, and the world's vtime there in nanoseconds.
pub(super) type Origin = (At, Position, u64);

/// Property by which a goal names entries.
#[derive(Clone, Copy)]
enum Named {
    Number,
    Regex,
    Data,
}

/// Returns an error if something is missing up to the vtime `until_ns`.
fn unless_cut(cut_ns: Option<u64>, until_ns: u64, what: &str) -> anyhow::Result<()> {
    match cut_ns {
        Some(cut_ns) if until_ns >= cut_ns => Err(Refused::because(format!(
            "too much happened: {what} from {} s on; goto VTIME and breakpoints at code still work",
            seconds(cut_ns)
        ))),
        _ => Ok(()),
    }
}

/// Returns a vtime in seconds as text.
fn seconds(vtime_ns: u64) -> String {
    Vtime(vtime_ns).to_string().trim().to_owned()
}

impl Debugger<'_> {
    /// Returns where the debugger stands, to return there.
    pub(super) fn origin(&self) -> Origin {
        let vtime_ns = if matches!(self.at, At::Node(_)) { self.cursor.vtime() } else { self.vtime() };
        (self.at, self.place(), vtime_ns)
    }

    /// Returns to where the debugger stood. Cannot be interrupted.
    pub(super) fn return_to(&mut self, (at, place, vtime_ns): Origin) -> anyhow::Result<()> {
        let aim = match at {
            At::Node(node) => Aim::Count { node, count: place.count },
            _ => Aim::Vtime(vtime_ns),
        };
        self.cursor.seek(aim, &mut ())?;
        self.at = at;
        Ok(())
    }

    /// Returns the number of entries before the current one.
    pub(super) fn before(&self) -> usize {
        match self.at {
            At::Entry(n) => n,
            _ => self.passed(),
        }
    }

    /// True if an entry is on the timeline, i.e. not from before the root moment.
    pub(super) fn is_reachable(&self, entry: &Entry) -> bool {
        entry.vtime_ns >= self.setting.root_ns && entry.vtime_ns <= self.cursor.end_ns()
    }

    /// Returns an error if not everything is known that happened between here and the vtime `until_ns`. `cut_ns` is the vtime
    /// from which something is missing, and `what` says what.
    pub(super) fn unless_cut(&self, cut_ns: Option<u64>, until_ns: u64, what: &str) -> anyhow::Result<()> {
        unless_cut(cut_ns, self.vtime().max(until_ns), what)
    }

    /// Returns an error if not all entries between here and the vtime `until_ns` are listed.
    pub(super) fn unless_unlisted(&self, until_ns: u64) -> anyhow::Result<()> {
        self.unless_cut(self.index.cut_ns(), until_ns, UNLISTED)
    }

    /// Says from which vtime on entries are missing, if that is before here.
    pub(super) fn unlisted(&self) -> Option<String> {
        self.unless_unlisted(0).err().map(|error| error.to_string())
    }

    pub(super) fn move_to_entry(&mut self, kind: Kind, direction: Direction) -> anyhow::Result<Answer> {
        let wanted = |entry: &Entry| entry.is(kind) && self.is_reachable(entry);
        let found = match direction {
            Direction::Forwards => self.index.next(self.passed(), wanted),
            Direction::Backwards => self.index.last(self.before(), wanted),
        };
        // All violations are listed.
        if kind != Kind::Finding {
            self.unless_unlisted(self.reaches(found, direction))?;
        }
        match found {
            Some(n) => self.stand_at(n),
            None => self.move_to_edge(direction),
        }
    }

    /// Returns the last vtime that a search reaches which has found an entry, in nanoseconds.
    pub(super) fn reaches(&self, found: Option<usize>, direction: Direction) -> u64 {
        let entry = found.and_then(|n| self.index.entries().get(n));
        match (entry, direction) {
            (Some(entry), _) => entry.vtime_ns,
            (None, Direction::Forwards) => self.cursor.end_ns(),
            (None, Direction::Backwards) => 0,
        }
    }

    /// Moves to the end of the timeline, or to its start.
    pub(super) fn move_to_edge(&mut self, direction: Direction) -> anyhow::Result<Answer> {
        let (vtime_ns, reason) = match direction {
            Direction::Forwards => (self.cursor.end_ns(), Reason::End),
            Direction::Backwards => (self.setting.root_ns, Reason::Start),
        };
        self.move_to_vtime(vtime_ns)?;
        Ok(self.stopped(reason))
    }

    /// Moves to a vtime.
    pub(super) fn move_to_vtime(&mut self, vtime_ns: u64) -> anyhow::Result<()> {
        let mut listener = self.listener();
        if let Stop::End(why) = self.cursor.seek(Aim::Vtime(vtime_ns), &mut listener)?
            && self.cursor.vtime() < vtime_ns
        {
            return Err(Refused::because(format!("the timeline does not reach this instant: {why}")));
        }
        self.at = At::Vtime;
        Ok(())
    }

    /// Moves to an entry.
    pub(super) fn stand_at(&mut self, n: usize) -> anyhow::Result<Answer> {
        let Some(entry) = self.index.entries().get(n) else { return Ok(self.stopped(Reason::Here)) };
        self.move_to_vtime(entry.vtime_ns)?;
        self.at = At::Entry(n);
        Ok(self.stopped(Reason::Entry))
    }

    pub(super) fn goto(&mut self, goal: &Goal) -> anyhow::Result<Answer> {
        let (now, start, end) = (self.vtime(), self.setting.root_ns, self.cursor.end_ns());
        let vtime_ns = match goal {
            Goal::Vtime(vtime_ns) => *vtime_ns,
            Goal::Later(by_ns) => now.saturating_add(*by_ns),
            Goal::Earlier(by_ns) => now.saturating_sub(*by_ns),
            Goal::Start => start,
            Goal::End => end,
            Goal::Log(regex, node) => {
                if let Some(node) = node {
                    self.node_named(node)?;
                }
                let wanted = |entry: &Entry| is_log(entry, regex, node.as_deref());
                return self.move_to_match(wanted, Named::Regex, "no log line of this timeline matches");
            }
            Goal::Message(number) => {
                let wanted =
                    |entry: &Entry| entry.message().is_some_and(|message| message.step.frame == *number);
                let none = "no message of this timeline has this number";
                return self.move_to_match(wanted, Named::Number, none);
            }
            Goal::MessageLike(regex) => {
                let wanted = |entry: &Entry| {
                    let data = entry.message().and_then(|message| message.data.as_deref());
                    data.is_some_and(|data| regex.is_match(data))
                };
                return self.move_to_match(wanted, Named::Data, "no message of this timeline matches");
            }
            Goal::Finding(name) => return self.move_to_finding(name.as_deref()),
        };
        if !(start..=end).contains(&vtime_ns) {
            return Err(Refused::because(format!(
                "{} s is not on this timeline, which goes from {} s to {} s",
                seconds(vtime_ns),
                seconds(start),
                seconds(end)
            )));
        }
        self.move_to_vtime(vtime_ns)?;
        Ok(self.stopped(Reason::Reached))
    }

    /// Moves to the next entry that `wanted` accepts, or else to the last one before this instant.
    fn move_to_match(
        &mut self,
        wanted: impl Fn(&Entry) -> bool,
        named: Named,
        none: &str,
    ) -> anyhow::Result<Answer> {
        let wanted = |entry: &Entry| wanted(entry) && self.is_reachable(entry);
        let next = self.index.next(self.passed(), wanted);
        let until_ns = self.reaches(next, Direction::Forwards);
        match named {
            // A number names few entries, and any of them will do.
            Named::Number if next.or_else(|| self.index.last(self.passed(), wanted)).is_some() => {}
            Named::Number | Named::Regex => self.unless_unlisted(until_ns)?,
            Named::Data => {
                self.unless_unlisted(until_ns)?;
                self.unless_cut(self.index.unknown_ns(), until_ns, UNKNOWN)?;
            }
        }
        match next.or_else(|| self.index.last(self.passed(), wanted)) {
            Some(n) => self.stand_at(n),
            None => Err(Refused::because(none)),
        }
    }

    fn move_to_finding(&mut self, name: Option<&str>) -> anyhow::Result<Answer> {
        let finding_ns = self.recorded.finding_ns.filter(|_| name.is_none());
        let wanted = |entry: &Entry| match &entry.what {
            Happened::Hit(hit) => {
                name.is_none_or(|name| name == hit.property)
                    && finding_ns.is_none_or(|at| at == entry.vtime_ns)
            }
            _ => false,
        };
        if let Some(n) = self.index.next(0, wanted) {
            return self.stand_at(n);
        }
        match (finding_ns, name) {
            (Some(vtime_ns), _) => {
                self.move_to_vtime(vtime_ns)?;
                Ok(self.stopped(Reason::Reached))
            }
            (None, Some(name)) => {
                Err(Refused::because(format!("no violation of {name} is recorded on this timeline")))
            }
            (None, None) => Err(Refused::because("no violation is recorded on this timeline")),
        }
    }

    /// Executes instructions of the node in focus, or goes back by as many.
    pub(super) fn instructions(&mut self, count: u64, direction: Direction) -> anyhow::Result<Answer> {
        let node = self.node;
        let here = self.cursor.position(node).count;
        let mut listener = self.listener();
        let stop = match direction {
            Direction::Forwards => {
                self.cursor.run(Aim::Count { node, count: here.saturating_add(count) }, &mut listener)?
            }
            Direction::Backwards => {
                let first = self.cursor.first_count(node);
                let target = here.saturating_sub(count);
                if target <= first {
                    return self.move_to_edge(Direction::Backwards);
                }
                if count == 1 {
                    self.cursor.step_back(node, &mut listener)?;
                    Stop::Reached
                } else {
                    self.cursor.seek(Aim::Count { node, count: target }, &mut listener)?
                }
            }
        };
        match stop {
            Stop::End(_) => {
                self.at = At::Vtime;
                Ok(self.stopped(Reason::End))
            }
            _ => {
                self.at = At::Node(node);
                Ok(self.stopped(Reason::Stepped))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_beyond_the_bound_of_the_list() {
        let refused = |until_ns| unless_cut(Some(2_000_000_000), until_ns, UNLISTED).err();
        assert!(refused(1_999_999_999).is_none() && unless_cut(None, u64::MAX, UNLISTED).is_ok());
        let why = "too much happened: what happens is not listed from 2.000000000 s on; goto VTIME and breakpoints at \
                   code still work";
        assert_eq!(refused(2_000_000_000).map(|error| error.to_string()).as_deref(), Some(why));
    }
}
