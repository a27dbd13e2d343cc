//! All properties of a world.

use std::collections::{BTreeMap, BTreeSet};

use everett_input::text::quoted;

use crate::coverage::{NodeNames, World};
use crate::plan::names::hint;
use crate::text::head;

use super::builtin;
use super::config::PropertyConfig;
use super::error::{PropertyError, PropertyProblem};
use super::limits::{NAME_BYTES_MAX, PROPERTIES_MAX};
use super::rule::{Form, Rule};

/// Properties of a world: its declared properties, and the names of ignored built-in properties.
#[derive(Debug)]
pub struct Properties {
    /// Names of the world's nodes. Placeholders replace these names in the text of a violation before the violation's
    /// signature (a hash) is computed. Violations with equal signatures are the same finding.
    world: World,
    rules: Vec<Rule>,
    ignored: BTreeSet<String>,
    /// Names of the probes whose first hit is noted. True for probes that should hit on at least one timeline.
    probes: BTreeMap<String, bool>,
}

impl Properties {
    /// Checks and combines the properties of a world with these nodes. The world declares `configs`, and ignores the
    /// built-in properties in `ignore`.
    ///
    /// # Errors
    /// Returns an error for the first invalid declaration or unknown name.
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
                PropertyError::Property { name, source: problem }
            };
            let rule = Rule::new(config, nodes).map_err(wrong)?;
            if rules.iter().any(|other| other.name() == rule.name()) {
                return Err(wrong(PropertyProblem::NameTwice));
            }
            rules.push(rule);
        }
        if let Some(name) = ignore.iter().find(|name| builtin::names().all(|known| known != name.as_str())) {
            let hint = hint(name, builtin::names(), "the built-in properties are");
            return Err(PropertyError::Ignore { name: quoted(name), hint });
        }
        Ok(Properties { world, rules, ignored: ignore.iter().cloned().collect(), probes: BTreeMap::new() })
    }

    /// Adds the probes whose first hit is noted, by their names: true for a probe that should hit on at least one timeline.
    #[must_use]
    pub fn with_probes(mut self, probes: BTreeMap<String, bool>) -> Properties {
        self.probes = probes;
        self
    }

    /// Returns the names of the declared `sometimes` properties and of the probes that should hit.
    pub fn sometimes(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter().filter(|rule| rule.form() == Form::Sometimes).map(Rule::name);
        let probes = self.probes.iter().filter(|(_, is_wanted)| **is_wanted);
        rules.chain(probes.map(|(name, _)| name.as_str()))
    }

    pub(super) fn notes_hit_of(&self, probe: &str) -> bool {
        self.probes.contains_key(probe)
    }

    /// Returns true if the world ignores this built-in property.
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
