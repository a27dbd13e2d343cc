//! What of a world is taken for its state: declared rules, and log templates where none are declared.
//!
//! - `config`: what is declared; `problem`: what can be wrong with it; `rule`: a rule that was checked
//!
//! Not here: the states themselves (`super::state`), and when they change (`super::observer`).
//!
//! **Invariant.** An [`Abstraction`] passed all checks: a variable means the same in all rules that set it.

mod config;
mod problem;
mod rule;

use std::collections::BTreeMap;

pub use config::{AbstractionConfig, Capture, Reset, RuleConfig, Templates};
pub use problem::{AbstractionError, RuleProblem};
pub(super) use rule::{Found, Rule};

use super::limits::{RULES_MAX, VOCABULARY_MAX};
use super::world::World;

/// What is taken for the state of a world.
#[derive(Debug)]
pub struct Abstraction {
    world: World,
    rules: Vec<Rule>,
    templates: bool,
    last: usize,
    vocabulary: usize,
}

impl Abstraction {
    /// What is declared, for a world.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
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
        // By variable: how it is taken, and whether it is the world's. One meaning for all rules.
        let mut meanings = BTreeMap::new();
        for config in &config.rules {
            let wrong = |problem| AbstractionError::Rule { rule: config.name.clone(), problem };
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

    /// The world.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The rules.
    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How many of a unit's last template classes are part of its node's state.
    pub(super) fn classes_kept(&self) -> usize {
        if self.templates { self.last } else { 0 }
    }

    /// How many templates of a unit are told apart.
    pub(super) fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}
