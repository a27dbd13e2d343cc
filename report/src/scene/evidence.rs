//! Lines of evidence, read back.
//!
//! Everett writes them itself: a vtime in seconds with nine decimals, the node and unit, and a text.

use everett_explorer::run::Hit;

use super::operation::Operations;
use super::{Bar, EVENTS_MAX, Event, Fate, MESSAGES_MAX, Message, Scene};

/// Unit of lines that are part of an operation history.
const HISTORY: &str = "history";
/// Units that are no programs: what Everett itself says about nodes and the world.
const OTHERS: [&str; 6] = ["kernel", "guest", "fault", "disk", "world", "FOUND"];

impl Scene {
    /// Reads the evidence of a hit on nodes with these names.
    #[must_use]
    pub fn of_hit(nodes: &[String], hit: &Hit) -> Scene {
        let mut scene = Scene { lanes: nodes.to_vec(), found_ns: hit.vtime_ns, ..Scene::default() };
        let mut operations = Operations::default();
        for line in hit.evidence.lines.iter().take(EVENTS_MAX) {
            let Some(event) = event(&scene, line) else { continue };
            if event.unit == HISTORY {
                operations.line(event.at_ns, event.lane, &event.text);
            } else {
                scene.events.push(event);
            }
        }
        let messages = hit.evidence.packets.iter().take(MESSAGES_MAX);
        scene.messages = messages.filter_map(|line| message(&scene, line)).collect();
        let faults = hit.evidence.faults.iter().filter_map(|line| Bar::of_line(nodes, line));
        scene.faults = faults.collect();
        scene.operations = operations.finish(&hit.text);
        scene
    }
}

/// Splits a line into its vtime in nanoseconds and the rest.
pub(super) fn at(line: &str) -> Option<(u64, &str)> {
    let (time, rest) = line.trim_start().split_once(' ')?;
    Some((seconds(time)?, rest.trim_start()))
}

/// Returns the nanoseconds of a decimal number of seconds.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.len() != 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part.parse().ok()?)
}

fn event(scene: &Scene, line: &str) -> Option<Event> {
    let (at_ns, rest) = at(line)?;
    let (place, text) = rest.split_once(' ')?;
    let (lane, unit) = match place.split_once('/') {
        Some((node, unit)) if scene.lane(node).is_some() => (scene.lane(node), unit),
        _ => (None, place),
    };
    // A world of one node does not name it in its lines.
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
