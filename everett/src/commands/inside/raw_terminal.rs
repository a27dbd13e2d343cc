//! The user's terminal, while it shows a terminal of a guest.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use everett_host::time::Stopwatch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Number of bytes that one read takes from the keyboard.
const READ_BYTES: usize = 4096;

/// Escape sequences that undo what a guest's program can leave behind: colours, a hidden cursor, the alternate screen,
/// reports of the mouse, and brackets around pasted text.
const RESTORE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?2004l";

/// The terminal in raw mode: keys come as bytes, at once, and without an effect of their own. The drop restores it.
pub(super) struct RawTerminal {
    saved: Termios,
}

/// True if standard input and output are a terminal.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns the rows and columns of the terminal.
pub(super) fn size() -> (u16, u16) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    }
}

impl RawTerminal {
    /// Puts the terminal into raw mode.
    pub(super) fn enter() -> io::Result<RawTerminal> {
        let saved = tcgetattr(io::stdin())?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(RawTerminal { saved })
    }

    /// Waits at most `wait` for keys. Returns an empty list if none came, and `None` if the terminal is gone.
    pub(super) fn keys(&self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let stdin = io::stdin();
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Some(Vec::new())),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut keys = vec![0; READ_BYTES];
        match rustix::io::read(&stdin, &mut keys) {
            Ok(0) | Err(Errno::IO) => Ok(None),
            Ok(length) => {
                keys.truncate(length);
                Ok(Some(keys))
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(Some(Vec::new())),
            Err(error) => Err(error.into()),
        }
    }

    /// Shows bytes of the guest's terminal. They can control this terminal, as those of any shell on another machine can.
    pub(super) fn show(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Without a terminal, there is nothing to restore.
        let _ = self.show(RESTORE.as_bytes());
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.saved);
    }
}

/// Pace of an interactive fork: vtime goes on about as fast as host time, so that timers of the guest behave as a person
/// expects. Host time only decides how far the fork runs, and the fork is thrown away: no recorded timeline depends on it.
pub(super) struct Pace {
    watch: Stopwatch,
    /// Vtime at which the pace began, in nanoseconds. It is moved when the fork falls behind.
    from_ns: u64,
}

/// Vtime by which an interactive fork may fall behind host time, in nanoseconds. A fork that is slower does not catch up, so that
/// keys have an effect soon.
const BEHIND_NS_MAX: u64 = 20_000_000;

impl Pace {
    /// Begins at the vtime `now_ns`.
    pub(super) fn from(now_ns: u64) -> Pace {
        Pace { watch: Stopwatch::start(), from_ns: now_ns }
    }

    /// Returns the vtime up to which a fork at the vtime `now_ns` may run.
    pub(super) fn due_ns(&mut self, now_ns: u64) -> u64 {
        let passed_ns = u64::try_from(self.watch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.due_after(passed_ns, now_ns)
    }

    fn due_after(&mut self, passed_ns: u64, now_ns: u64) -> u64 {
        let due_ns = self.from_ns.saturating_add(passed_ns);
        let late_ns = due_ns.saturating_sub(now_ns).saturating_sub(BEHIND_NS_MAX);
        self.from_ns = self.from_ns.saturating_sub(late_ns);
        due_ns - late_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_runs_as_fast_as_host_time_and_does_not_catch_up() {
        const S: u64 = 1_000_000_000;
        let mut pace = Pace::from(100 * S);
        assert_eq!(pace.due_after(S / 100, 100 * S), 100 * S + S / 100);
        assert_eq!(
            pace.due_after(5 * S, 100 * S + S / 100),
            100 * S + S / 100 + BEHIND_NS_MAX,
            "it was slow"
        );
        let next = pace.due_after(5 * S + S / 100, 100 * S + S / 100 + BEHIND_NS_MAX);
        assert_eq!(next, 100 * S + 2 * S / 100 + BEHIND_NS_MAX);
        let mut late = Pace::from(0);
        assert_eq!(late.due_after(u64::MAX, 0), BEHIND_NS_MAX);
    }
}
