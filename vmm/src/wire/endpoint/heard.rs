//! What an endpoint has heard, from which it can be made again: the stack's own state cannot be stored.
//!
//! A new endpoint that hears the same at the same vtimes, and is asked the same at the same vtimes, is the same.

use serde::{Deserialize, Serialize};

use super::Endpoint;
use crate::clock::VTIME_MAX;
use crate::virtio::net::FRAME_BYTES_MAX;

/// What an endpoint hears in its life, in bytes of memory. More is lost.
pub const HEARD_BYTES_MAX: usize = 64 << 20;

/// The frames that have come to an endpoint, and how far it is in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// With when they came, in that order.
    pub(super) frames: Vec<(u64, Vec<u8>)>,
    /// What they take.
    bytes: usize,
    /// It was last polled at this vtime.
    polled: u64,
}

impl Heard {
    /// Keep a frame. Returns false when there is no room.
    pub(super) fn keep(&mut self, at: u64, frame: &[u8]) -> bool {
        let bytes = self.bytes.saturating_add(size(frame));
        let room = bytes <= HEARD_BYTES_MAX;
        if room {
            self.bytes = bytes;
            self.frames.push((at, frame.to_vec()));
        }
        room
    }

    /// Whether an endpoint can have heard this by `now`. What it says to it shows when it is made again.
    #[must_use]
    pub fn is_sound(&self, now: u64) -> bool {
        let bytes = self.frames.iter().map(|(_, frame)| size(frame)).fold(0, usize::saturating_add);
        now <= VTIME_MAX
            && self.polled <= now
            && bytes == self.bytes
            && bytes <= HEARD_BYTES_MAX
            && self.frames.is_sorted_by_key(|(at, _)| *at)
            && self.frames.iter().all(|(at, frame)| *at <= now && frame.len() <= FRAME_BYTES_MAX)
    }
}

fn size(frame: &[u8]) -> usize {
    size_of::<(u64, Vec<u8>)>() + frame.len()
}

impl Endpoint {
    /// What it has heard so far.
    #[must_use]
    pub fn heard(&self) -> Heard {
        Heard { polled: self.now, ..self.heard.clone() }
    }

    /// Hear once more what came before `before` and was not heard again yet. What it says to that was said.
    pub fn hear_again(&mut self, heard: &Heard, before: u64) {
        let end = heard.polled.min(before.saturating_sub(1));
        while let Some((at, frame)) = heard.frames.get(self.heard.frames.len()).filter(|(at, _)| *at < before)
        {
            // One by one: more would wait together than did.
            self.poll(end.min(at.saturating_sub(1)), &mut |_, _| {});
            if !self.frame_input(*at, frame.clone()) {
                break;
            }
        }
        self.poll(end, &mut |_, _| {});
    }
}
