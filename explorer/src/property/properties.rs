//! All properties that hold in a world.

use std::collections::BTreeSet;

use crate::coverage::text::head;
use crate::coverage::{NodeNames, World};
use crate::plan::names::hint;
use crate::plan::problem::quoted;

use super::builtin;
use super::config::PropertyConfig;
use super::limits::{NAME_BYTES_MAX, PROPERTIES_MAX};
use super::problem::{PropertyError, PropertyProblem};
use super::rule::{Form, Rule};

/// Declared properties that passed all checks, and the built-in ones that are not ignored.
#[derive(Debug)]
pub struct Properties {
    /// For the names of nodes in texts.
    world: World,
    rules: Vec<Rule>,
    ignored: BTreeSet<String>,
}

impl Properties {
    /// Those of a world that declares these, ignores the built-in ones of these names, and has these nodes.
    ///
    /// # Errors
    /// The first thing that is wrong with them.
    pub fn new(
        configs: &[PropertyConfig],
        ignore: &[String],
        nodes: &[String],
    ) -> Result<Properties, PropertyError> {
        let names = nodes.iter().map(|name| NodeNames { name: name.clone(), aliases: Vec::new() });
        let world = World::new(names.collect(), &[])?;
        if configs.len() > PROPERTIES_MAX {
            return Err(PropertyError::TooMany);
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(configs.len());
        for config in configs {
            let wrong = |problem| {
                let name = format!("{:?}", head(&config.name, NAME_BYTES_MAX));
                PropertyError::Property { name, problem }
            };
            let rule = Rule::new(config, nodes).map_err(wrong)?;
            if rules.iter().any(|other| other.name() == rule.name()) {
                return Err(wrong(PropertyProblem::NameTwice));
            }
            rules.push(rule);
        }
        if let Some(name) = ignore.iter().find(|name| builtin::names().all(|known| known != name.as_str())) {
            let hint = hint(name, builtin::names(), "they are");
            return Err(PropertyError::Ignore { name: quoted(name), hint });
        }
        Ok(Properties { world, rules, ignored: ignore.iter().cloned().collect() })
    }

    /// The names of those that at least one timeline must show.
    pub fn sometimes(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter(|rule| rule.form() == Form::Sometimes).map(Rule::name)
    }

    /// Whether a world ignores a built-in property.
    #[must_use]
    pub fn ignores(&self, name: &str) -> bool {
        self.ignored.contains(name)
    }

    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }
}
