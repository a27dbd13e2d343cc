//! Properties that a world file declares, after validation.

use std::collections::BTreeSet;

use everett_input::text::quoted;
use regex::Regex;

use crate::pattern::{expression, fits};
use crate::plan::names::hint;

use super::builtin;
use super::config::PropertyConfig;
use super::error::PropertyProblem;
use super::limits::{NAME_BYTES_MAX, UNIT_BYTES_MAX, VIOLATED_BYTES_MAX};

/// Effect of a matching line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Never,
    Eventually,
    Sometimes,
}

/// Valid property of a world file. Its regular expression is matched against log lines.
#[derive(Debug)]
pub(super) struct Rule {
    name: String,
    form: Form,
    regex: Regex,
    /// Name pattern of the units (services and other sources of lines) whose lines are matched. `None` for all units.
    unit: Option<String>,
    /// Indices of the nodes whose lines are matched. `None` for all nodes.
    nodes: Option<BTreeSet<u16>>,
    console: bool,
}

impl Rule {
    pub(super) fn new(config: &PropertyConfig, nodes: &[String]) -> Result<Rule, PropertyProblem> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_.".contains(&byte);
        if !(1..=NAME_BYTES_MAX).contains(&config.name.len()) || !config.name.bytes().all(plain) {
            return Err(PropertyProblem::Name);
        }
        if builtin::names().any(|name| name == config.name) {
            return Err(PropertyProblem::NameOfBuiltIn);
        }
        let (key, form, text) = match (&config.never, &config.eventually, &config.sometimes) {
            (Some(text), None, None) => ("never", Form::Never, text),
            (None, Some(text), None) => ("eventually", Form::Eventually, text),
            (None, None, Some(text)) => ("sometimes", Form::Sometimes, text),
            _ => return Err(PropertyProblem::Form),
        };
        let refused = |why: String| PropertyProblem::Expression { key, why };
        let regex = expression(text).map_err(|error| refused(error.to_string()))?;
        if let Some(unit) = &config.unit {
            if config.console {
                return Err(PropertyProblem::UnitOfConsole);
            }
            if !(1..=UNIT_BYTES_MAX).contains(&unit.len()) {
                return Err(PropertyProblem::Unit);
            }
        }
        if let Some(violated) = &config.violated {
            if form == Form::Sometimes {
                return Err(PropertyProblem::NeverViolated);
            }
            if !(1..=VIOLATED_BYTES_MAX).contains(&violated.len()) || violated.contains(char::is_control) {
                return Err(PropertyProblem::Violated);
            }
        }
        Ok(Rule {
            name: config.name.clone(),
            form,
            regex,
            unit: config.unit.clone(),
            nodes: config.nodes.as_ref().map(|of| indices(of, nodes)).transpose()?,
            console: config.console,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Returns true if a match in a log record of several lines (e.g. a traceback) becomes a hit only when the record
    /// ends. A hit is a violation that was found. The hit's text is the cause that the record
    /// names.
    pub(super) fn takes_records(&self) -> bool {
        self.form == Form::Never && !self.console
    }

    /// Returns the expression as the world file has it.
    pub(super) fn expression(&self) -> &str {
        self.regex.as_str()
    }

    /// Returns true if the rule matches this line. `unit` is `None` for console lines.
    pub(super) fn matches(&self, node: Option<u16>, unit: Option<&str>, text: &str) -> bool {
        let of_source = match (unit, &self.unit) {
            (None, _) => self.console,
            (Some(_), _) if self.console => false,
            (Some(unit), Some(pattern)) => fits(pattern, unit),
            (Some(_), None) => true,
        };
        let of_node = || {
            let nodes = self.nodes.as_ref();
            nodes.is_none_or(|nodes| node.is_some_and(|node| nodes.contains(&node)))
        };
        of_source && of_node() && self.regex.is_match(text)
    }
}

fn indices(of: &BTreeSet<String>, nodes: &[String]) -> Result<BTreeSet<u16>, PropertyProblem> {
    if of.is_empty() {
        return Err(PropertyProblem::NoNodes);
    }
    let index = |name: &String| {
        let found = (0u16..).zip(nodes).find(|(_, node)| *node == name);
        found.map(|(index, _)| index).ok_or_else(|| PropertyProblem::NoNode {
            name: quoted(name),
            hint: hint(name, nodes.iter().map(String::as_str), "the nodes are"),
        })
    };
    of.iter().map(index).collect()
}
