//! Outcomes of frames, for observers. They correspond to the moves of network models in model checking.
//!
//! A frame that the switch sends down a link is one message from one node to another. It has one of four outcomes:
//!
//! - DELIVER: it arrives;
//! - DUPLICATE: an extra copy of it arrives;
//! - DROP: it never arrives, for the reason in [`DropReason`];
//! - TIMEOUT: it arrives so late that its receiver has stopped waiting, or has not arrived when the log is closed. A
//!   frame is late [`TIMEOUT_NS`] after it was sent, which is Linux's minimum retransmission timeout.
//!
//! An extra copy is a DUPLICATE even if it is late; the loss of an extra copy is not logged. A frame that waits at a
//! partition makes no move until it continues.
//!
//! **Invariant.** The log is not state: it is neither stored nor compared, and the wire's behaviour does not depend on
//! it.

use serde::Serialize;

use super::summary::Summary;

/// Latency from which a frame counts as TIMEOUT, in nanoseconds: TCP_RTO_MIN.
pub const TIMEOUT_NS: u64 = 200_000_000;
/// Maximum number of steps that are kept until they are taken. Later ones are lost and counted.
pub const STEPS_MAX: usize = 100_000;

/// Outcome of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameStepKind {
    /// It arrived.
    Deliver,
    /// An extra copy of it arrived.
    Duplicate,
    /// It never arrives.
    Drop {
        /// Reason of the loss.
        why: DropReason,
    },
    /// It arrived too late, or had not arrived when the log was closed.
    Timeout,
}

/// Reason for which a frame never arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A fault lost it.
    Loss,
    /// A partition dropped it.
    Partition,
    /// The link's queue was full.
    QueueFull,
    /// Its sender and its receiver have no link.
    NoLink,
    /// Its receiver had no power when it arrived, or its sender lost power before the frame had left the card.
    Detached,
    /// It is too short or too long for an Ethernet frame.
    Length,
    /// Its destination is behind the port from which it came.
    Own,
    /// The wire already holds its maximum of frames or bytes.
    Bound,
}

/// One move: the outcome of one frame for one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FrameStep {
    /// Outcome.
    pub kind: FrameStepKind,
    /// Time of the outcome, in nanoseconds of vtime.
    pub vtime: u64,
    /// Time at which the frame was sent, in nanoseconds of vtime.
    pub sent_at: u64,
    /// Port that sent it.
    pub from: u8,
    /// Port to which it was sent; `None` for a frame that the switch sent nowhere.
    pub to: Option<u8>,
    /// Number of the frame, in the order of sending. A flooded frame makes one move for each receiver.
    pub frame: u64,
    /// Length of the frame in bytes.
    pub len: u32,
    /// True if a fault flipped bits of it.
    pub flipped: bool,
    /// Summary of its content.
    pub summary: Summary,
}

/// Steps that have not been taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    steps: Vec<FrameStep>,
    lost: u64,
}

impl Log {
    pub(super) fn push(&mut self, step: FrameStep) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(step);
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    pub(super) fn take(&mut self) -> Vec<FrameStep> {
        let mut steps = std::mem::take(&mut self.steps);
        // Arrivals are logged in advance, before frames that are sent in the meantime.
        steps.sort_by_key(|step| step.vtime);
        steps
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}
