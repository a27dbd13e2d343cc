//! Settings of quiet periods.

use serde::{Deserialize, Serialize};

use super::span::Span;

/// Quiet periods: all faults end, and no fault starts for a while. In such a period a world can recover, and checks
/// that need a recovered world can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Quiet {
    /// True if the plan has quiet periods.
    pub enabled: bool,
    /// Time from the beginning of one period to the beginning of the next. The first period begins this long after the
    /// time at which faults may first start (`start` in the table).
    pub every: Span,
    /// Length of a period.
    #[serde(rename = "for")]
    pub lasts: Span,
}

impl Default for Quiet {
    fn default() -> Quiet {
        Quiet { enabled: true, every: Span::s(60), lasts: Span::s(10) }
    }
}
