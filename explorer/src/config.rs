//! Configuration of an exploration: the `[explore]` table of a world file.

use std::ops::RangeInclusive;

use everett_fault::{PPM, Ppm};
use everett_input::units::{Size, write_duration_ns};
use serde::{Deserialize, Serialize};

use crate::coverage::AbstractionConfig;
use crate::length_defaults::LengthDefaults;
use crate::plan::draw::Span;
use crate::plan::draw::pct::DEPTH;
use crate::search::strategy::StrategyKind;

/// Bounds of a branch's length, in nanoseconds: 100 ms to one hour. Each length is a multiple of [`GRID_NS`].
const SEGMENT_NS: RangeInclusive<u64> = 100_000_000..=3_600_000_000_000;
/// Maximum vtime from the root moment (at which all timelines begin) to the horizon (at which the longest timelines
/// end), in nanoseconds: one day.
const HORIZON_NS_MAX: u64 = 86_400_000_000_000;
/// Step size of branch lengths, in nanoseconds.
pub const GRID_NS: u64 = 20_000_000;
/// Bounds of K, the maximum number of branches in flight (chosen, result not yet merged).
const IN_FLIGHT: RangeInclusive<u64> = 1..=65_536;

/// Configuration of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ExploreConfig {
    /// Length of a branch. A branch is also called a segment.
    pub segment: Span,
    /// Vtime from the root moment to the horizon. No branch runs beyond the horizon.
    pub horizon: Span,
    /// Share of branches after which the checks run, in ppm. The checks always run after branches that reach the
    /// horizon. If the share is absent, [`ExploreConfig::set_absent`] chooses it from the exploration's length.
    pub checks: Option<Ppm>,
    /// True if swarm testing is on: for each subtree, i.e. for all branches that descend from one branch at the root
    /// moment, each kind of fault is enabled with a probability of one half.
    pub swarm: bool,
    /// Strategy that chooses where branches start.
    pub strategy: StrategyKind,
    /// Bug depth that strategy `pct` looks for: the number of ordering constraints that the bug needs.
    pub depth: u32,
    /// K, the maximum number of branches in flight (chosen, result not yet merged). If K is absent,
    /// [`ExploreConfig::set_absent`] chooses it from the exploration's length.
    pub in_flight: Option<u32>,
    /// Maximum size of the part of a branch's log that coverage reads.
    pub log: Size,
    /// Names of built-in properties whose violations do not count as findings.
    pub ignore: Vec<String>,
    /// Groups of interchangeable nodes: if two nodes of a group swap their roles, coverage counts the state as the
    /// same.
    pub interchangeable: Vec<Vec<String>>,
    /// Definition of the world's abstract state, i.e. of the summary of logs and faults whose changes coverage counts.
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

/// Invalid setting in the `[explore]` table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ExploreError {
    /// Key of the setting.
    pub key: &'static str,
    /// Description of the error.
    pub what: String,
}

impl ExploreConfig {
    /// Fills in the settings that the world file does not set.
    pub fn set_absent(&mut self, defaults: LengthDefaults) {
        self.in_flight.get_or_insert(defaults.in_flight);
        self.checks.get_or_insert(defaults.checks);
    }

    /// Returns K. If K is not set, returns the default of an exploration of unlimited length.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.unwrap_or(LengthDefaults::default().in_flight)
    }

    /// Returns the share of branches after which the checks run, in ppm. If the share is not set, returns the default
    /// of an exploration of unlimited length.
    #[must_use]
    pub fn checks(&self) -> Ppm {
        self.checks.unwrap_or(LengthDefaults::default().checks)
    }

    /// Checks that each number is within its bounds.
    ///
    /// # Errors
    /// Returns an error for the first number that is out of bounds.
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
            return fail("horizon", format!("must be from {least} (one segment) to {most}"));
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
    fn given_settings_are_kept_and_absent_ones_are_fitted() {
        let fitted = |text: &str| {
            let mut explore: ExploreConfig = toml::from_str(text).unwrap();
            explore.set_absent(LengthDefaults { in_flight: 8, checks: PPM / 2 });
            (explore.in_flight(), explore.checks())
        };
        assert_eq!(fitted(""), (8, PPM / 2));
        assert_eq!(fitted("in_flight = 16"), (16, PPM / 2));
        assert_eq!(fitted("checks = 0"), (8, 0));
        let plain = ExploreConfig::default();
        assert_eq!((plain.in_flight(), plain.checks()), (64, PPM / 8));
    }

    #[test]
    fn settings_out_of_bounds_are_reported() {
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
        assert_eq!(wrong("horizon = \"1s\""), "horizon: must be from 2s (one segment) to 86400s");
        assert_eq!(wrong("checks = 1000001"), "checks: must be from 0 to 1000000, in parts of a million");
        assert_eq!(wrong("in_flight = 0"), "in_flight: must be from 1 to 65536, not 0");
        assert_eq!(wrong("depth = 17"), "depth: must be from 1 to 16, not 17");
    }
}
