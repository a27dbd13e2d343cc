//! How a world is explored: the `[explore]` table of a world file.

use std::ops::RangeInclusive;

use everett_fault::{PPM, Ppm};
use everett_input::units::{Size, write_duration_ns};
use serde::{Deserialize, Serialize};

use crate::coverage::AbstractionConfig;
use crate::fit::Fit;
use crate::plan::draw::Span;
use crate::plan::draw::pct::DEPTH;
use crate::search::strategy::StrategyKind;

/// How long a branch is, in nanoseconds: 100 ms to an hour. Whole steps of [`GRID_NS`].
const SEGMENT_NS: RangeInclusive<u64> = 100_000_000..=3_600_000_000_000;
/// How far branches lead, in nanoseconds: up to a day.
const HORIZON_NS_MAX: u64 = 86_400_000_000_000;
/// Branches end on a grid, in nanoseconds.
pub const GRID_NS: u64 = 20_000_000;
/// How many branches may be chosen before the first one's result is known.
const IN_FLIGHT: RangeInclusive<u64> = 1..=65_536;

/// How a world is explored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ExploreConfig {
    /// How long a branch is.
    pub segment: Span,
    /// How far from the root moment branches lead.
    pub horizon: Span,
    /// How many branches are followed by the checks, besides those that reach the horizon. What fits the exploration's length if
    /// it is not given: [`ExploreConfig::fit`].
    pub checks: Option<Ppm>,
    /// Each kind of fault is on in half of the subtrees.
    pub swarm: bool,
    /// From where branches go on.
    pub strategy: StrategyKind,
    /// Of strategy `pct`: bugs of this depth are looked for.
    pub depth: u32,
    /// How many branches may be chosen before the first one's result is known: K. What fits the exploration's length if it is not
    /// given.
    pub in_flight: Option<u32>,
    /// How much log of a branch coverage looks at.
    pub log: Size,
    /// Built-in properties that are not judged.
    pub ignore: Vec<String>,
    /// Groups of nodes of which each is as good as the other.
    pub interchangeable: Vec<Vec<String>>,
    /// What is taken for the state of the world.
    pub state: AbstractionConfig,
}

impl Default for ExploreConfig {
    fn default() -> ExploreConfig {
        ExploreConfig {
            segment: Span::s(2),
            horizon: Span::s(20),
            checks: None,
            swarm: true,
            strategy: StrategyKind::default(),
            depth: 3,
            in_flight: None,
            log: Size(64 << 10),
            ignore: Vec::new(),
            interchangeable: Vec::new(),
            state: AbstractionConfig::default(),
        }
    }
}

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ExploreError {
    /// Which.
    pub key: &'static str,
    /// Why.
    pub what: String,
}

impl ExploreConfig {
    /// Take from a fit what is not given.
    pub fn fit(&mut self, fit: Fit) {
        self.in_flight.get_or_insert(fit.in_flight);
        self.checks.get_or_insert(fit.checks);
    }

    /// K. That of an exploration without an end if nothing was given or fitted.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.unwrap_or(Fit::default().in_flight)
    }

    /// The share of branches that are followed by checks, likewise.
    #[must_use]
    pub fn checks(&self) -> Ppm {
        self.checks.unwrap_or(Fit::default().checks)
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), ExploreError> {
        let fail = |key, what: String| Err(ExploreError { key, what });
        let Span(segment) = self.segment;
        if !SEGMENT_NS.contains(&segment) || !segment.is_multiple_of(GRID_NS) {
            let (least, most) =
                (write_duration_ns(*SEGMENT_NS.start()), write_duration_ns(*SEGMENT_NS.end()));
            let grid = write_duration_ns(GRID_NS);
            return fail("segment", format!("must be from {least} to {most}, in whole steps of {grid}"));
        }
        let Span(horizon) = self.horizon;
        if horizon < segment || horizon > HORIZON_NS_MAX {
            let (least, most) = (write_duration_ns(segment), write_duration_ns(HORIZON_NS_MAX));
            return fail("horizon", format!("must be from {least}, a segment, to {most}"));
        }
        if self.checks() > PPM {
            return fail("checks", format!("must be from 0 to {PPM}, in parts of a million"));
        }
        let within = |key, bounds: RangeInclusive<u64>, found: u32| match bounds.contains(&found.into()) {
            true => Ok(()),
            false => fail(key, format!("must be from {} to {}, not {found}", bounds.start(), bounds.end())),
        };
        within("in_flight", IN_FLIGHT, self.in_flight())?;
        within("depth", DEPTH, self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables() {
        let read = |text: &str| toml::from_str::<ExploreConfig>(text);
        let plain = read("").unwrap();
        assert_eq!(plain, ExploreConfig::default());
        assert_eq!(plain.check(), Ok(()));
        let read =
            read("segment = \"500ms\"\nlog = \"1M\"\nstrategy = \"uniform\"\n[state]\nlast = 2").unwrap();
        assert_eq!((read.segment, read.log, read.state.last), (Span::ms(500), Size(1 << 20), 2));
        assert_eq!(read.check(), Ok(()));
        assert!(toml::from_str::<ExploreConfig>("segments = \"1s\"").is_err());
    }

    #[test]
    fn what_is_given_is_kept_and_the_rest_is_fitted() {
        let fitted = |text: &str| {
            let mut explore: ExploreConfig = toml::from_str(text).unwrap();
            explore.fit(Fit { in_flight: 8, checks: PPM / 2 });
            (explore.in_flight(), explore.checks())
        };
        assert_eq!(fitted(""), (8, PPM / 2));
        assert_eq!(fitted("in_flight = 16"), (16, PPM / 2));
        assert_eq!(fitted("checks = 0"), (8, 0));
        let plain = ExploreConfig::default();
        assert_eq!((plain.in_flight(), plain.checks()), (64, PPM / 8));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let wrong =
            |text: &str| toml::from_str::<ExploreConfig>(text).unwrap().check().unwrap_err().to_string();
        assert_eq!(
            wrong("segment = \"10ms\""),
            "segment: must be from 100ms to 3600s, in whole steps of 20ms"
        );
        assert_eq!(
            wrong("segment = \"110ms\""),
            "segment: must be from 100ms to 3600s, in whole steps of 20ms"
        );
        assert_eq!(wrong("horizon = \"1s\""), "horizon: must be from 2s, a segment, to 86400s");
        assert_eq!(wrong("checks = 1000001"), "checks: must be from 0 to 1000000, in parts of a million");
        assert_eq!(wrong("in_flight = 0"), "in_flight: must be from 1 to 65536, not 0");
        assert_eq!(wrong("depth = 17"), "depth: must be from 1 to 16, not 17");
    }
}
