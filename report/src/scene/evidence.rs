//! Reads a scene (what happened before a finding) from the lines of evidence in a run directory, or from a recorded
//! timeline.
//!
//! Everett wrote these lines itself: a vtime in seconds with nine decimals, the node, the unit (a program, or another
//! source of lines), and a text.

use everett_explorer::run::{Evidence, Hit};
use serde::Deserialize;

use super::operation::Operations;
use super::vtime::at;
use super::{Bar, EVENTS_MAX, Event, Fate, MESSAGES_MAX, Message, Scene};

/// Unit of lines in which a program reports its requests to servers and the answers (the operation history).
const HISTORY: &str = "history";
/// Units that are not programs: the kernel, and Everett's own messages about nodes and the world.
const OTHERS: [&str; 6] = ["kernel", "guest", "fault", "disk", "world", "FOUND"];

/// Line of a file with a recorded timeline. The first line identifies the timeline. Each other line has a text in the
/// format of a line of evidence.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Recorded {
    Timeline {
        #[serde(rename = "path")]
        _path: String,
        #[serde(rename = "trail")]
        _trail: String,
        left_out: u64,
    },
    Line {
        text: String,
    },
    Message {
        text: String,
        sent_ns: u64,
    },
    Fault {
        text: String,
    },
}

impl Scene {
    /// Reads the recorded timeline of a branch without a finding.
    ///
    /// # Errors
    /// Returns the number of the first invalid line, from 1, with the reason.
    pub fn of_branch(nodes: &[String], text: &str) -> Result<Scene, (usize, serde_json::Error)> {
        let hit = Hit {
            property: String::new(),
            signature: String::new(),
            text: String::new(),
            vtime_ns: 0,
            node: None,
            evidence: Evidence::default(),
        };
        Scene::of_recording(nodes, &hit, text)
    }

    /// Reads the evidence of a hit (a violation of a property on a branch). `nodes` are the names of the world's nodes.
    #[must_use]
    pub fn of_hit(nodes: &[String], hit: &Hit) -> Scene {
        let mut reader = Reader::new(nodes, hit);
        hit.evidence.lines.iter().for_each(|line| reader.line(line));
        hit.evidence.packets.iter().for_each(|line| reader.message(line, None));
        hit.evidence.faults.iter().for_each(|line| reader.fault(line));
        reader.finish(hit)
    }

    /// Reads a timeline that `everett replay --record` wrote, for a hit on that timeline.
    ///
    /// # Errors
    /// Returns the number of the first invalid line, from 1, with the reason.
    pub fn of_recording(
        nodes: &[String],
        hit: &Hit,
        text: &str,
    ) -> Result<Scene, (usize, serde_json::Error)> {
        let mut reader = Reader::new(nodes, hit);
        reader.scene.is_recorded = true;
        for (number, line) in (1..).zip(text.lines()) {
            match serde_json::from_str(line).map_err(|error| (number, error))? {
                Recorded::Timeline { left_out, .. } => reader.scene.left_out = left_out,
                Recorded::Line { text } => reader.line(&text),
                Recorded::Message { text, sent_ns } => reader.message(&text, Some(sent_ns)),
                Recorded::Fault { text } => reader.fault(&text),
            }
        }
        Ok(reader.finish(hit))
    }
}

/// Scene that is being read.
struct Reader {
    scene: Scene,
    operations: Operations,
}

impl Reader {
    fn new(nodes: &[String], hit: &Hit) -> Reader {
        let scene = Scene { lanes: nodes.to_vec(), found_ns: hit.vtime_ns, ..Scene::default() };
        Reader { scene, operations: Operations::default() }
    }

    fn line(&mut self, line: &str) {
        let Some(event) = event(&self.scene, line) else { return };
        if event.unit == HISTORY {
            self.operations.line(event.at_ns, event.lane, &event.text);
        } else {
            self.scene.events.push(event);
            self.scene.left_out += cut(&mut self.scene.events, EVENTS_MAX, EVENTS_MAX);
        }
    }

    fn message(&mut self, line: &str, sent_ns: Option<u64>) {
        if let Some(message) = message(&self.scene, line) {
            let sent_ns = sent_ns.filter(|sent| *sent <= message.at_ns);
            self.scene.messages.push(Message { sent_ns, ..message });
            self.scene.left_out += cut(&mut self.scene.messages, MESSAGES_MAX, MESSAGES_MAX);
        }
    }

    fn fault(&mut self, line: &str) {
        if self.scene.faults.len() < EVENTS_MAX {
            self.scene.faults.extend(Bar::of_line(&self.scene.lanes, line));
        }
    }

    fn finish(mut self, hit: &Hit) -> Scene {
        self.scene.left_out += cut(&mut self.scene.events, EVENTS_MAX, 0);
        self.scene.left_out += cut(&mut self.scene.messages, MESSAGES_MAX, 0);
        Scene { operations: self.operations.finish(&hit.text), ..self.scene }
    }
}

/// Removes all but the last `most` entries of a list, if that removes more than `slack` entries. Returns the number
/// of removed entries. The slack makes the costly move of the list rare.
fn cut<T>(list: &mut Vec<T>, most: usize, slack: usize) -> u64 {
    let over = list.len().saturating_sub(most);
    if over <= slack {
        return 0;
    }
    list.drain(..over);
    over as u64
}

fn event(scene: &Scene, line: &str) -> Option<Event> {
    let (at_ns, rest) = at(line)?;
    let (place, text) = rest.split_once(' ')?;
    let (lane, unit) = match place.split_once('/') {
        Some((node, unit)) if scene.lane(node).is_some() => (scene.lane(node), unit),
        _ => (None, place),
    };
    // In a world with one node, lines do not name the node.
    let lane = lane.or_else(|| (scene.lanes.len() == 1 && unit != "world").then_some(0));
    let text = text.trim_start();
    let text = match OTHERS.contains(&unit) && unit != "kernel" {
        true => text,
        false => text.strip_prefix("| ").or_else(|| text.strip_prefix("! ")).unwrap_or(text),
    };
    Some(Event { at_ns, lane, unit: unit.to_owned(), text: text.to_owned() })
}

fn message(scene: &Scene, line: &str) -> Option<Message> {
    let (at_ns, rest) = at(line)?;
    let mut words = rest.splitn(5, ' ');
    let fate = match words.next()? {
        "DELIVER" => Fate::Deliver,
        "DUPLICATE" => Fate::Duplicate,
        "DROP" => Fate::Drop,
        "TIMEOUT" => Fate::Timeout,
        _ => return None,
    };
    let from = scene.lane(words.next()?)?;
    let to = words.nth(1).and_then(|to| scene.lane(to))?;
    Some(Message { sent_ns: None, at_ns, from, to, fate, text: words.next().unwrap_or_default().to_owned() })
}
