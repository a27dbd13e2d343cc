//! Record of the frames that an endpoint has received. An endpoint is a TCP/IP stack in Everett, outside the guests,
//! through which checks talk to nodes. The stack's own state cannot be stored, so a restored world rebuilds an endpoint
//! from this record.
//!
//! A new endpoint that receives the same frames and gets the same calls at the same vtimes reaches the same state.

use serde::{Deserialize, Serialize};

use super::Endpoint;
use crate::clock::VTIME_MAX;
use crate::virtio::net::FRAME_BYTES_MAX;

/// Maximum memory for the frames that an endpoint receives, in bytes. Further frames are lost.
pub const HEARD_BYTES_MAX: usize = 64 << 20;

/// Frames that arrived at an endpoint, and the vtime that it has reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Frames with their vtimes of arrival, in the order of arrival.
    pub(super) frames: Vec<(u64, Vec<u8>)>,
    /// Bytes of memory that the frames need.
    bytes: usize,
    /// Vtime of the last call of `Endpoint::poll`.
    polled: u64,
}

impl Heard {
    /// Stores a frame. Returns false if there is no room for it.
    pub(super) fn keep(&mut self, at: u64, frame: &[u8]) -> bool {
        let bytes = self.bytes.saturating_add(size(frame));
        let room = bytes <= HEARD_BYTES_MAX;
        if room {
            self.bytes = bytes;
            self.frames.push((at, frame.to_vec()));
        }
        room
    }

    /// True if an endpoint can have received these frames by `now`. Whether an endpoint accepts them can only be seen
    /// by rebuilding it.
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
    /// Returns the frames that the endpoint has received, and the vtime of its last poll.
    #[must_use]
    pub fn heard(&self) -> Heard {
        Heard { polled: self.now, ..self.heard.clone() }
    }

    /// Processes the recorded frames that arrived before `before` and that this endpoint has not processed. Drops the
    /// frames that it sends while doing this, because the original endpoint has already sent them.
    pub fn hear_again(&mut self, heard: &Heard, before: u64) {
        let end = heard.polled.min(before.saturating_sub(1));
        while let Some((at, frame)) = heard.frames.get(self.heard.frames.len()).filter(|(at, _)| *at < before)
        {
            // Frames are added one at a time, so that no more frames wait than in the original endpoint.
            self.poll(end.min(at.saturating_sub(1)), &mut |_, _| {});
            if !self.frame_input(*at, frame.clone()) {
                break;
            }
        }
        self.poll(end, &mut |_, _| {});
    }
}
