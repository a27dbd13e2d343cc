//! Frames that an endpoint has received, from which it can be rebuilt, because the stack's own state cannot be stored.
//!
//! A new endpoint that receives the same frames and gets the same calls, each at the same vtime, reaches the same
//! state.

use serde::{Deserialize, Serialize};

use super::Endpoint;
use crate::clock::VTIME_MAX;
use crate::virtio::net::FRAME_BYTES_MAX;

/// Maximum bytes of memory for all frames that an endpoint receives. Further frames are lost.
pub const HEARD_BYTES_MAX: usize = 64 << 20;

/// Frames that arrived at an endpoint, and the endpoint's position in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Frames with their vtimes, in the order of arrival.
    pub(super) frames: Vec<(u64, Vec<u8>)>,
    /// Bytes of memory that the frames take.
    bytes: usize,
    /// Vtime of the last poll.
    polled: u64,
}

impl Heard {
    /// Keeps a frame. Returns false if there is no room.
    pub(super) fn keep(&mut self, at: u64, frame: &[u8]) -> bool {
        let bytes = self.bytes.saturating_add(size(frame));
        let room = bytes <= HEARD_BYTES_MAX;
        if room {
            self.bytes = bytes;
            self.frames.push((at, frame.to_vec()));
        }
        room
    }

    /// True if an endpoint can have received this by `now`. Whether an endpoint accepts the frames shows only when it
    /// is rebuilt.
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
    /// Returns the frames received so far, and the vtime of the last poll.
    #[must_use]
    pub fn heard(&self) -> Heard {
        Heard { polled: self.now, ..self.heard.clone() }
    }

    /// Processes the recorded frames that arrived before `before` and were not processed yet. Frames that it sends
    /// meanwhile are dropped, since the original endpoint has sent them.
    pub fn hear_again(&mut self, heard: &Heard, before: u64) {
        let end = heard.polled.min(before.saturating_sub(1));
        while let Some((at, frame)) = heard.frames.get(self.heard.frames.len()).filter(|(at, _)| *at < before)
        {
            // One frame at a time, so that no more frames wait unprocessed at once than in the original.
            self.poll(end.min(at.saturating_sub(1)), &mut |_, _| {});
            if !self.frame_input(*at, frame.clone()) {
                break;
            }
        }
        self.poll(end, &mut |_, _| {});
    }
}
