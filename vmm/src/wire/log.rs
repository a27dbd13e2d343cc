//! Log of what became of frames, for observers. The four outcomes are those of network models in model checking.
//!
//! A frame that the switch sends on a link is one message from one node to another. It has one of four outcomes:
//!
//! - DELIVER: the frame arrives;
//! - DUPLICATE: an extra copy of the frame arrives;
//! - DROP: the frame never arrives, for the reason in [`DropReason`];
//! - TIMEOUT: the frame arrives so late that its receiver has stopped waiting. When the log is closed, a frame that has
//!   not arrived is also a TIMEOUT if it is late by then or a fault holds it. A frame is late [`TIMEOUT_NS`] after it
//!   was sent, which is Linux's minimum retransmission timeout.
//!
//! An extra copy is a DUPLICATE even if it is late. The loss of an extra copy is not logged. A frame that a fault
//! holds has no outcome until it moves on or the log is closed.
//!
//! **Invariant.** The log is not part of the wire's state: moments and digests do not contain it, and the wire's
//! behaviour does not depend on it.

use serde::Serialize;

use super::summary::Summary;

/// Latency from which a frame is a TIMEOUT, in nanoseconds. It is Linux's TCP_RTO_MIN.
pub const TIMEOUT_NS: u64 = 200_000_000;
/// Maximum number of logged steps (outcomes of frames) that wait for an observer. Later steps are lost and counted.
pub const STEPS_MAX: usize = 100_000;

/// Outcome of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameStepKind {
    /// The frame arrived.
    Deliver,
    /// An extra copy of the frame arrived.
    Duplicate,
    /// The frame never arrives.
    Drop {
        /// Reason of the loss.
        why: DropReason,
    },
    /// The frame arrived too late. Or, when the log was closed, the frame was late or held by a fault.
    Timeout,
}

/// Reason why a frame never arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A fault lost the frame.
    Loss,
    /// A partition dropped the frame.
    Partition,
    /// The link's queue was full.
    QueueFull,
    /// There is no link from the sender to the receiver.
    NoLink,
    /// The receiver had no power when the frame arrived, or the sender lost power before the frame had left its card.
    Detached,
    /// The frame is too short or too long for Ethernet.
    Length,
    /// The frame's destination is behind the port from which the frame came.
    Own,
    /// The wire already holds the maximum number of frames or bytes.
    Bound,
}

impl DropReason {
    /// Returns the name of the reason, as its JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Loss => "loss",
            DropReason::Partition => "partition",
            DropReason::QueueFull => "queue_full",
            DropReason::NoLink => "no_link",
            DropReason::Detached => "detached",
            DropReason::Length => "length",
            DropReason::Own => "own",
            DropReason::Bound => "bound",
        }
    }
}

/// The outcome of one frame for one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FrameStep {
    /// Kind of the outcome.
    pub kind: FrameStepKind,
    /// Time of the outcome, in nanoseconds of vtime.
    pub vtime: u64,
    /// Time at which the frame was sent, in nanoseconds of vtime.
    pub sent_at: u64,
    /// Port that sent the frame.
    pub from: u8,
    /// Port to which the frame was sent; `None` if the switch sent it nowhere.
    pub to: Option<u8>,
    /// Number of the frame, in the order of sending. If the switch floods a frame, each receiver has an outcome of its
    /// own.
    pub frame: u64,
    /// Length of the frame in bytes.
    pub len: u32,
    /// True if a fault flipped bits of the frame.
    pub flipped: bool,
    /// Summary of the frame's content.
    pub summary: Summary,
}

/// Logged steps (outcomes of frames) that no observer has taken.
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
        // The wire may log an arrival ahead of its vtime. It then logs losses with earlier vtimes after this arrival.
        // So the steps must be sorted.
        steps.sort_by_key(|step| step.vtime);
        steps
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}
