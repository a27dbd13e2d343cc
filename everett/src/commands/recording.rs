//! Records the timeline of a finding or of another branch while it is replayed. The report reads the result,
//! `timeline-N.jsonl` for finding N or `branch-N.jsonl` for branch N, in the run directory.
//!
//! The first line of the file contains the path and the trail of the timeline. Each later line has a kind and a text.
//! The text has the same format as in the evidence of a finding. Messages also have the time at which they were sent.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use everett_input::units::Vtime;
use everett_session::explore::witness::{message_line, plain_line};
use everett_session::output::replace::replace;
use everett_session::world::event::{Event, What};
use everett_vmm::wire::log::FrameStep;
use serde::{Deserialize, Serialize};

/// Maximum number of lines. In a longer recording the last lines stay.
const LINES_MAX: usize = 40_000;
/// Maximum length of a text in bytes.
const TEXT_BYTES_MAX: usize = 2_000;

/// Maximum length of the first line in bytes. A path has up to 64 forks of 41 bytes each.
const FIRST_BYTES_MAX: u64 = 16 << 10;

/// Line of the file.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kept<'l> {
    Timeline { path: &'l str, trail: &'l str, left_out: u64 },
    Line { text: &'l str },
    Message { text: &'l str, sent_ns: u64 },
    Fault { text: &'l str },
}

/// Subject of a recording. It determines the name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Timeline of the first branch that showed this finding.
    Finding(u32),
    /// Timeline of a branch, without its messages.
    Branch(u64),
}

/// Returns the file of a recorded timeline in a run directory.
pub(super) fn file_of(run: &Path, key: Key) -> PathBuf {
    run.join(match key {
        Key::Finding(finding) => format!("timeline-{finding}.jsonl"),
        Key::Branch(branch) => format!("branch-{branch}.jsonl"),
    })
}

/// True if the file holds the timeline of a branch with this path and trail, from an earlier recording.
pub(super) fn is_recorded(run: &Path, key: Key, path: &str, trail: &str) -> bool {
    #[derive(Deserialize)]
    struct First {
        path: String,
        trail: String,
    }
    let Ok((file, _)) = everett_input::file::open(&file_of(run, key)) else { return false };
    let mut line = String::new();
    let read = BufReader::new(file).take(FIRST_BYTES_MAX).read_line(&mut line);
    let first = read.ok().and_then(|_| serde_json::from_str::<First>(&line).ok());
    first.is_some_and(|first| first.path == path && first.trail == trail)
}

/// Recording in progress.
pub(super) struct Recording {
    nodes: Vec<String>,
    lines: VecDeque<String>,
    /// Number of lines that were dropped because of [`LINES_MAX`].
    left_out: u64,
}

impl Recording {
    /// Creates an empty recording of a timeline with these nodes.
    pub(super) fn new(nodes: &[String]) -> Recording {
        Recording { nodes: nodes.to_vec(), lines: VecDeque::new(), left_out: 0 }
    }

    pub(super) fn event(&mut self, event: &Event) {
        if let What::Fault { id, line } = &event.what {
            let text = format!("{} #{id} {}", Vtime(event.vtime_ns), line.trim_end());
            return self.add(&Kept::Fault { text: clip(&text) });
        }
        let text = plain_line(event, self.nodes.len() > 1);
        self.add(&Kept::Line { text: clip(&text) });
    }

    pub(super) fn message(&mut self, step: &FrameStep) {
        let name = |port: u8| self.nodes.get(usize::from(port)).map_or("?", String::as_str);
        let text = message_line(step, &name);
        self.add(&Kept::Message { text: clip(&text), sent_ns: step.sent_at });
    }

    fn add(&mut self, line: &Kept<'_>) {
        // Serializing texts and numbers cannot fail.
        let Ok(line) = serde_json::to_string(line) else { return };
        if self.lines.len() >= LINES_MAX {
            self.lines.pop_front();
            self.left_out += 1;
        }
        self.lines.push_back(line);
    }

    /// Writes the recording to its file, with the path and the trail of its branch. Returns the path of the file.
    pub(super) fn write(&self, run: &Path, key: Key, path: &str, trail: &str) -> anyhow::Result<PathBuf> {
        let first = Kept::Timeline { path, trail, left_out: self.left_out };
        let first = serde_json::to_string(&first)?;
        let lines = [&first].into_iter().chain(&self.lines);
        let file = file_of(run, key);
        replace(&file, &lines.map(|line| format!("{line}\n")).collect::<String>())?;
        Ok(file)
    }
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use everett_report::scene::Scene;
    use everett_vmm::wire::log::FrameStepKind;
    use everett_vmm::wire::summary::Summary;

    use super::*;

    fn message(vtime: u64, sent_at: u64) -> FrameStep {
        FrameStep {
            kind: FrameStepKind::Deliver,
            vtime,
            sent_at,
            from: 0,
            to: Some(1),
            frame: 0,
            len: 60,
            flipped: false,
            summary: Summary::Other { ether_type: 0 },
        }
    }

    /// Writes a recording, and reads it as the report does.
    fn read_back(recording: &Recording) -> (String, Scene) {
        let run = tempfile::tempdir().unwrap();
        let file = recording.write(run.path(), Key::Branch(3), "1000.1", "aa").unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let scene = Scene::of_branch(&recording.nodes, &text).unwrap();
        (text, scene)
    }

    #[test]
    fn messages_have_the_time_at_which_they_were_sent() {
        let mut recording = Recording::new(&["a".to_owned(), "b".to_owned()]);
        recording.message(&message(2_000_000_001, 1_500_000_000));
        let (_, scene) = read_back(&recording);
        let [message] = scene.messages.as_slice() else { panic!("{scene:?}") };
        assert_eq!((message.sent_ns, message.at_ns), (Some(1_500_000_000), 2_000_000_001));
        assert_eq!((message.from, message.to), (0, 1));
    }

    #[test]
    fn the_last_lines_are_kept_and_the_others_are_counted() {
        let mut recording = Recording::new(&["a".to_owned(), "b".to_owned()]);
        let count = LINES_MAX as u64 + 3;
        (0..count).for_each(|n| recording.message(&message(n, n)));
        assert_eq!((recording.lines.len(), recording.left_out), (LINES_MAX, 3));
        let (text, scene) = read_back(&recording);
        assert_eq!(text.lines().count(), LINES_MAX + 1);
        assert!(
            text.starts_with("{\"kind\":\"timeline\",\"path\":\"1000.1\",\"trail\":\"aa\",\"left_out\":3}\n")
        );
        assert_eq!(scene.messages.last().map(|message| message.at_ns), Some(count - 1));
        // The report keeps fewer lines, and counts the lines that it or the recording dropped.
        assert_eq!(scene.left_out + scene.messages.len() as u64, count);
    }

    /// If the file belongs to another branch, or is not readable, the recording is made again.
    #[test]
    fn a_file_is_recognised_by_its_path_and_trail() {
        let run = tempfile::tempdir().unwrap();
        let key = Key::Finding(1);
        let is_recorded = |key, path, trail| is_recorded(run.path(), key, path, trail);
        assert!(!is_recorded(key, "1000.1", "aa"));
        Recording::new(&["a".to_owned()]).write(run.path(), key, "1000.1", "aa").unwrap();
        assert!(is_recorded(key, "1000.1", "aa"));
        assert!(!is_recorded(key, "1000.2", "aa") && !is_recorded(key, "1000.1", "ab"));
        assert!(
            !is_recorded(Key::Finding(2), "1000.1", "aa") && !is_recorded(Key::Branch(1), "1000.1", "aa")
        );
        for text in ["", "{\"kind\":\"line\",\"text\":\"x\"}\n", "[1"] {
            std::fs::write(file_of(run.path(), key), text).unwrap();
            assert!(!is_recorded(key, "1000.1", "aa"), "{text}");
        }
    }
}
