//! Entries as lines of text.

use everett_input::text::printable;
use everett_input::units::Vtime;

use super::answer::EntryLine;
use super::entry::{Entry, Happened, Hit, Message, StateChange};
use super::limits::SHOWN_BYTES;
use crate::explore::witness::{message_line, plain_line};

/// Returns an entry as a line. `nodes` are the names of the nodes.
pub(super) fn line(entry: &Entry, nodes: &[String]) -> EntryLine {
    let name = |port: u8| nodes.get(usize::from(port)).map_or("?", String::as_str);
    let at = Vtime(entry.vtime_ns);
    let text = match &entry.what {
        Happened::Event(event) => plain_line(event, nodes.len() > 1),
        Happened::Message(Message { step, data }) => {
            let data = match data.as_deref() {
                None => " (data unknown)".to_owned(),
                Some([]) => String::new(),
                Some(data) => {
                    let rest = if data.len() > SHOWN_BYTES { "..." } else { "" };
                    format!(" \"{}\"{rest}", data[..data.len().min(SHOWN_BYTES)].escape_ascii())
                }
            };
            format!("{} #{}{data}", printable(&message_line(step, &name)), step.frame)
        }
        Happened::State(StateChange { node, variable, old, new }) => {
            let node = node.as_ref().map(|node| format!("{node}/")).unwrap_or_default();
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
            let change = format!("{variable}: {} -> {}", value(old), value(new));
            let unit = format!("{node}state");
            format!("{at} {unit:12} {}", printable(&change))
        }
        Happened::Hit(Hit { property, node, text }) => {
            let node = node.as_ref().map(|node| format!("{node}/")).unwrap_or_default();
            let unit = format!("{node}FOUND");
            format!("{at} {unit:12} {}", printable(&format!("{property}: {text}")))
        }
    };
    let frame = entry.message().map(|message| message.step.frame);
    EntryLine { vtime_ns: entry.vtime_ns, what: entry.kind(), frame, text }
}
