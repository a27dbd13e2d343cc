//! The search for the last stop before an instant, on several cores.
//!
//! The moments divide the timeline into pieces, which need not wait for each other: each begins at its moment. The
//! cursor searches them from the latest to the earliest. If that takes long, helpers take pieces too. These are cursors
//! on the same branch with machines of their own. The stop in the latest piece is the result, whichever was found first,
//! so the result is the same with any number of helpers.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use everett_explorer::search::Path;

use super::moments::{Kept, Moments};
use super::position::Position;
use super::{Aim, Cursor, Listener, Stop};
use crate::explore::path_runner::Interrupted;
use crate::explore::setting::Setting;

/// Function that accepts stops: it returns a value for those that the caller wants.
pub type Wanted<'w, T> = &'w (dyn Fn(&Cursor<'_>, &Stop) -> Option<T> + Sync);

/// Vtime between two points in a piece at which a search can take a moment, in nanoseconds.
const PART_NS: u64 = 20_000_000;
/// Least number of instructions between two moments in a piece.
const PART_INSTRUCTIONS: u64 = 10_000_000;
/// Part of the cursor's budget that a moment in a piece may use: 1 divided by this number. Each cursor of a search holds at
/// most two of them, so that all use at most half of the budget.
const PIECE_MOMENT_PART: u64 = 4 * (HELPERS_MAX as u64 + 1);
/// Maximum number of helpers of a cursor.
const HELPERS_MAX: usize = 15;
/// Number of instructions after which a search asks for helpers. A shorter search ends before helpers have their
/// machines.
const ALONE_INSTRUCTIONS: u64 = 30_000_000;
/// Time between two looks at the operator's wish to interrupt while helpers still run.
const LOOK: Duration = Duration::from_millis(20);

/// A part of the timeline, from a moment to the next.
struct Piece {
    kept: Arc<Kept>,
    end_ns: u64,
}

/// A search, with the work that is left of it.
pub(super) struct Search<'w, T> {
    /// All pieces, the latest first.
    pieces: Vec<Piece>,
    from: Position,
    wanted: Wanted<'w, T>,
    /// Maximum memory of a moment in a piece, in bytes. A search keeps no larger ones.
    moment_bytes_max: u64,
    /// Number of the first piece that no cursor has taken.
    next: AtomicUsize,
    /// Numbers of pieces that a failed helper has given back.
    given_back: Mutex<BTreeSet<usize>>,
    /// Number of the latest piece in which a stop was found. Earlier pieces have higher numbers, and do not matter any
    /// more.
    latest: AtomicUsize,
    /// True if the operator has interrupted the search, or if the cursor itself has failed.
    is_over: AtomicBool,
}

/// The last stop in a piece that the search accepts.
pub(super) struct Found<T> {
    pub(super) position: Position,
    pub(super) stop: Stop,
    pub(super) value: T,
    /// The last moment in the piece before the stop, with its vtime in nanoseconds: from there, the stop is near.
    pub(super) near: Option<(u64, Arc<Kept>)>,
}

/// A stop with the number of its piece. `None` if nothing was found.
type Result<T> = anyhow::Result<Option<(usize, Found<T>)>>;

impl<'w, T> Search<'w, T> {
    /// Returns a search in the pieces before `from` that do not end before the vtime `since_ns`.
    pub(super) fn new(
        moments: &Moments,
        since_ns: u64,
        from: Position,
        wanted: Wanted<'w, T>,
    ) -> Search<'w, T> {
        let mut end_ns = from.vtime_ns.saturating_add(1);
        let mut pieces = Vec::new();
        for (at_ns, kept) in moments.all_before(end_ns) {
            if end_ns <= since_ns {
                break;
            }
            pieces.push(Piece { kept, end_ns });
            end_ns = at_ns;
        }
        let latest = AtomicUsize::new(pieces.len());
        let (next, given_back, is_over) = (AtomicUsize::new(0), Mutex::default(), AtomicBool::new(false));
        let moment_bytes_max = moments.budget_bytes() / PIECE_MOMENT_PART;
        Search { pieces, from, wanted, moment_bytes_max, next, given_back, latest, is_over }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// True if a piece can still change the result.
    fn needs(&self, piece: usize) -> bool {
        !self.is_over() && piece < self.latest.load(Ordering::Relaxed)
    }

    /// Takes the latest piece that is left. Those that were given back are later than those that no cursor has taken.
    fn take(&self) -> Option<usize> {
        let given_back = self.lock_given_back().pop_first();
        let piece = given_back.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed));
        Some(piece).filter(|piece| self.needs(*piece))
    }

    /// Leaves a piece for others.
    fn give_back(&self, piece: usize) {
        self.lock_given_back().insert(piece);
    }

    fn lock_given_back(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.given_back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of pieces that no cursor has taken.
    fn left(&self) -> usize {
        self.pieces.len().saturating_sub(self.next.load(Ordering::Relaxed))
    }
}

/// Listener to the run of one piece. Ends the run when the piece does not matter any more.
struct InPiece<'p, T> {
    search: &'p Search<'p, T>,
    piece: usize,
    listener: &'p mut dyn Listener,
}

impl<T> Listener for InPiece<'_, T> {
    fn goes_on(&mut self) -> bool {
        if !self.listener.goes_on() {
            self.search.is_over.store(true, Ordering::Relaxed);
        }
        self.search.needs(self.piece)
    }
}

impl<'s> Cursor<'s> {
    /// Returns the last stop that a search accepts. The timeline is anywhere then.
    pub(super) fn search<T: Send>(
        &mut self,
        search: &Search<'_, T>,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Option<Found<T>>> {
        let mut found = self.work(search, ALONE_INSTRUCTIONS, listener)?;
        if found.is_none() && !search.is_over() {
            let results = self.work_with_helpers(search, listener)?;
            found = results.into_iter().min_by_key(|(piece, _)| *piece);
        }
        if search.is_over() {
            return Err(Interrupted.into());
        }
        Ok(found.map(|(_, found)| found))
    }

    /// Searches all pieces that are left. Returns the stops that this cursor and the helpers have found.
    fn work_with_helpers<T: Send>(
        &mut self,
        search: &Search<'_, T>,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Vec<(usize, Found<T>)>> {
        let (setting, path, end_ns) = (self.setting, self.path.clone(), self.end_ns);
        let points = self.points.clone();
        let count = self.affordable_helpers().min(search.left().saturating_sub(1));
        let mut known = std::mem::take(&mut self.helpers);
        let mut results = Vec::with_capacity(count + 2);
        let own = thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            let (path, points) = (&path, &points);
            for _ in 0..count {
                let (send, known) = (send.clone(), known.pop());
                scope.spawn(move || {
                    let helper = known.map_or_else(|| Cursor::helper(setting, path.clone(), end_ns), Ok);
                    // Without machines for another helper, the search takes longer.
                    let Ok(mut helper) = helper else { return };
                    helper.set_points(points);
                    let result = helper.work(search, u64::MAX, &mut ());
                    // The receiver is gone only if its thread panics.
                    let _ = send.send((helper, result));
                });
            }
            drop(send);
            let own = self.work(search, u64::MAX, listener);
            if own.is_err() {
                search.is_over.store(true, Ordering::Relaxed);
            }
            loop {
                match receive.recv_timeout(LOOK) {
                    Ok((helper, Ok(found))) => {
                        known.push(helper);
                        results.extend(found);
                    }
                    // The helper's machines have failed, and it has given its piece back.
                    Ok((_, Err(_))) => {}
                    Err(RecvTimeoutError::Timeout) if listener.goes_on() => {}
                    Err(RecvTimeoutError::Timeout) => search.is_over.store(true, Ordering::Relaxed),
                    Err(RecvTimeoutError::Disconnected) => break own,
                }
            }
        });
        self.helpers = known;
        results.extend(own?);
        // Only this cursor is left for pieces that were given back.
        results.extend(self.work(search, u64::MAX, listener)?);
        Ok(results)
    }

    /// Searches pieces until one has a stop, none is left, or about `instructions_max` instructions were executed. After an
    /// error, the piece is left for others.
    fn work<T>(
        &mut self,
        search: &Search<'_, T>,
        instructions_max: u64,
        listener: &mut dyn Listener,
    ) -> Result<T> {
        let mut executed = 0_u64;
        while executed < instructions_max {
            let Some(number) = search.take() else { break };
            let piece = &search.pieces[number];
            let mut listener = InPiece { search, piece: number, listener: &mut *listener };
            let restored = self.restore_kept(&piece.kept);
            let before = self.timeline.icount();
            match restored.and_then(|()| self.last_in(piece, search, &mut listener)) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    search.latest.fetch_min(number, Ordering::Relaxed);
                    return Ok(Some((number, found)));
                }
                // A later piece has a stop, or the search is over.
                Err(error) if error.is::<Interrupted>() => break,
                Err(error) => {
                    search.give_back(number);
                    return Err(error);
                }
            }
            executed = executed.saturating_add(self.timeline.icount().saturating_sub(before));
        }
        Ok(None)
    }

    /// Runs from a piece's moment to its end, and returns the last stop that the search accepts. Nodes can be ahead of the
    /// node at [`Search::from`], and of the world's vtime.
    fn last_in<T>(
        &mut self,
        piece: &Piece,
        search: &Search<'_, T>,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Option<Found<T>>> {
        let (mut last, mut near, mut executed) = (None, None, piece.kept.executed());
        loop {
            let part_ns = (self.vtime() / PART_NS + 1) * PART_NS;
            let stop = self.run(Aim::Vtime(piece.end_ns.min(part_ns)), listener)?;
            if stop == Stop::Reached && part_ns < piece.end_ns {
                let now = self.timeline.icount();
                if now.saturating_sub(executed) >= PART_INSTRUCTIONS {
                    let kept = self.moment_after(Some(&piece.kept));
                    if kept.bytes() <= search.moment_bytes_max {
                        near = Some((part_ns, Arc::new(kept)));
                    }
                    executed = now;
                }
                continue;
            }
            let Some(node) = stop.node() else { return Ok(last) };
            let position = self.position(node);
            if !is_before(&stop, position, search.from) {
                continue;
            }
            if let Some(value) = (search.wanted)(self, &stop) {
                last = Some(Found { position, stop, value, near: near.clone() });
            }
        }
    }

    /// Creates a helper. Its timeline is at the root moment.
    fn helper(setting: &'s Setting, path: Path, end_ns: u64) -> anyhow::Result<Cursor<'s>> {
        let timeline = setting.launcher.resume(&setting.ready)?;
        Ok(Cursor::of(setting, path, end_ns, timeline, Moments::none()))
    }

    /// Returns the number of helpers for which there are cores and for whose machines the budget suffices.
    fn affordable_helpers(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let of_world = self.setting.launcher.nodes().map(|node| node.memory_bytes);
        let bytes = of_world.fold(0, u64::saturating_add).max(1);
        let affordable = usize::try_from(self.moments.budget_bytes() / bytes).unwrap_or(usize::MAX);
        (cores - 1).min(HELPERS_MAX).min(affordable)
    }
}

/// True if a stop lies before an instant: the node at the instant has not reached it, or another node is at an earlier
/// vtime.
fn is_before(stop: &Stop, position: Position, from: Position) -> bool {
    if position.node != from.node {
        return position < from;
    }
    match stop {
        // The instruction that made the access or the change lies before the stop.
        Stop::Access { .. } | Stop::ModeChange { .. } => position.count <= from.count,
        _ => position.count < from.count,
    }
}
