//! Types of events for the happens-before relation. A type is what events of one kind have in common,
//! without numbers, times and other parts that differ from one event to the next.

use everett_log_template::template;
use serde::{Deserialize, Serialize};

use super::limits::{NAME_BYTES_MAX, TYPES_MAX};
use super::observed::{DiskEvent, ProcessChange, WireKind};
use crate::text::clip;

/// Types of events that occurred on a timeline, in the order of their first events. Types beyond [`TYPES_MAX`] have no
/// number, and the orders of their events are not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Types {
    names: Vec<String>,
}

impl Types {
    /// Returns the number of a type, and adds the type if needed. Returns `None` if the table is full.
    pub(super) fn number(&mut self, name: String) -> Option<u32> {
        let index = self.names.iter().position(|known| *known == name).unwrap_or(self.names.len());
        if index >= TYPES_MAX {
            return None;
        }
        if index == self.names.len() {
            self.names.push(name);
        }
        u32::try_from(index).ok()
    }

    /// Returns the name of a type, or an empty text for an unknown number.
    pub(super) fn name(&self, number: u32) -> &str {
        usize::try_from(number).ok().and_then(|index| self.names.get(index)).map_or("", String::as_str)
    }
}

pub(super) fn line(unit: &str, template: &str) -> String {
    format!("{unit}: {template}")
}

pub(super) fn wire(kind: WireKind, summary: &str) -> String {
    let step = match kind {
        WireKind::Send => "send",
        WireKind::Deliver => "deliver",
        WireKind::Duplicate => "duplicate",
        WireKind::Drop => "drop",
        WireKind::Timeout => "timeout",
    };
    format!("{step} {}", template(summary))
}

pub(super) fn process(unit: &str, change: ProcessChange) -> String {
    let what = match change {
        ProcessChange::Started => "starts",
        ProcessChange::Exited { success: true } => "ends",
        ProcessChange::Exited { success: false } => "fails",
    };
    format!("{unit} {what}")
}

pub(super) fn disk(event: DiskEvent) -> String {
    let what = match event {
        DiskEvent::Flush => "disk flush",
        DiskEvent::Loss { lost: true } => "disk loses writes",
        DiskEvent::Loss { lost: false } => "disk loses nothing",
    };
    what.to_owned()
}

pub(super) fn fault(kind: &str, begins: bool) -> String {
    format!("{kind} {}", if begins { "begins" } else { "ends" })
}

pub(super) fn sdk(name: &str) -> String {
    format!("sdk {}", clip(name, NAME_BYTES_MAX))
}

pub(super) fn history(f: &str, kind: &str) -> String {
    format!("{} {}", clip(f, NAME_BYTES_MAX), clip(kind, NAME_BYTES_MAX))
}
