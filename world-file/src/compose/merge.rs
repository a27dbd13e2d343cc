//! Inheritance from the service that one extends, by the rules of compose files: mappings are joined key by key, lists
//! are appended, other values are replaced.

use std::rc::Rc;

use super::yaml::{At, Key, Kind, Node};
use crate::error::Error;

/// Keys whose lists are command lines, which are replaced as a whole.
const REPLACED: [&str; 3] = ["command", "entrypoint", "test"];
/// Keys that can be a list of `NAME=TEXT` instead of a mapping.
const PAIRS: [&str; 5] = ["environment", "labels", "annotations", "sysctls", "args"];
/// Keys that can be a list of names instead of a mapping.
const NAMES: [&str; 2] = ["depends_on", "networks"];
/// Keys that can be one text instead of a list.
const LISTS: [&str; 3] = ["env_file", "tmpfs", "dns"];

/// Returns `own` with what it does not say from `base`.
pub(super) fn service(base: &Rc<Node>, own: &Rc<Node>) -> Result<Rc<Node>, Error> {
    merged("", base, own)
}

fn merged(key: &str, base: &Rc<Node>, own: &Rc<Node>) -> Result<Rc<Node>, Error> {
    if REPLACED.contains(&key) {
        return Ok(Rc::clone(own));
    }
    let (base, own) = (in_full(key, base), in_full(key, own));
    let kind = match (&base.kind, &own.kind) {
        (Kind::Map(of_base), Kind::Map(of_own)) => {
            let mut entries: Vec<(Key, Rc<Node>)> = Vec::new();
            for (name, value) in of_base.iter().filter(|(name, _)| name.name != "extends") {
                match of_own.iter().find(|(other, _)| other.name == name.name) {
                    None => entries.push((name.clone(), Rc::clone(value))),
                    Some((other, own)) => entries.push((other.clone(), merged(&name.name, value, own)?)),
                }
            }
            let is_new = |name: &Key| entries.iter().all(|(other, _)| other.name != name.name);
            let new: Vec<_> = of_own.iter().filter(|(name, _)| is_new(name)).cloned().collect();
            entries.extend(new);
            Kind::Map(entries)
        }
        (Kind::List(of_base), Kind::List(of_own)) => {
            let targets: Vec<Option<&str>> = of_own.iter().map(|item| target(key, item)).collect();
            let is_kept = |item: &&Rc<Node>| target(key, item).is_none_or(|at| !targets.contains(&Some(at)));
            Kind::List(of_base.iter().filter(is_kept).chain(of_own).cloned().collect())
        }
        _ => return Ok(own),
    };
    Node::new(own.at.clone(), kind).bounded()
}

/// Returns the path in the guest of an element of `volumes`.
fn target<'n>(key: &str, item: &'n Node) -> Option<&'n str> {
    if key != "volumes" {
        return None;
    }
    match &item.kind {
        Kind::Scalar(scalar) => Some(scalar.text.split(':').nth(1).unwrap_or(&scalar.text)),
        Kind::Map(entries) => {
            entries.iter().find(|(key, _)| key.name == "target").and_then(|(_, value)| match &value.kind {
                Kind::Scalar(scalar) => Some(scalar.text.as_str()),
                _ => None,
            })
        }
        Kind::List(_) => None,
    }
}

/// Returns the long form of a value that has a short one.
fn in_full(key: &str, node: &Rc<Node>) -> Rc<Node> {
    let kind = match &node.kind {
        Kind::List(items) if PAIRS.contains(&key) => Kind::Map(items.iter().filter_map(pair).collect()),
        Kind::List(items) if NAMES.contains(&key) => Kind::Map(items.iter().filter_map(name).collect()),
        Kind::Scalar(_) if LISTS.contains(&key) && !node.is_null() => Kind::List(vec![Rc::clone(node)]),
        _ => return Rc::clone(node),
    };
    Rc::new(Node::new(node.at.clone(), kind))
}

fn pair(item: &Rc<Node>) -> Option<(Key, Rc<Node>)> {
    let Kind::Scalar(scalar) = &item.kind else { return None };
    let (name, value) = match scalar.text.split_once('=') {
        Some((name, text)) => (name, Node::text(item.at.clone(), text.to_owned())),
        None => (scalar.text.as_str(), null(&item.at)),
    };
    Some((Key { name: name.to_owned(), at: item.at.clone() }, Rc::new(value)))
}

fn name(item: &Rc<Node>) -> Option<(Key, Rc<Node>)> {
    let Kind::Scalar(scalar) = &item.kind else { return None };
    Some((Key { name: scalar.text.clone(), at: item.at.clone() }, Rc::new(null(&item.at))))
}

fn null(at: &At) -> Node {
    Node::new(at.clone(), Kind::Scalar(super::yaml::Scalar { text: String::new(), is_plain: true }))
}
