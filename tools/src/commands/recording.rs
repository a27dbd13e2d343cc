//! Recording of a finding's timeline while it is replayed: `timeline-N.jsonl` in the run directory, for the report.
//!
//! A line of the file has a kind, and a text in the form of evidence. Messages also have the time at which they were
//! sent.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use everett_input::units::Vtime;
use everett_session::event::{Event, What};
use everett_session::explore::witness::{message_line, plain_line};
use everett_vmm::wire::log::Step;
use serde::Serialize;

/// Maximum number of lines; the last ones are kept.
const LINES_MAX: usize = 40_000;
/// Maximum length of a text in bytes.
const TEXT_BYTES_MAX: usize = 2_000;

/// Line of the file.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kept<'l> {
    Line { text: &'l str },
    Message { text: &'l str, sent_ns: u64 },
    Fault { text: &'l str },
}

/// Returns the file of a finding's timeline in a run directory.
pub(super) fn file_of(run: &Path, finding: u32) -> PathBuf {
    run.join(format!("timeline-{finding}.jsonl"))
}

/// Timeline so far.
pub(super) struct Recording {
    nodes: Vec<String>,
    lines: VecDeque<String>,
}

impl Recording {
    /// Creates the recording of a timeline of these nodes.
    pub(super) fn new(nodes: &[String]) -> Recording {
        Recording { nodes: nodes.to_vec(), lines: VecDeque::new() }
    }

    pub(super) fn event(&mut self, event: &Event) {
        if let What::Fault { id, line } = &event.what {
            let text = format!("{} #{id} {}", Vtime(event.vtime_ns), line.trim_end());
            return self.add(&Kept::Fault { text: clip(&text) });
        }
        let text = plain_line(event, self.nodes.len() > 1);
        self.add(&Kept::Line { text: clip(&text) });
    }

    pub(super) fn message(&mut self, step: &Step) {
        let name = |port: u8| self.nodes.get(usize::from(port)).map_or("?", String::as_str);
        let text = message_line(step, &name);
        self.add(&Kept::Message { text: clip(&text), sent_ns: step.sent_at });
    }

    fn add(&mut self, line: &Kept<'_>) {
        // Serializing texts and numbers cannot fail.
        let Ok(line) = serde_json::to_string(line) else { return };
        if self.lines.len() >= LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Returns the contents of the file.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
