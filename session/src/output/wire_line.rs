//! Fates of frames as JSON: the lines of `wire.jsonl` in the output folder of `everett run`.

use everett_vmm::wire::log::{DropReason, FrameStep, FrameStepKind};
use serde::Serialize;

/// Fate of a frame.
#[derive(Debug, Serialize)]
pub struct WireLine<'a> {
    #[serde(flatten)]
    kind: Move,
    vtime_ns: u64,
    sent_ns: u64,
    from: &'a str,
    to: Option<&'a str>,
    frame: u64,
    bytes: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flipped: bool,
    summary: String,
}

/// Kind of the fate: the field `move`.
#[derive(Debug, Serialize)]
#[serde(tag = "move", rename_all = "UPPERCASE")]
enum Move {
    Deliver,
    Duplicate,
    Drop { why: DropReason },
    Timeout,
}

impl<'a> WireLine<'a> {
    /// Creates the line of a frame's fate. `name` maps ports to names of nodes.
    #[must_use]
    pub fn new(step: &FrameStep, name: &dyn Fn(u8) -> &'a str) -> WireLine<'a> {
        let kind = match step.kind {
            FrameStepKind::Deliver => Move::Deliver,
            FrameStepKind::Duplicate => Move::Duplicate,
            FrameStepKind::Drop { why } => Move::Drop { why },
            FrameStepKind::Timeout => Move::Timeout,
        };
        WireLine {
            kind,
            vtime_ns: step.vtime,
            sent_ns: step.sent_at,
            from: name(step.from),
            to: step.to.map(name),
            frame: step.frame,
            bytes: step.len,
            flipped: step.flipped,
            summary: step.summary.to_string(),
        }
    }
}
