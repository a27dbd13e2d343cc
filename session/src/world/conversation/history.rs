//! Lines that programs in a guest write to the history port, to report the operations of clients.
//!
//! The agent (Everett's program in the guest) gives the port to drivers (client programs) and checks, and does not read
//! their lines. So the agent cannot bound them, and this module bounds the size of the lines in each interval of vtime.
//! If a guest exceeds the bound, Everett ends the conversation with its agent and reports a finding, because a history
//! with gaps cannot be checked.
//!
//! **Invariant.** The events depend only on the bytes that programs write, and on the vtimes of these writes. They do
//! not depend on the vtime at which Everett collects the bytes.

use everett_protocol::limits::HISTORY_LINE_BYTES_MAX;
use everett_protocol::{LineCutter, PartialLine};
use serde::{Deserialize, Serialize};

use super::state_error::StateError;
use super::{Conversation, What};

/// Length of an interval, in nanoseconds of vtime. Everett collects the events of a conversation several times in
/// each interval.
const STRETCH_NS: u64 = 100_000_000;
/// Maximum size of the history lines in an interval, in bytes. Programs that format each line before they write it are
/// far too slow to reach this size.
const STRETCH_BYTES_MAX: u64 = 16 << 20;
/// Size added for each line, in bytes, so that many short lines exceed the bound as well.
const LINE_OVERHEAD_BYTES: u64 = 256;

// A line that fits here must also fit the reader of histories.
const _: () = assert!(HISTORY_LINE_BYTES_MAX == everett_linearizability::limits::HISTORY_LINE_BYTES_MAX);

/// The lines of an interval exceed [`STRETCH_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
struct Flood;

/// Splitter of the port's bytes into lines, with the bound on their size.
#[derive(Debug)]
pub(super) struct HistoryLines {
    cutter: LineCutter,
    /// Number of the current interval, and the size of its lines so far in bytes.
    stretch: u64,
    bytes: u64,
    /// True if an interval exceeded the bound.
    flooded: bool,
}

/// Stored state of [`HistoryLines`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HistoryState {
    pub(super) partial: PartialLine,
    pub(super) stretch: u64,
    pub(super) bytes: u64,
    pub(super) flooded: bool,
}

impl HistoryLines {
    pub(super) fn new() -> HistoryLines {
        HistoryLines { cutter: cutter(), stretch: 0, bytes: 0, flooded: false }
    }

    /// Drops the unfinished line, after a power loss.
    pub(super) fn restart(&mut self) {
        self.cutter = cutter();
    }

    /// Adds bytes that a program wrote at `vtime_ns`. Calls `emit` for each complete line that is not empty. The second
    /// argument of `emit` is true if the line was cut.
    ///
    /// # Errors
    /// Returns [`Flood`] when an interval exceeds the bound. Later calls succeed and emit no lines.
    fn push(&mut self, bytes: &[u8], vtime_ns: u64, mut emit: impl FnMut(String, bool)) -> Result<(), Flood> {
        if self.flooded {
            return Ok(());
        }
        let stretch = vtime_ns / STRETCH_NS;
        if stretch != self.stretch {
            (self.stretch, self.bytes) = (stretch, 0);
        }
        let (taken, flooded) = (&mut self.bytes, &mut self.flooded);
        self.cutter.push(bytes, |line| {
            if *flooded || line.bytes.is_empty() {
                return;
            }
            let text = String::from_utf8_lossy(&line.bytes).into_owned();
            *taken = taken.saturating_add(text.len() as u64 + LINE_OVERHEAD_BYTES);
            *flooded = *taken > STRETCH_BYTES_MAX;
            if !*flooded {
                emit(text, line.truncated);
            }
        });
        if self.flooded {
            self.restart();
            return Err(Flood);
        }
        Ok(())
    }

    pub(super) fn save(&self) -> HistoryState {
        let HistoryLines { cutter, stretch, bytes, flooded } = self;
        HistoryState { partial: cutter.partial(), stretch: *stretch, bytes: *bytes, flooded: *flooded }
    }

    /// Creates the splitter from its stored state.
    ///
    /// # Errors
    /// Returns an error if the state is inconsistent.
    pub(super) fn resume(state: HistoryState) -> Result<HistoryLines, StateError> {
        let HistoryState { partial, stretch, bytes, flooded } = state;
        if flooded != (bytes > STRETCH_BYTES_MAX) {
            return Err(StateError::Inconsistent(
                "its history is marked as flooded, but its size is within the bound, or the reverse",
            ));
        }
        let mut lines = HistoryLines { stretch, bytes, flooded, ..HistoryLines::new() };
        lines.cutter.restore(partial)?;
        Ok(lines)
    }
}

fn cutter() -> LineCutter {
    LineCutter::new(HISTORY_LINE_BYTES_MAX)
}

impl Conversation {
    /// Receives bytes that a program wrote to the history port at `vtime_ns`.
    pub(super) fn history(&mut self, bytes: &[u8], vtime_ns: u64) {
        let mut lines = Vec::new();
        let pushed = self.history.push(bytes, vtime_ns, |text, truncated| lines.push((text, truncated)));
        for (text, truncated) in lines {
            self.event(vtime_ns, What::History { text, truncated });
        }
        if pushed.is_err() {
            let (most, stretch) = (STRETCH_BYTES_MAX >> 20, STRETCH_NS / 1_000_000);
            self.unusable(vtime_ns, &format!("more than {most} MiB of history in {stretch} ms of vtime"));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the lines of these writes with their vtimes, the number of floods, and the last state. With `stored`,
    /// the state is stored and restored before each write.
    fn told(writes: &[(u64, Vec<u8>)], stored: bool) -> (Vec<(u64, String, bool)>, u32, HistoryState) {
        let (mut lines, mut told, mut floods) = (HistoryLines::new(), Vec::new(), 0);
        for (at, bytes) in writes {
            if stored {
                let state = postcard::to_stdvec(&lines.save()).unwrap();
                lines = HistoryLines::resume(postcard::from_bytes(&state).unwrap()).unwrap();
            }
            let pushed = lines.push(bytes, *at, |text, truncated| told.push((*at, text, truncated)));
            floods += u32::from(pushed.is_err());
        }
        (told, floods, lines.save())
    }

    fn line(at: u64, text: &str, truncated: bool) -> (u64, String, bool) {
        (at, text.to_owned(), truncated)
    }

    #[test]
    fn lines_are_stamped_with_the_write_that_ended_them() {
        let writes =
            [(1, b"{\"a\":1}\n{\"b\"".to_vec()), (2, b":2}".to_vec()), (3, b"\n\n\nx\xff\nrest".to_vec())];
        let (told, floods, state) = told(&writes, false);
        assert_eq!(
            told,
            [line(1, "{\"a\":1}", false), line(3, "{\"b\":2}", false), line(3, "x\u{fffd}", false)]
        );
        assert_eq!((floods, state.partial.bytes), (0, b"rest".to_vec()));
    }

    #[test]
    fn a_long_line_is_cut_and_marked() {
        let long = [vec![b'x'; HISTORY_LINE_BYTES_MAX + 5], b"\nnext\n".to_vec()].concat();
        let (told, ..) =
            told(&long.chunks(30_000).map(|chunk| (7, chunk.to_vec())).collect::<Vec<_>>(), true);
        assert_eq!(told, [line(7, &"x".repeat(HISTORY_LINE_BYTES_MAX), true), line(7, "next", false)]);
    }

    /// A program writes the shortest lines possible, as fast as possible.
    #[test]
    fn a_flood_is_reported_once_and_ends_the_history() {
        let write = |at| (at, b"y\n".repeat(16 << 10));
        let fit = STRETCH_BYTES_MAX / (1 + LINE_OVERHEAD_BYTES);
        let many: Vec<_> = (0..8).map(|i| write(STRETCH_NS + i)).chain([write(9 * STRETCH_NS)]).collect();
        let (lines, floods, state) = told(&many, true);
        assert_eq!((lines.len() as u64, floods), (fit, 1));
        assert!(state.flooded && state.partial == PartialLine::default(), "{state:?}");
        // The same number of lines in two intervals is no flood.
        let few: Vec<_> = (0..6).map(|i| write(i / 3 * STRETCH_NS)).collect();
        let (lines, floods, _) = told(&few, true);
        assert_eq!((lines.len(), floods), (6 * (16 << 10), 0));
    }

    #[test]
    fn inconsistent_history_states_are_refused() {
        let good = || told(&[(STRETCH_NS, b"a\nb".to_vec())], false).2;
        assert!(HistoryLines::resume(good()).is_ok());
        for state in [
            HistoryState { bytes: STRETCH_BYTES_MAX + 1, ..good() },
            HistoryState { flooded: true, ..good() },
            HistoryState { partial: PartialLine { bytes: b"a\n".to_vec(), skipping: false }, ..good() },
            HistoryState { partial: PartialLine { bytes: b"a".to_vec(), skipping: true }, ..good() },
        ] {
            assert!(HistoryLines::resume(state).is_err());
        }
    }

    proptest! {
        /// Bytes written at one vtime can arrive in pieces, and the state can be stored between any two pieces.
        #[test]
        fn lines_do_not_depend_on_how_bytes_arrive(
            writes in prop::collection::vec((0..5 * STRETCH_NS, "[a\n]{0,20}"), 0..20), cut in 1..9usize,
        ) {
            let mut writes: Vec<_> = writes.into_iter().map(|(at, text)| (at, text.into_bytes())).collect();
            writes.sort_by_key(|(at, _)| *at);
            let pieces: Vec<_> = writes
                .iter()
                .flat_map(|(at, bytes)| bytes.chunks(cut).map(move |piece| (*at, piece.to_vec())))
                .collect();
            let (whole, cut) = (told(&writes, false), told(&pieces, true));
            prop_assert_eq!(&whole.0, &cut.0);
            prop_assert_eq!(whole.2.partial, cut.2.partial);
            // Expected result: all non-empty lines, each with the vtime of its end.
            let mut begun = String::new();
            let mut lines = Vec::new();
            for (at, bytes) in &writes {
                for byte in bytes {
                    match byte {
                        b'\n' if begun.is_empty() => {}
                        b'\n' => lines.push((*at, std::mem::take(&mut begun), false)),
                        byte => begun.push(char::from(*byte)),
                    }
                }
            }
            prop_assert_eq!(whole.0, lines);
        }
    }
}
