//! Parses YAML into a tree whose nodes know their file and line.
//!
//! The parser handles the tags `!reset` and `!override`. A value with `!reset` is left out of the tree. The paths of
//! values with either tag are listed, so that a merge can first remove the values at these paths from the tree of the
//! earlier file.
//!
//! Depth and total size are bounded while the tree is built. The size includes the expansion of all aliases. Aliases
//! share their nodes in memory, so a short text with a huge expansion is refused before it takes much memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use everett_input::file::folder_of;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use crate::error::Error;

/// Maximum depth of nested lists and mappings.
const DEPTH_MAX: usize = 64;
/// Maximum size of a text with all aliases expanded, in bytes: the text of all scalars and keys, and [`NODE_BYTES`] for
/// each scalar, list and mapping.
pub(super) const EXPANDED_BYTES_MAX: u64 = 16 << 20;
/// Number of bytes that each node adds to the size, besides the bytes of its text.
const NODE_BYTES: u64 = 16;
/// Key whose value is a mapping that is merged into the mapping around the key.
const MERGE: &str = "<<";

/// File from which a value comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) file: Box<Path>,
    /// Folder from which the file's relative paths start.
    pub(super) folder: Box<Path>,
}

impl Origin {
    /// Returns the origin for a file whose relative paths start in its own folder.
    pub(super) fn new(file: &Path) -> Rc<Origin> {
        Origin::within(file, file)
    }

    /// Returns the origin for a file whose relative paths start in the folder of the file `first`.
    pub(super) fn within(file: &Path, first: &Path) -> Rc<Origin> {
        Rc::new(Origin { file: file.into(), folder: folder_of(first).into() })
    }
}

/// Position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    pub(super) origin: Rc<Origin>,
    /// Line number, counted from 1.
    pub(super) line: usize,
}

/// Keys from the root to a value.
pub(super) type KeyPath = Vec<String>;

/// A file as a tree.
pub(super) struct Parsed {
    pub(super) root: Rc<Node>,
    /// Paths of values with `!reset` or `!override`. A merge first removes the values at these paths from the tree over
    /// which this file is merged.
    pub(super) cleared: Vec<KeyPath>,
}

impl At {
    /// Returns an error at this position. `key` is the path of the key.
    pub(super) fn error(&self, key: &str, what: impl Into<String>) -> Error {
        let file = self.origin.file.to_path_buf();
        Error { file, line: Some(self.line), key: everett_input::text::one_line(key), what: what.into() }
    }
}

/// A value with its position.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) kind: Kind,
    /// Size of the value with all aliases expanded, in bytes.
    weight: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Scalar(Scalar),
    List(Vec<Rc<Node>>),
    Map(Vec<(Key, Rc<Node>)>),
}

#[derive(Debug, Clone)]
pub(super) struct Scalar {
    pub(super) text: String,
    /// True if the text has no quotes in the file, so that it may stand for null.
    pub(super) is_plain: bool,
}

/// Key of a mapping, with its position.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) at: At,
}

impl Node {
    pub(super) fn new(at: At, kind: Kind) -> Node {
        let weight = match &kind {
            Kind::Scalar(scalar) => scalar.text.len() as u64,
            Kind::List(items) => sum(items.iter().map(|item| item.weight)),
            Kind::Map(entries) => {
                sum(entries.iter().map(|(key, value)| value.weight.saturating_add(key.name.len() as u64)))
            }
        };
        Node { at, kind, weight: weight.saturating_add(NODE_BYTES) }
    }

    pub(super) fn text(at: At, text: String) -> Node {
        Node::new(at, Kind::Scalar(Scalar { text, is_plain: false }))
    }

    /// Returns an error if the tree exceeds the bound with all aliases expanded.
    pub(super) fn bounded(self) -> Result<Rc<Node>, Error> {
        if self.weight > EXPANDED_BYTES_MAX {
            let what = format!(
                "with its aliases and variables written out this has more than {EXPANDED_BYTES_MAX} bytes"
            );
            return Err(self.at.error("", what));
        }
        Ok(Rc::new(self))
    }

    pub(super) fn is_null(&self) -> bool {
        match &self.kind {
            Kind::Scalar(scalar) => {
                scalar.is_plain && matches!(scalar.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }
}

fn sum(weights: impl Iterator<Item = u64>) -> u64 {
    weights.fold(0, u64::saturating_add)
}

/// Maximum number of values with `!reset` or `!override`.
const CLEARED_MAX: usize = 4_096;

/// Meaning of a value's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    /// The value is a text, even without quotes.
    Text,
    /// The value is left out, and so is the value at the same path in the tree over which the file is merged.
    Reset,
    /// The value replaces the value at the same path in the tree over which the file is merged.
    Override,
}

/// A list or mapping whose end has not been read.
enum Open {
    List {
        at: At,
        anchor: usize,
        items: Vec<Rc<Node>>,
        is_reset: bool,
    },
    Map {
        at: At,
        anchor: usize,
        entries: Vec<(Key, Rc<Node>)>,
        key: Option<Key>,
        names: BTreeSet<String>,
        is_reset: bool,
    },
}

/// Parses a text with one document. An empty text is null.
pub(super) fn parse(text: &str, origin: &Rc<Origin>) -> Result<Parsed, Error> {
    let mut reader = Reader { open: Vec::new(), anchors: BTreeMap::new(), root: None, cleared: Vec::new() };
    let mut parser = Parser::new_from_str(text);
    let at = |line: usize| At { origin: Rc::clone(origin), line: line.max(1) };
    while let Some(event) = parser.next_event() {
        let (event, span) = event
            .map_err(|error| at(error.marker().line()).error("", format!("not YAML: {}", error.info())))?;
        reader.event(event, at(span.start.line()))?;
    }
    let empty = || Node::new(at(1), Kind::Scalar(Scalar { text: String::new(), is_plain: true }));
    Ok(Parsed { root: reader.root.unwrap_or_else(|| Rc::new(empty())), cleared: reader.cleared })
}

struct Reader {
    open: Vec<Open>,
    /// Complete nodes that have an anchor. The key is the parser's number for the anchor.
    anchors: BTreeMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    cleared: Vec<KeyPath>,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, at: At) -> Result<(), Error> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let mark = self.mark(tag.as_deref(), &at)?;
                if mark == Mark::Reset {
                    return self.leave_out(&at);
                }
                let is_plain = style == ScalarStyle::Plain && mark != Mark::Text;
                let scalar = Scalar { text: text.into_owned(), is_plain };
                self.put(Node::new(at, Kind::Scalar(scalar)), anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                let is_reset = self.mark(tag.as_deref(), &at)? == Mark::Reset;
                self.begin(Open::List { at: at.clone(), anchor, items: Vec::new(), is_reset }, &at)
            }
            Event::MappingStart(anchor, tag) => {
                let is_reset = self.mark(tag.as_deref(), &at)? == Mark::Reset;
                let (entries, names) = (Vec::new(), BTreeSet::new());
                self.begin(Open::Map { at: at.clone(), anchor, entries, key: None, names, is_reset }, &at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => self.add(Rc::clone(node), &at),
                None => Err(at.error("", "this alias refers to a value that contains it, or that is reset")),
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(at.error("", "a second document begins here; a compose file has one"))
            }
            _ => Ok(()),
        }
    }

    /// Returns what the tag of a value means. YAML's own tags have no effect, because each key of a compose file
    /// decides the type of its value. The exception is `!!str`: it makes a value such as `null` a text.
    fn mark(&mut self, tag: Option<&Tag>, at: &At) -> Result<Mark, Error> {
        let Some(tag) = tag else { return Ok(Mark::None) };
        let mark = match (tag.handle.as_str(), tag.suffix.as_str()) {
            ("tag:yaml.org,2002:", "str") => return Ok(Mark::Text),
            ("tag:yaml.org,2002:", _) => return Ok(Mark::None),
            ("!", "reset") => Mark::Reset,
            ("!", "override") => Mark::Override,
            _ => return Err(at.error("", format!("the tag \"{tag}\" has no meaning here"))),
        };
        let mut path = KeyPath::new();
        for open in &self.open {
            match open {
                Open::Map { key: Some(key), .. } => path.push(key.name.clone()),
                Open::Map { key: None, .. } => {
                    return Err(at.error("", format!("the key has the tag \"{tag}\"")));
                }
                // Elements of lists have no path, so a merge has no value to remove.
                Open::List { .. } => return Ok(mark),
            }
        }
        self.cleared.push(path);
        if self.cleared.len() > CLEARED_MAX {
            return Err(at.error("", format!("more than {CLEARED_MAX} values with !reset or !override")));
        }
        Ok(mark)
    }

    /// Ends a value that is left out, and removes its key.
    fn leave_out(&mut self, at: &At) -> Result<(), Error> {
        match self.open.last_mut() {
            None => Err(at.error("", "the whole file is reset")),
            Some(Open::List { .. }) => Ok(()),
            Some(Open::Map { key, .. }) => {
                *key = None;
                Ok(())
            }
        }
    }

    fn begin(&mut self, open: Open, at: &At) -> Result<(), Error> {
        if self.open.len() >= DEPTH_MAX {
            return Err(at.error("", format!("more than {DEPTH_MAX} levels of lists and mappings")));
        }
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err(at.error("", "a key is a list or a mapping"));
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        match self.open.pop() {
            Some(Open::List { at, is_reset: true, .. } | Open::Map { at, is_reset: true, .. }) => {
                self.leave_out(&at)
            }
            Some(Open::List { at, anchor, items, .. }) => self.put(Node::new(at, Kind::List(items)), anchor),
            Some(Open::Map { at, anchor, entries, names, .. }) => {
                self.put(Node::new(at, Kind::Map(merged(entries, names)?)), anchor)
            }
            None => Ok(()),
        }
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Error> {
        let at = node.at.clone();
        let node = node.bounded()?;
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        self.add(node, &at)
    }

    fn add(&mut self, node: Rc<Node>, at: &At) -> Result<(), Error> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, names, .. }) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Kind::Scalar(scalar) = &node.kind else {
                        return Err(at.error("", "a key is a list or a mapping"));
                    };
                    let name = scalar.text.clone();
                    if !names.insert(name.clone()) {
                        return Err(at.error(&name, "this key is here twice"));
                    }
                    *key = Some(Key { name, at: at.clone() });
                }
            },
        }
        Ok(())
    }
}

/// Merges the mappings of the key `<<`. A mapping's own keys take precedence. If several merged
/// mappings have a key, the first of them takes precedence.
fn merged(entries: Vec<(Key, Rc<Node>)>, mut names: BTreeSet<String>) -> Result<Vec<(Key, Rc<Node>)>, Error> {
    if !names.contains(MERGE) {
        return Ok(entries);
    }
    let (merges, mut all): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| key.name == MERGE);
    for (key, node) in merges {
        let sources = match &node.kind {
            Kind::List(items) => items.clone(),
            _ => vec![node],
        };
        for source in sources {
            let Kind::Map(more) = &source.kind else {
                return Err(key.at.error(MERGE, "expected a mapping, or a list of mappings"));
            };
            for (key, value) in more {
                if names.insert(key.name.clone()) {
                    all.push((key.clone(), Rc::clone(value)));
                }
            }
        }
    }
    Ok(all)
}
