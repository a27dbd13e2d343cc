//! Names of strategies.

use std::fmt;
use std::str::FromStr;

use everett_input::text::quoted;
use serde::{Deserialize, Serialize};

use crate::plan::names::hint;

use super::{Novelty, Pct, Strategy, Uniform};

/// Strategy, as world files and command lines name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StrategyKind {
    /// Strategy [`Uniform`].
    Uniform,
    /// Strategy [`Novelty`], with its defaults.
    #[default]
    Novelty,
    /// Strategy [`Pct`].
    Pct,
}

/// Unknown name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy {name}; {hint}")]
#[expect(missing_docs, reason = "the message says what the fields are")]
pub struct NoStrategy {
    pub name: String,
    pub hint: String,
}

impl StrategyKind {
    /// All strategies.
    pub const ALL: [StrategyKind; 3] = [StrategyKind::Uniform, StrategyKind::Novelty, StrategyKind::Pct];

    /// Returns the name that world files use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StrategyKind::Uniform => "uniform",
            StrategyKind::Novelty => "novelty",
            StrategyKind::Pct => "pct",
        }
    }

    /// Creates the strategy.
    #[must_use]
    pub fn strategy(self) -> Box<dyn Strategy + Send> {
        match self {
            StrategyKind::Uniform => Box::new(Uniform),
            StrategyKind::Novelty => Box::new(Novelty::default()),
            StrategyKind::Pct => Box::new(Pct),
        }
    }
}

impl fmt::Display for StrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StrategyKind {
    type Err = NoStrategy;

    fn from_str(text: &str) -> Result<StrategyKind, NoStrategy> {
        let named = StrategyKind::ALL.into_iter().find(|kind| kind.name() == text);
        named.ok_or_else(|| {
            let names = StrategyKind::ALL.into_iter().map(StrategyKind::name);
            NoStrategy { name: quoted(text), hint: hint(text, names, "the strategies are") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_equal_the_serialised_ones_and_can_be_parsed() {
        for kind in StrategyKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!(StrategyKind::ALL.is_sorted_by(|a, b| a < b));
        let error = |text: &str| text.parse::<StrategyKind>().unwrap_err().to_string();
        assert_eq!(error("novel"), "there is no strategy \"novel\"; did you mean \"novelty\"?");
        assert_eq!(error("PCT"), "there is no strategy \"PCT\"; the strategies are uniform, novelty, pct");
        assert_eq!(format!("{:>4}", StrategyKind::Pct), " pct");
    }
}
