//! Test templates: the test commands that the nodes of a world have in their template folders. A test command is an
//! executable. The prefix of its name, e.g. `anytime_`, says when Everett runs it. A helper is a file that commands
//! use.

use std::collections::{BTreeMap, BTreeSet};

use everett_input::text::quoted;

use super::limits::{COMMANDS_MAX, NAME_BYTES_MAX, NODES_MAX};
use super::prefix::Prefix;

/// Test command. Files with the same name on several nodes are one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    name: String,
    prefix: Prefix,
    nodes: BTreeSet<u16>,
}

impl Command {
    /// Returns the name of the command's file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the prefix of the name. Never returns [`Prefix::Helper`], because a helper is not a command.
    #[must_use]
    pub fn prefix(&self) -> Prefix {
        self.prefix
    }

    /// Returns the numbers of the nodes that have the command. There is at least one.
    #[must_use]
    pub fn nodes(&self) -> &BTreeSet<u16> {
        &self.nodes
    }
}

/// Commands of a test template, sorted by name. A command's number is its index in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    commands: Vec<Command>,
}

/// Reason why a folder's files are not a test template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A string cannot be a file name.
    #[error("{} is not a file name", quoted(.0))]
    NoFileName(String),
    /// A file is neither a command nor a helper.
    #[error("{} is not a test command: its name must start with one of {} and have at least one more character", quoted(.0), prefixes())]
    NoPrefix(String),
    /// A name is longer than [`NAME_BYTES_MAX`] bytes.
    #[error("the name {} has more than {NAME_BYTES_MAX} bytes", quoted(.0))]
    NameTooLong(String),
    /// The template has more than [`COMMANDS_MAX`] commands.
    #[error("a test template has at most {COMMANDS_MAX} commands, and {} is one more", quoted(.0))]
    TooManyCommands(String),
    /// A node's number is [`NODES_MAX`] or higher.
    #[error("{} is on node number {node}, and a world has at most {NODES_MAX} nodes", quoted(.name))]
    NoNode {
        /// Name of the file.
        name: String,
        /// Number of the node, from 0.
        node: u16,
    },
    /// The template has neither a driver nor an `anytime_` command.
    #[error(
        "there is no driver: a test template needs a parallel_driver_, serial_driver_, singleton_driver_ or anytime_ command"
    )]
    NoDriver,
}

fn prefixes() -> String {
    Prefix::ALL.map(Prefix::as_str).join(", ")
}

/// Returns the prefix of a file name.
pub(super) fn prefix_of(name: &str) -> Result<Prefix, TemplateError> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(TemplateError::NoFileName(name.to_owned()));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(TemplateError::NameTooLong(name.to_owned()));
    }
    Prefix::of(name).ok_or_else(|| TemplateError::NoPrefix(name.to_owned()))
}

impl Template {
    /// Creates a template from executables, in any order. Each executable comes with the number of a node that has it.
    /// Helpers are ignored.
    ///
    /// # Errors
    /// Returns an error for the first invalid name or node number, if there are too many commands, or if the template
    /// has neither a driver nor an `anytime_` command.
    pub fn new(files: impl IntoIterator<Item = (u16, String)>) -> Result<Template, TemplateError> {
        let mut commands: BTreeMap<String, Command> = BTreeMap::new();
        for (node, name) in files {
            let prefix = prefix_of(&name)?;
            if prefix == Prefix::Helper {
                continue;
            }
            if usize::from(node) >= NODES_MAX {
                return Err(TemplateError::NoNode { name, node });
            }
            if commands.len() >= COMMANDS_MAX && !commands.contains_key(&name) {
                return Err(TemplateError::TooManyCommands(name));
            }
            let command = Command { name: name.clone(), prefix, nodes: BTreeSet::new() };
            commands.entry(name).or_insert(command).nodes.insert(node);
        }
        let template = Template { commands: commands.into_values().collect() };
        let works = |command: &Command| command.prefix.is_driver() || command.prefix == Prefix::Anytime;
        if !template.commands.iter().any(works) {
            return Err(TemplateError::NoDriver);
        }
        Ok(template)
    }

    /// Returns the commands, sorted by name.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Returns the command with this number, or `None` if the number is too high.
    #[must_use]
    pub fn command(&self, number: usize) -> Option<&Command> {
        self.commands.get(number)
    }

    /// Returns the prefix of the command with this number.
    pub(super) fn prefix(&self, number: usize) -> Option<Prefix> {
        self.command(number).map(Command::prefix)
    }

    /// Returns the numbers of the commands whose prefix satisfies `is`.
    pub(super) fn with(&self, is: impl Fn(Prefix) -> bool) -> impl Iterator<Item = usize> {
        let matching = self.commands.iter().enumerate().filter(move |(_, command)| is(command.prefix));
        matching.map(|(number, _)| number)
    }

    /// Returns true if the template has a command with this prefix.
    pub(super) fn has(&self, prefix: Prefix) -> bool {
        self.with(|other| other == prefix).next().is_some()
    }

    /// Returns true if a node has at least one of the commands.
    pub(super) fn uses(&self, node: u16) -> bool {
        self.commands.iter().any(|command| command.nodes.contains(&node))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(files: &[(u16, &str)]) -> Result<Template, TemplateError> {
        Template::new(files.iter().map(|(node, name)| (*node, (*name).to_owned())))
    }

    #[test]
    fn the_same_name_is_one_command() {
        let template = template(&[
            (2, "parallel_driver_b"),
            (0, "helper_x"),
            (1, "finally_z"),
            (0, "parallel_driver_b"),
            (3, "first_a"),
            (2, "parallel_driver_b"),
        ])
        .unwrap();
        let seen: Vec<(&str, Prefix, Vec<u16>)> = template
            .commands()
            .iter()
            .map(|c| (c.name(), c.prefix(), c.nodes().iter().copied().collect()))
            .collect();
        assert_eq!(
            seen,
            [
                ("finally_z", Prefix::Finally, vec![1]),
                ("first_a", Prefix::First, vec![3]),
                ("parallel_driver_b", Prefix::ParallelDriver, vec![0, 2]),
            ]
        );
        assert!(template.uses(3) && !template.uses(4));
    }

    #[test]
    fn errors_of_templates() {
        let error = |files: &[(u16, &str)]| template(files).unwrap_err().to_string();
        assert_eq!(
            error(&[(0, "anytime_a"), (0, "run.sh")]),
            "\"run.sh\" is not a test command: its name must start with one of first_, parallel_driver_, serial_driver_, \
             singleton_driver_, anytime_, eventually_, finally_, helper_ and have at least one more character"
        );
        for name in ["", ".", "..", "a/first_x", "first_\0"] {
            assert_eq!(template(&[(0, name)]), Err(TemplateError::NoFileName(name.to_owned())));
        }
        let long = format!("first_{}", "x".repeat(NAME_BYTES_MAX - 6));
        assert_eq!(template(&[(0, &long)]), Err(TemplateError::NoDriver), "the longest name is valid");
        let message = error(&[(0, &format!("{long}x"))]);
        assert!(message.starts_with("the name \"first_xxx") && message.len() < 120, "{message}");
        assert_eq!(
            error(&[(64, "anytime_x")]),
            "\"anytime_x\" is on node number 64, and a world has at most 64 nodes"
        );
        assert_eq!(template(&[]), Err(TemplateError::NoDriver));
        let others = [(0, "first_a"), (0, "finally_a"), (0, "eventually_a"), (0, "helper_a")];
        assert_eq!(template(&others), Err(TemplateError::NoDriver));
        for driver in ["parallel_driver_a", "serial_driver_a", "singleton_driver_a", "anytime_a"] {
            assert!(template(&[(63, driver)]).is_ok(), "{driver}");
        }
        let many = |count| (0..count).map(|i| (0, format!("anytime_{i}")));
        assert_eq!(Template::new(many(COMMANDS_MAX)).unwrap().commands().len(), COMMANDS_MAX);
        let again = many(COMMANDS_MAX).chain(many(COMMANDS_MAX));
        assert!(Template::new(again).is_ok(), "repeated names are one command");
        let error = Template::new(many(COMMANDS_MAX + 1)).unwrap_err();
        assert_eq!(error, TemplateError::TooManyCommands("anytime_256".to_owned()));
    }

    proptest! {
        /// The order in which nodes list their files has no effect.
        #[test]
        fn order_does_not_matter(
            files in prop::collection::vec((0u16..4, "(first|anytime|finally|helper)_[ab]"), 1..20)
                .prop_flat_map(|files| (Just(files.clone()), Just(files).prop_shuffle())),
        ) {
            prop_assert_eq!(Template::new(files.0), Template::new(files.1));
        }

        #[test]
        fn any_name_is_a_command_or_an_error(name in "\\PC*|(first|anytime)_.*", node: u16) {
            if let Ok(template) = Template::new([(node, name.clone())]) {
                prop_assert_eq!(template.commands()[0].name(), &name);
            }
        }
    }
}
