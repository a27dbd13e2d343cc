//! What became of frames, for observers: the moves of network models in model checking.
//!
//! A frame that the switch sends down a link is one message from one node to another. Four things can become of it:
//!
//! - DELIVER: it arrives;
//! - DUPLICATE: an extra copy of it arrives;
//! - DROP: it never does. [`Why`] says why;
//! - TIMEOUT: it arrives so late that whoever waited for it has given up, or it still had not when the log was closed. Late
//!   is [`TIMEOUT_NS`] after it was sent: Linux's least retransmission timeout.
//!
//! An extra copy is DUPLICATE however late it is, and one that is lost never was. A frame that waits at a partition makes
//! no move until it goes on.
//!
//! **Invariant.** The log is no state: it is not stored, not compared, and nothing that the wire does depends on it.

use serde::Serialize;

use super::summary::Summary;

/// How late a frame is that counts as TIMEOUT, in nanoseconds: TCP_RTO_MIN.
pub const TIMEOUT_NS: u64 = 200_000_000;
/// Steps that are kept until they are taken; later ones are counted.
pub const STEPS_MAX: usize = 100_000;

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// It arrived.
    Deliver,
    /// An extra copy of it arrived.
    Duplicate,
    /// It never arrives.
    Drop {
        /// Why.
        why: Why,
    },
    /// It arrived too late, or not as long as the log was open.
    Timeout,
}

/// Why a frame never arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A fault lost it.
    Loss,
    /// A partition dropped it.
    Partition,
    /// The link's queue was full.
    QueueFull,
    /// Its receiver was off when it arrived, or its sender before it had left the card.
    Detached,
    /// It is too short or too long for a frame.
    Length,
    /// Its destination is behind the port it came from.
    Own,
    /// More frames or bytes on their way than a wire holds.
    Bound,
}

/// One move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which.
    pub kind: StepKind,
    /// When, in nanoseconds of vtime.
    pub vtime: u64,
    /// When the frame was sent.
    pub sent_at: u64,
    /// By which port.
    pub from: u8,
    /// To which port; `None` for a frame that the switch sent nowhere.
    pub to: Option<u8>,
    /// Its number: frames are counted as they are sent. A flooded frame makes a move for each receiver.
    pub frame: u64,
    /// Its bytes.
    pub len: u32,
    /// A fault flipped bits of it.
    pub flipped: bool,
    /// What it says.
    pub summary: Summary,
}

/// Steps that wait for an observer.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    steps: Vec<Step>,
    lost: u64,
}

impl Log {
    pub(super) fn push(&mut self, step: Step) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(step);
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    pub(super) fn take(&mut self) -> Vec<Step> {
        let mut steps = std::mem::take(&mut self.steps);
        // What arrives is known before what is sent meanwhile.
        steps.sort_by_key(|step| step.vtime);
        steps
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}
