//! Output: text or JSON lines on standard output, progress and errors on standard error.
//!
//! * [`Ui`]: choice between text and JSON lines
//! * [`exploration_facts`]: facts that displays of an exploration show
//! * [`live`]: live view of an exploration; `no_live` replaces it in builds without the feature `view`
//! * [`progress`]: progress bars
//! * [`style`]: colours of text
//!
//! **Invariants.** With `--json`, standard output has only JSON lines. Bars and colours appear only on terminals.
//! Text from a guest never reaches a terminal with control characters: commands pass it through [`printable`], and
//! [`Ui`] removes every escape sequence except its own colours.

#[cfg_attr(not(feature = "view"), expect(dead_code, reason = "only the live view shows all facts"))]
pub(crate) mod exploration_facts;
#[cfg(feature = "view")]
pub(crate) mod live;
#[cfg(not(feature = "view"))]
pub(crate) mod no_live;
pub(crate) mod progress;

#[cfg(not(feature = "view"))]
pub(crate) use no_live as live;

use std::io::{self, IsTerminal, Write};

pub(crate) use everett_input::text::printable;
use everett_input::text::{self, painted};
use everett_session::output::progress::{Display, Progress, Task};
pub(crate) use everett_session::output::style;
use serde::Serialize;

use progress::{RunBar, StageBar};

/// Choice between text and JSON lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    /// True to write JSON lines instead of text.
    pub json: bool,
    /// True to show progress bars on standard error.
    pub bars: bool,
}

impl Ui {
    /// Creates the output of this process. Progress bars show if standard error is a terminal and `json` is false.
    #[must_use]
    pub(crate) fn new(json: bool) -> Ui {
        Ui { json, bars: !json && io::stderr().is_terminal() }
    }

    /// Prints a line of text. Does nothing with `--json`.
    pub(crate) fn say(&self, line: impl AsRef<str>) -> io::Result<()> {
        if self.json { Ok(()) } else { self.write(&painted(line.as_ref())) }
    }

    /// Prints text of a guest's console unchanged. The caller has made the text safe for a terminal
    /// (`everett_input::text::Console`). Does nothing with `--json`.
    pub(crate) fn pass(&self, text: &str) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Prints a record as a JSON line. Does nothing without `--json`.
    pub(crate) fn record(&self, record: &impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let line = serde_json::to_string(record).map_err(io::Error::other)?;
        self.write(&text::json(&line))
    }

    fn write(&self, line: &str) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

impl Progress for Ui {
    fn note(&self, line: &str) -> io::Result<()> {
        self.say(line)
    }

    fn begin(&self, task: Task) -> Box<dyn Display + '_> {
        match task {
            Task::Image => Box::new(StageBar::new(self)),
            Task::Boot => Box::new(RunBar::endless(self, "booting")),
        }
    }
}
