//! Nodes of a world as coverage uses them: their names, and their groups of interchangeable nodes. Two states that
//! differ only in the order of interchangeable nodes count as one state.

use std::collections::BTreeSet;

use super::limits::{ALIASES_MAX, NODES_MAX};

/// Names of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNames {
    /// Name of the node in the world.
    pub name: String,
    /// Other names of the node in values that rules capture from log lines, e.g. addresses.
    pub aliases: Vec<String>,
}

/// Nodes of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    nodes: Vec<NodeNames>,
    /// Index of each node's group, or `None` if the node is not interchangeable.
    groups: Vec<Option<usize>>,
    /// All names with their nodes. The longest names come first, because a name may be a prefix of another.
    names: Vec<(String, u16)>,
}

/// Error in the declaration of a world's nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// The world has more than [`NODES_MAX`] nodes.
    #[error("coverage supports at most {NODES_MAX} nodes")]
    TooManyNodes,
    /// A node has more than [`ALIASES_MAX`] aliases.
    #[error("node {0:?} has more than {ALIASES_MAX} aliases")]
    TooManyAliases(String),
    /// A name or alias is empty.
    #[error("a node's name or alias is empty")]
    EmptyName,
    /// Two nodes have the same name or alias.
    #[error("{0:?} names two nodes")]
    NameTwice(String),
    /// A group has a member that is not a node of the world.
    #[error("interchangeable: there is no node {0:?}")]
    NoNode(String),
    /// A node is in two groups, or twice in one group.
    #[error("interchangeable: node {0:?} is given twice")]
    MemberTwice(String),
}

/// Part of a text: plain text, or the name of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Text(&'t str),
    Node(u16),
}

impl World {
    /// Creates a world with these nodes. Each list in `interchangeable` is a group of nodes, by name.
    ///
    /// # Errors
    /// Returns an error for the first problem, in the order of nodes and groups.
    pub fn new(nodes: Vec<NodeNames>, interchangeable: &[Vec<String>]) -> Result<World, WorldError> {
        if nodes.len() > NODES_MAX {
            return Err(WorldError::TooManyNodes);
        }
        let mut seen = BTreeSet::new();
        let mut names = Vec::new();
        for (index, node) in (0u16..).zip(&nodes) {
            if node.aliases.len() > ALIASES_MAX {
                return Err(WorldError::TooManyAliases(node.name.clone()));
            }
            for name in std::iter::once(&node.name).chain(&node.aliases) {
                if name.is_empty() {
                    return Err(WorldError::EmptyName);
                }
                if !seen.insert(name.clone()) {
                    return Err(WorldError::NameTwice(name.clone()));
                }
                names.push((name.clone(), index));
            }
        }
        names.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        let mut groups = vec![None; nodes.len()];
        for (group, members) in interchangeable.iter().enumerate() {
            for name in members {
                let index = nodes.iter().position(|node| node.name == *name);
                match index.and_then(|index| groups.get_mut(index)) {
                    None => return Err(WorldError::NoNode(name.clone())),
                    Some(Some(_)) => return Err(WorldError::MemberTwice(name.clone())),
                    Some(place) => *place = Some(group),
                }
            }
        }
        Ok(World { nodes, groups, names })
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if the world has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns a node's name, or an empty text for an unknown node.
    pub(super) fn name(&self, node: u16) -> &str {
        self.nodes.get(usize::from(node)).map_or("", |node| &node.name)
    }

    /// Returns the index of a node's group, or `None` if the node is not interchangeable.
    pub(super) fn group(&self, node: u16) -> Option<usize> {
        self.groups.get(usize::from(node)).copied().flatten()
    }

    /// Splits a text into names of nodes and the parts between them.
    pub(super) fn pieces<'t>(&self, text: &'t str) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        let (mut start, mut at) = (0, 0);
        let mut inside = false;
        while let Some(rest) = text.get(at..) {
            let Some(c) = rest.chars().next() else { break };
            if !inside && let Some((length, node)) = self.name_at(rest) {
                pieces.extend(text.get(start..at).filter(|t| !t.is_empty()).map(Piece::Text));
                pieces.push(Piece::Node(node));
                at += length;
                start = at;
                inside = true;
            } else {
                at += c.len_utf8();
                inside = in_name(c) || c == '.' && inside;
            }
        }
        pieces.extend(text.get(start..).filter(|t| !t.is_empty()).map(Piece::Text));
        pieces
    }

    /// Returns a text in which each node's name is replaced by `<node>`.
    pub(crate) fn mask(&self, text: &str) -> String {
        let piece = |piece| match piece {
            Piece::Text(text) => text,
            Piece::Node(_) => "<node>",
        };
        self.pieces(text).into_iter().map(piece).collect()
    }

    /// Returns the length and the node of the name at the start of a text. The name must end at a word boundary.
    fn name_at(&self, text: &str) -> Option<(usize, u16)> {
        let ends = |rest: &str| {
            let mut chars = rest.chars();
            match chars.next() {
                Some('.') => !chars.next().is_some_and(in_name),
                Some(c) => !in_name(c),
                None => true,
            }
        };
        let found = self.names.iter().find(|(name, _)| text.strip_prefix(name.as_str()).is_some_and(ends))?;
        Some((found.0.len(), found.1))
    }
}

/// True if a character can be part of a node's name.
fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}
