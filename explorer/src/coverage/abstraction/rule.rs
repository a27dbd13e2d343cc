//! Validated rules, and their application to output lines. A rule sets variables if its regular expression matches a
//! line.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::pattern::{ExpressionError, expression, fits};

use super::super::limits::{NAME_BYTES_MAX, VALUE_BYTES_MAX, VALUES_DECLARED_MAX, VARIABLES_MAX};
use super::super::value::Value;
use super::super::world::World;
use super::config::{Capture, Reset, RuleConfig};
use super::error::RuleProblem;

/// Rule whose configuration was validated.
#[derive(Debug)]
pub(in super::super) struct Rule {
    config: RuleConfig,
    regex: Regex,
    /// Named captures of the expression, each with its interpretation.
    captured: Vec<(String, Capture)>,
    /// Nodes whose lines the rule reads. If empty, all nodes.
    nodes: BTreeSet<u16>,
}

/// Variable and value that a rule found in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct RuleMatch {
    pub(in super::super) variable: String,
    pub(in super::super) value: Value,
    /// True if neither the rule nor its capture bounds the number of distinct values, so the caller must bound it.
    pub(in super::super) open: bool,
}

impl Rule {
    pub(super) fn new(config: &RuleConfig, world: &World) -> Result<Rule, RuleProblem> {
        let named = |field, name: &str| match name.len() {
            1..=NAME_BYTES_MAX => Ok(()),
            _ => Err(RuleProblem::Name { field }),
        };
        named("name", &config.name)?;
        config.unit.as_deref().map_or(Ok(()), |unit| named("unit", unit))?;
        let regex = expression(&config.regex).map_err(|error| match error {
            ExpressionError::Long => RuleProblem::RegexLong,
            ExpressionError::Refused(why) => RuleProblem::Regex(why),
        })?;
        let mut nodes = BTreeSet::new();
        for name in &config.nodes {
            let indices = 0..u16::try_from(world.len()).unwrap_or(u16::MAX);
            let node = indices.into_iter().find(|node| world.name(*node) == name);
            nodes.insert(node.ok_or_else(|| RuleProblem::NoNode(name.clone()))?);
        }
        let taken = |name: &str| config.captures.get(name).copied().unwrap_or_default();
        let captured: Vec<(String, Capture)> =
            regex.capture_names().flatten().map(|name| (name.to_owned(), taken(name))).collect();
        let rule = Rule { config: config.clone(), regex, captured, nodes };
        rule.check_variables()?;
        rule.check_values()?;
        Ok(rule)
    }

    fn check_variables(&self) -> Result<(), RuleProblem> {
        let captures: BTreeMap<&str, Capture> =
            self.captured.iter().map(|(name, capture)| (name.as_str(), *capture)).collect();
        let variables: Vec<&str> = self.variables().map(|(name, _)| name).collect();
        match variables.len() {
            0 => return Err(RuleProblem::NoVariables),
            1..=VARIABLES_MAX => {}
            _ => return Err(RuleProblem::TooManyVariables),
        }
        for name in variables {
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let digit = name.starts_with(|c: char| c.is_ascii_digit());
            if !plain || digit || !(1..=NAME_BYTES_MAX).contains(&name.len()) {
                return Err(RuleProblem::VariableName(name.to_owned()));
            }
            if captures.contains_key(name) && self.config.set.contains_key(name) {
                return Err(RuleProblem::CapturedAndSet(name.to_owned()));
            }
            if self.config.global && captures.get(name) == Some(&Capture::Relative) {
                return Err(RuleProblem::GlobalRank(name.to_owned()));
            }
        }
        match self.config.captures.keys().find(|name| !captures.contains_key(name.as_str())) {
            Some(name) => Err(RuleProblem::NoCapture(name.clone())),
            None => Ok(()),
        }
    }

    fn check_values(&self) -> Result<(), RuleProblem> {
        for (variable, values) in &self.config.values {
            match self.variables().find(|(name, _)| name == variable) {
                None => return Err(RuleProblem::NoVariable(variable.clone())),
                Some((_, Capture::Exact)) => {}
                Some(_) => return Err(RuleProblem::ValuesOfNumber(variable.clone())),
            }
            if values.len() > VALUES_DECLARED_MAX {
                return Err(RuleProblem::TooManyValues(variable.clone()));
            }
            if values.iter().any(|value| value.len() > VALUE_BYTES_MAX) {
                return Err(RuleProblem::ValueLong(variable.clone()));
            }
        }
        for (variable, value) in &self.config.set {
            if value.len() > VALUE_BYTES_MAX {
                return Err(RuleProblem::ValueLong(variable.clone()));
            }
            if self.config.values.get(variable).is_some_and(|values| !values.contains(value)) {
                return Err(RuleProblem::NotAValue { variable: variable.clone(), value: value.clone() });
            }
        }
        Ok(())
    }

    pub(in super::super) fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns the variables that the rule sets, each with its interpretation.
    pub(in super::super) fn variables(&self) -> impl Iterator<Item = (&str, Capture)> {
        let set = self.config.set.keys().map(|name| (name.as_str(), Capture::Exact));
        self.captured.iter().map(|(name, capture)| (name.as_str(), *capture)).chain(set)
    }

    /// Returns the values that the rule declares for its variables.
    pub(in super::super) fn values(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.config.values
    }

    /// True if the variables belong to the whole world.
    pub(in super::super) fn global(&self) -> bool {
        self.config.global
    }

    /// True if the rule reads lines of this unit.
    pub(in super::super) fn is_about(&self, unit: &str) -> bool {
        self.config.unit.as_deref().is_none_or(|pattern| fits(pattern, unit))
    }

    /// True if this event clears the rule's variables.
    pub(in super::super) fn resets_on(&self, reset: Reset) -> bool {
        self.config.reset_on.contains(&reset)
    }

    /// Returns the variables that a line sets. Ignores a capture that must be a number if its text is no number.
    pub(in super::super) fn read(
        &self,
        node: Option<u16>,
        unit: &str,
        text: &str,
        world: &World,
    ) -> Vec<RuleMatch> {
        let of_node = self.nodes.is_empty() || node.is_some_and(|node| self.nodes.contains(&node));
        if !of_node || !self.is_about(unit) {
            return Vec::new();
        }
        let Some(captures) = self.regex.captures(text) else { return Vec::new() };
        let found = |variable: &str, value, open| RuleMatch { variable: variable.to_owned(), value, open };
        let captured = self.captured.iter().filter_map(|(variable, capture)| {
            RuleMatch::of(variable, *capture, captures.name(variable)?.as_str(), world)
        });
        let set = self.config.set.iter();
        captured
            .chain(set.map(|(variable, value)| found(variable, Value::text(value, world), false)))
            .collect()
    }
}

impl RuleMatch {
    /// Interprets the text of a variable's value. `None` if it must be a number and is none.
    pub(in super::super) fn of(
        variable: &str,
        capture: Capture,
        text: &str,
        world: &World,
    ) -> Option<RuleMatch> {
        let (value, open) = match capture {
            Capture::Exact => (Value::text(text, world), true),
            Capture::Relative => (Value::Ranked(number(text)?), false),
            Capture::Bucket => (Value::text(&bucket(number(text)?), world), false),
        };
        Some(RuleMatch { variable: variable.to_owned(), value, open })
    }
}

/// Parses a number without a sign. A number that is too large becomes `u64::MAX`.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Returns the largest power of two that is at most `number`, as text.
fn bucket(number: u64) -> String {
    number.checked_ilog2().map_or_else(|| "0".to_owned(), |log| format!("2^{log}"))
}
