//! Strict, typed access to a YAML tree. Each value knows its line and the path of its key.

use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;

use everett_explorer::suggest::nearest;

use super::quantity;
use super::yaml::{At, Key, Kind, Node};
use crate::error::Error;

/// Maximum number of elements of a list, or of entries of a mapping.
const ELEMENTS_MAX: usize = 16_384;

/// A value of a YAML tree, with the path of its key.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) node: Rc<Node>,
    pub(super) path: String,
}

/// A name with an optional text, from `NAME=TEXT`, `NAME: TEXT` or `NAME`.
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) text: Option<String>,
    pub(super) value: Value,
}

impl Value {
    pub(super) fn at(&self) -> &At {
        &self.node.at
    }

    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        self.at().error(&self.path, what)
    }

    /// Returns the folder from which relative paths in the value start.
    pub(super) fn folder(&self) -> &Path {
        &self.at().origin.folder
    }

    fn expected(&self, wanted: &str) -> Error {
        let found = match &self.node.kind {
            Kind::Scalar(_) if self.node.is_null() => "nothing".to_owned(),
            Kind::Scalar(scalar) if scalar.text.len() <= 64 => format!("\"{}\"", scalar.text.escape_debug()),
            Kind::Scalar(_) => "a text".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
        };
        self.error(format!("expected {wanted}, found {found}"))
    }

    pub(super) fn is_null(&self) -> bool {
        self.node.is_null()
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.node.kind, Kind::Map(_))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.node.kind, Kind::List(_))
    }

    fn child(&self, name: &str, node: &Rc<Node>) -> Value {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Value { node: Rc::clone(node), path }
    }

    /// Returns the entries of a mapping. A null has no entries.
    pub(super) fn entries(&self) -> Result<Vec<(Key, Value)>, Error> {
        if self.is_null() {
            return Ok(Vec::new());
        }
        let Kind::Map(entries) = &self.node.kind else { return Err(self.expected("a mapping")) };
        if entries.len() > ELEMENTS_MAX {
            return Err(self.error(format!("{} keys; at most {ELEMENTS_MAX} are allowed", entries.len())));
        }
        Ok(entries.iter().map(|(key, node)| (key.clone(), self.child(&key.name, node))).collect())
    }

    /// Returns the value of a key. `None` if the key is absent or its value is null.
    pub(super) fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        if self.is_null() {
            return Ok(None);
        }
        let Kind::Map(entries) = &self.node.kind else { return Err(self.expected("a mapping")) };
        let found = entries.iter().find(|(key, _)| key.name == name);
        Ok(found.map(|(_, node)| self.child(name, node)).filter(|value| !value.is_null()))
    }

    /// Returns an error for the first key that is not in `keys`. Keys that start with `x-` are allowed.
    pub(super) fn only(&self, keys: &[&str]) -> Result<(), Error> {
        for (key, value) in self.entries()? {
            if !key.name.starts_with("x-") && !keys.contains(&key.name.as_str()) {
                return Err(unknown(&key, &value.path, keys));
            }
        }
        Ok(())
    }

    /// Returns the elements of a list.
    pub(super) fn items(&self) -> Result<Vec<Value>, Error> {
        let Kind::List(items) = &self.node.kind else { return Err(self.expected("a list")) };
        if items.len() > ELEMENTS_MAX {
            return Err(self.error(format!("{} elements; at most {ELEMENTS_MAX} are allowed", items.len())));
        }
        let item = |(number, node): (usize, &Rc<Node>)| Value {
            node: Rc::clone(node),
            path: format!("{}[{number}]", self.path),
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Returns a text. A number or a boolean is returned as it is written in the file.
    pub(super) fn text(&self) -> Result<&str, Error> {
        match &self.node.kind {
            Kind::Scalar(scalar) if !self.is_null() => {
                if scalar.text.contains('\0') {
                    return Err(self.error("a text with a NUL"));
                }
                Ok(&scalar.text)
            }
            _ => Err(self.expected("a text")),
        }
    }

    /// Returns the texts of a list. A single text is returned as a list of one.
    pub(super) fn texts(&self) -> Result<Vec<Value>, Error> {
        let all = if self.is_list() { self.items()? } else { vec![self.clone()] };
        for value in &all {
            value.text()?;
        }
        Ok(all)
    }

    pub(super) fn bool(&self) -> Result<bool, Error> {
        match self.text()? {
            "true" | "True" | "TRUE" => Ok(true),
            "false" | "False" | "FALSE" => Ok(false),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(super) fn u64(&self) -> Result<u64, Error> {
        self.text()?.parse().map_err(|_| self.expected("a whole number"))
    }

    /// Parses a duration such as `1m30s`. Returns nanoseconds.
    pub(super) fn duration_ns(&self) -> Result<u64, Error> {
        quantity::duration_ns(self.text()?).ok_or_else(|| self.expected("a duration such as \"1m30s\""))
    }

    /// Parses a size such as `512m`. Returns bytes.
    pub(super) fn size_bytes(&self) -> Result<u64, Error> {
        quantity::size_bytes(self.text()?).ok_or_else(|| self.expected("a size such as \"512m\""))
    }

    pub(super) fn address(&self, text: &str) -> Result<IpAddr, Error> {
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        text.parse().map_err(|_| self.error(format!("\"{text}\" is not an IP address")))
    }

    /// Reads a mapping of names to texts, or a list of `NAME=TEXT` and `NAME`.
    pub(super) fn pairs(&self) -> Result<Vec<Pair>, Error> {
        if self.is_list() {
            let pair = |value: Value| {
                let (name, text) = match value.text()?.split_once('=') {
                    Some((name, text)) => (name.to_owned(), Some(text.to_owned())),
                    None => (value.text()?.to_owned(), None),
                };
                Ok(Pair { name, text, value })
            };
            return self.items()?.into_iter().map(pair).collect();
        }
        let pair = |(key, value): (Key, Value)| {
            let text = if value.is_null() { None } else { Some(value.text()?.to_owned()) };
            Ok(Pair { name: key.name, text, value })
        };
        self.entries()?.into_iter().map(pair).collect()
    }
}

/// Returns the error for an unknown key. Suggests a similar key of `keys`.
pub(super) fn unknown(key: &Key, path: &str, keys: &[&str]) -> Error {
    key.at.error(
        path,
        match nearest(&key.name, keys.iter().copied()) {
            Some(known) => format!("unknown key; did you mean \"{known}\"?"),
            None => "unknown key; see docs/compose.md for those that there are".to_owned(),
        },
    )
}
