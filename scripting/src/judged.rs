//! Violations of properties on a span of a timeline.

use everett_explorer::plan::Plan;
use everett_session::explore::setting::Setting;
use everett_session::explore::verdict::judge_history;
use everett_session::explore::witness::{Inherited, Witness};
use everett_session::world::event::Event;

use super::error::Error;

/// Violation of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the property.
    pub property: String,
    /// Hash that is the same for violations with the same cause.
    pub signature: String,
    /// Description.
    pub text: String,
    /// Vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// Name of the node. `None` if the violation belongs to no single node.
    pub node: Option<String>,
}

/// Verdict of the properties of a world on a span.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// Violations in the span, ordered by vtime.
    pub violations: Vec<Violation>,
    /// Names of the `sometimes` properties that held up to the end of the span, also before it.
    pub sometimes: Vec<String>,
}

/// Judges a span. `before` is what the explorer has observed before it.
pub(crate) fn judge(
    setting: &Setting,
    before: &Inherited,
    plan: &Plan,
    events: &[Event],
) -> Result<Judged, Error> {
    let abstractions = &setting.abstractions;
    let mut witness = Witness::new(abstractions, plan, before).map_err(anyhow::Error::from)?;
    events.iter().for_each(|event| witness.hear(event));
    judge_history(abstractions, &mut witness);
    let testimony = witness.finish();
    let violations = testimony.found.into_iter().map(|found| Violation {
        property: found.hit.property,
        signature: found.hit.signature,
        text: found.hit.text,
        vtime_ns: found.hit.vtime_ns,
        node: found.hit.node.and_then(|node| abstractions.name(node)).map(str::to_owned),
    });
    let mut violations: Vec<Violation> = violations.collect();
    violations.sort_by_key(|violation| violation.vtime_ns);
    Ok(Judged { violations, sometimes: testimony.sometimes })
}
