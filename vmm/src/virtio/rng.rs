//! virtio-rng (virtio 1.2, section 5.4): gives the guest random bytes from the machine's entropy stream.

use everett_streams::Purpose;
use serde::{Deserialize, Serialize};

use super::queue::{self, VirtQueue, part, total};
use super::{Cx, DeviceError, on_queue};

/// Maximum number of entries of the queue.
pub const QUEUE_SIZE: u16 = 64;
/// Maximum bytes per request. A driver that requests more gets this many.
pub const REQUEST_BYTES_MAX: u64 = 4096;

/// Entropy source. The position in its random stream is stored with the stream and not here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rng {
    /// Number of bytes that the device has given to the guest.
    given: u64,
}

impl Rng {
    pub(super) fn notify(&mut self, queues: &mut [VirtQueue], cx: &mut Cx<'_>) -> Result<bool, DeviceError> {
        let Some(requests) = queues.first_mut() else { return Ok(false) };
        let mut interrupt = false;
        while let Some(chain) = on_queue(0, requests.pop(cx.ram))? {
            let bytes = total(&chain.writable).min(REQUEST_BYTES_MAX);
            if bytes == 0 {
                return Err(DeviceError::Request { queue: 0, reason: "has nothing to write to" });
            }
            let mut content = vec![0; bytes as usize];
            cx.streams.fill(Purpose::Entropy, &mut content);
            self.given = self.given.wrapping_add(bytes);
            let segments = part(&chain.writable, 0, bytes);
            let written = on_queue(0, queue::write(cx.ram, &segments, &content))?;
            interrupt |= on_queue(0, requests.push_used(cx.ram, chain.head, written))?;
        }
        on_queue(0, requests.want_notification(cx.ram))?;
        Ok(interrupt)
    }
}
