//! Definition of a world's abstract state, which is a summary of the world's logs and faults. The definition says
//! whether declared rules, log templates or both summarize the logs.
//!
//! - `config`: the configuration in world files
//! - `error`: errors in the configuration
//! - `rule`: rules that have passed the checks
//!
//! Not here: the states themselves (`super::abstract_state`), and their changes (`super::observer`).
//!
//! **Invariant.** An [`Abstraction`] has passed all checks. A variable has the same meaning in all rules that set it.

mod config;
mod error;
mod rule;

use std::collections::BTreeMap;

pub use config::{AbstractionConfig, Capture, Reset, RuleConfig, Templates};
pub use error::{AbstractionError, RuleProblem};
pub(super) use rule::{Rule, RuleMatch};

use super::limits::{RULES_MAX, VOCABULARY_MAX};
use super::world::World;

/// Checked definition of a world's abstract state.
#[derive(Debug)]
pub struct Abstraction {
    world: World,
    rules: Vec<Rule>,
    templates: bool,
    last: usize,
    vocabulary: usize,
}

impl Abstraction {
    /// Checks a configuration against a world.
    ///
    /// # Errors
    /// Returns an error for the first problem in the configuration.
    pub fn new(config: &AbstractionConfig, world: World) -> Result<Abstraction, AbstractionError> {
        let (last, vocabulary) = (usize::from(config.last), usize::from(config.vocabulary));
        if !(1..=2).contains(&last) {
            return Err(AbstractionError::Last(config.last));
        }
        if !(1..=VOCABULARY_MAX).contains(&vocabulary) {
            return Err(AbstractionError::Vocabulary(config.vocabulary));
        }
        if config.rules.len() > RULES_MAX {
            return Err(AbstractionError::TooManyRules);
        }
        let mut rules: Vec<Rule> = Vec::new();
        // Maps each variable to the form of its captured text (exact, rank or logarithm), and to true if the variable
        // is global. All rules that set the variable must agree on both.
        let mut meanings = BTreeMap::new();
        for config in &config.rules {
            let wrong = |source| AbstractionError::Rule { rule: config.name.clone(), source };
            if rules.iter().any(|rule| rule.name() == config.name) {
                return Err(wrong(RuleProblem::NameTwice));
            }
            let rule = Rule::new(config, &world).map_err(wrong)?;
            for (variable, capture) in rule.variables() {
                let meaning = (capture, config.global);
                if *meanings.entry(variable.to_owned()).or_insert(meaning) != meaning {
                    return Err(wrong(RuleProblem::TwoMeanings(variable.to_owned())));
                }
            }
            rules.push(rule);
        }
        let templates = match config.templates {
            Templates::On => true,
            Templates::Off => false,
            Templates::Auto => rules.is_empty(),
        };
        Ok(Abstraction { world, rules, templates, last, vocabulary })
    }

    /// Returns the abstraction of a world that has further state variables, which probes set. Log templates are then not
    /// part of the state, unless the configuration says so.
    #[must_use]
    pub fn with_variables(mut self, config: &AbstractionConfig) -> Abstraction {
        self.templates &= config.templates != Templates::Auto;
        self
    }

    /// Returns the world.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the rules.
    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns how many of the latest log templates of a unit (a service or driver) are part of the state of the unit's
    /// node. Returns 0 if log templates are not part of the state. A log template is a line without its variable parts.
    pub(super) fn classes_kept(&self) -> usize {
        if self.templates { self.last } else { 0 }
    }

    /// Returns the maximum number of different templates of a unit. All further templates count as one, `other`.
    pub(super) fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}
