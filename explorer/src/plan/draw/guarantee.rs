//! Lower bound on the probability that strategy `pct` finds a bug, and the bound's text for reports. The strategy gives
//! the nodes of each run random priorities: the messages of a node with a lower priority arrive later.

use std::fmt;

use serde::Serialize;

use crate::coverage::statistics::Pct;

/// Parameters from which the bound is computed. All runs drew their priorities independently of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Guarantee {
    /// Number n of chains, i.e. nodes.
    pub chains: u64,
    /// Number k of messages in a run.
    pub messages: u64,
    /// Depth d: number of pairs of events that must happen in a certain order for the bug to appear.
    pub depth: u32,
    /// Number of runs.
    pub runs: u64,
}

impl Guarantee {
    /// Returns the parameters of the bound for one run. The bound says that a run finds the bug with a probability p of
    /// at least 1 / (n k^(d-1)). The bound is only heuristic. It assumes that a node's messages arrive before all
    /// messages of nodes with lower priorities, but a lower priority only adds latency.
    #[must_use]
    pub fn bound(&self) -> Pct {
        Pct { chains: self.chains, events: self.messages, depth: self.depth }
    }

    /// Returns the bound for one run as a float, for display only. Returns 0 if there is no bound, because a parameter
    /// is 0 or n k^(d-1) overflows.
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.bound().runs_expected().map_or(0.0, |runs| 1.0 / runs as f64)
    }

    /// Returns the bound for all runs together: at least one of them finds the bug with a probability of at least
    /// 1 - (1 - p)^runs, where p is the bound for one run. For display only, and as heuristic as p.
    #[must_use]
    pub fn accumulated(&self) -> f64 {
        self.bound().accumulated(self.runs)
    }
}

/// Formats the guarantee as a text that continues the words "The guarantee of random priorities is".
impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guarantee { chains, messages, depth, runs } = self;
        f.write_str("only heuristic, because latency does not order messages strictly. ")?;
        let Some(expected) = self.bound().runs_expected() else {
            return write!(
                f,
                "There is no bound for depth {depth}, {chains} nodes and {messages} messages a run"
            );
        };
        write!(
            f,
            "If it did, a run with {messages} messages of {chains} nodes would find a bug of depth {depth} with a \
             probability of at least 1/{expected}. The bound for all runs together ({runs}) is {}",
            percent(self.accumulated())
        )
    }
}

/// Formats a probability in percent. Shows 0 % and 100 % only for exactly 0 and 1.
fn percent(probability: f64) -> String {
    let percent = 100.0 * probability;
    if percent > 0.0 && percent < 0.1 {
        "less than 0.1 %".to_owned()
    } else if percent < 100.0 && percent > 99.9 {
        "more than 99.9 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Guarantee = Guarantee { chains: 3, messages: 100, depth: 2, runs: 300 };

    #[test]
    fn it_is_the_bound_of_strict_order() {
        assert!((FEW.probability() - 1.0 / 300.0).abs() < 1e-15);
        let direct = 1.0 - (1.0 - 1.0 / 300.0f64).powi(300);
        assert!((FEW.accumulated() - direct).abs() < 1e-12);
        let nothing = Guarantee { depth: 0, ..FEW };
        assert_eq!((nothing.probability(), nothing.accumulated()), (0.0, 0.0));
    }

    #[test]
    fn the_text_says_that_it_is_a_heuristic() {
        assert_eq!(
            FEW.to_string(),
            "only heuristic, because latency does not order messages strictly. If it did, a run with 100 messages of \
             3 nodes would find a bug of depth 2 with a probability of at least 1/300. The bound for all runs together \
             (300) is 63.3 %"
        );
        let shown = |runs| Guarantee { runs, ..FEW }.to_string();
        assert!(shown(0).ends_with("together (0) is 0.0 %"));
        assert!(
            Guarantee { depth: 4, runs: 1, ..FEW }.to_string().ends_with("together (1) is less than 0.1 %")
        );
        assert!(shown(9_000).ends_with("more than 99.9 %"), "{}", shown(9_000));
        for nothing in [Guarantee { depth: 0, ..FEW }, Guarantee { messages: u64::MAX, depth: 9, ..FEW }] {
            assert!(nothing.to_string().contains("heuristic") && nothing.to_string().contains("no bound"));
        }
    }
}
