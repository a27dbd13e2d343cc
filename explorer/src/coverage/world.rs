//! The nodes of a world as coverage sees them: their names, and which are interchangeable.

use std::collections::BTreeSet;

use super::limits::{ALIASES_MAX, NODES_MAX};

/// A node's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNames {
    /// Its name in the world.
    pub name: String,
    /// What else it is called in values that rules capture, such as its addresses.
    pub aliases: Vec<String>,
}

/// The nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    nodes: Vec<NodeNames>,
    /// By node, which group it is in.
    groups: Vec<Option<usize>>,
    /// All names and what they name, the longest first: a name may be the start of another.
    names: Vec<(String, u16)>,
}

/// What can be wrong with the nodes of a world.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// More nodes than are possible.
    #[error("at most {NODES_MAX} nodes have coverage")]
    TooManyNodes,
    /// More names of a node than are possible.
    #[error("node {0:?} has more than {ALIASES_MAX} aliases")]
    TooManyAliases(String),
    /// A name of nothing.
    #[error("a node's name or alias is empty")]
    EmptyName,
    /// A name of two nodes.
    #[error("{0:?} names two nodes")]
    NameTwice(String),
    /// A member of a group that does not exist.
    #[error("interchangeable: there is no node {0:?}")]
    NoNode(String),
    /// A member of two groups, or twice of one.
    #[error("interchangeable: node {0:?} is given twice")]
    MemberTwice(String),
}

/// A stretch of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Text(&'t str),
    Node(u16),
}

impl World {
    /// A world with these nodes, and with groups of nodes that are interchangeable: by name, a group a list.
    ///
    /// # Errors
    /// The first thing that is wrong with them.
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

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node's name; empty if there is no such node.
    pub(super) fn name(&self, node: u16) -> &str {
        self.nodes.get(usize::from(node)).map_or("", |node| &node.name)
    }

    /// Which group of interchangeable nodes a node is in.
    pub(super) fn group(&self, node: u16) -> Option<usize> {
        self.groups.get(usize::from(node)).copied().flatten()
    }

    /// A text cut into names of nodes and what is between them.
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

    /// A text in which each name of a node is `<node>`.
    pub(crate) fn mask(&self, text: &str) -> String {
        let piece = |piece| match piece {
            Piece::Text(text) => text,
            Piece::Node(_) => "<node>",
        };
        self.pieces(text).into_iter().map(piece).collect()
    }

    /// The name that a text starts with, if nothing that belongs to a longer word follows.
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

/// Whether a character belongs to the word of a name.
fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}
