//! Merges one tree over another: a service over the service that it extends, or a compose file over an earlier file.
//!
//! Mappings are merged key by key, lists are appended, and other values are replaced.

use std::rc::Rc;

use super::yaml::{At, Key, KeyPath, Kind, Node, Scalar};
use crate::error::Error;

/// Keys whose values are always replaced, never merged.
const REPLACED: [&str; 3] = ["command", "entrypoint", "test"];
/// Keys that can be a list of `NAME=TEXT` instead of a mapping.
const PAIRS: [&str; 5] = ["environment", "labels", "annotations", "sysctls", "args"];
/// Keys that can be a list of names instead of a mapping from names to settings.
const NAMES: [&str; 2] = ["depends_on", "networks"];
/// Keys that can be one text instead of a list of texts.
const LISTS: [&str; 3] = ["env_file", "tmpfs", "dns"];
/// Key that can be a mapping or a list of `NAME=ADDRESS`. A name may have several addresses.
const EXTRA_HOSTS: &str = "extra_hosts";
/// Keys of a service whose values are lists of mounts, with at most one mount for each path in the guest. An element of
/// `configs` or `secrets` can be only a name. The second text is the guest's folder in which this name is mounted.
const MOUNTS: [(&str, &str); 3] = [("volumes", ""), ("configs", "/"), ("secrets", "/run/secrets/")];
/// Keys of a service with lists in which each element occurs at most once.
const ONCE: [&str; 7] = ["ports", "expose", "cap_add", "cap_drop", "tmpfs", "dns", "security_opt"];

/// Keys in a mapping inside a service (such as the mapping `healthcheck`) to which the rules above apply, too.
const IN_SERVICE: [&str; 3] = ["test", "args", "labels"];

/// Merges the service `own` over the service `base` that it extends.
pub(super) fn service(base: &Rc<Node>, own: &Rc<Node>) -> Result<Rc<Node>, Error> {
    let base = without(base, &[vec!["extends".to_owned()]]);
    merged(Place::Service, "", &base, own)
}

/// Merges the root of the compose file `own` over the root of an earlier file.
pub(super) fn file(base: &Rc<Node>, own: &Rc<Node>) -> Result<Rc<Node>, Error> {
    merged(Place::Root, "", base, own)
}

/// Returns a copy of a tree without the values at these paths.
pub(super) fn without(node: &Rc<Node>, paths: &[KeyPath]) -> Rc<Node> {
    let Kind::Map(entries) = &node.kind else { return Rc::clone(node) };
    let below = |name: &str| -> Vec<KeyPath> {
        let of_name = paths.iter().filter(|path| path.first().is_some_and(|first| first == name));
        of_name.map(|path| path[1..].to_vec()).collect()
    };
    let mut kept = Vec::new();
    for (key, value) in entries {
        let rest = below(&key.name);
        if rest.is_empty() {
            kept.push((key.clone(), Rc::clone(value)));
        } else if !rest.iter().any(Vec::is_empty) {
            kept.push((key.clone(), without(value, &rest)));
        }
    }
    Rc::new(Node::new(node.at.clone(), Kind::Map(kept)))
}

/// Position of a mapping in a compose file. The position decides which of the mapping's keys have special rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// The mapping `services`. Its keys are names of services, so none of them has a rule.
    Services,
    Service,
    /// A mapping inside a service.
    InService,
    /// A mapping outside of all services.
    Other,
}

impl Place {
    fn below(self, key: &str) -> Place {
        match self {
            Place::Root if key == "services" => Place::Services,
            Place::Root | Place::Other => Place::Other,
            Place::Services => Place::Service,
            Place::Service | Place::InService => Place::InService,
        }
    }

    /// Returns `key` if it has a special rule here, and an empty text otherwise.
    fn rule(self, key: &str) -> &str {
        match self {
            Place::Service => key,
            Place::InService if IN_SERVICE.contains(&key) => key,
            _ => "",
        }
    }
}

fn merged(place: Place, key: &str, base: &Rc<Node>, own: &Rc<Node>) -> Result<Rc<Node>, Error> {
    if REPLACED.contains(&key) {
        return Ok(Rc::clone(own));
    }
    if own.is_null() {
        return Ok(Rc::clone(base));
    }
    let (base, own) = (in_full(key, base), in_full(key, own));
    let kind = match (&base.kind, &own.kind) {
        (Kind::Map(of_base), Kind::Map(of_own)) => {
            let mut entries: Vec<(Key, Rc<Node>)> = Vec::new();
            for (name, value) in of_base {
                match of_own.iter().find(|(other, _)| other.name == name.name) {
                    None => entries.push((name.clone(), Rc::clone(value))),
                    // Extensions, i.e. keys that start with `x-`, are not merged but replaced.
                    Some((other, own)) if name.name.starts_with("x-") => {
                        entries.push((other.clone(), Rc::clone(own)));
                    }
                    Some((other, own)) => {
                        let value = merged(place.below(&name.name), place.rule(&name.name), value, own)?;
                        entries.push((other.clone(), value));
                    }
                }
            }
            let is_new = |name: &Key| entries.iter().all(|(other, _)| other.name != name.name);
            let new: Vec<_> = of_own.iter().filter(|(name, _)| is_new(name)).cloned().collect();
            entries.extend(new);
            Kind::Map(entries)
        }
        (Kind::List(of_base), Kind::List(of_own)) => Kind::List(appended(key, of_base, of_own)),
        _ => return Ok(own),
    };
    Node::new(own.at.clone(), kind).bounded()
}

/// Appends one list to another. If two elements have the same target, only the later element stays, at the position of
/// the earlier one.
fn appended(key: &str, of_base: &[Rc<Node>], of_own: &[Rc<Node>]) -> Vec<Rc<Node>> {
    let mut all: Vec<(Option<String>, Rc<Node>)> = Vec::new();
    for item in of_base.iter().chain(of_own) {
        let thing = thing(key, item);
        match all.iter_mut().find(|(other, _)| thing.is_some() && *other == thing) {
            Some((_, place)) => *place = Rc::clone(item),
            None => all.push((thing, Rc::clone(item))),
        }
    }
    all.into_iter().map(|(_, item)| item).collect()
}

/// Returns the target of a list's element. The target of a mount is its path in the guest, and the target of any other
/// element is its whole text. A list keeps only the last element with the same target. `None` if the element never
/// replaces another element.
fn thing(key: &str, item: &Node) -> Option<String> {
    let folder = MOUNTS.iter().find(|(name, _)| *name == key).map(|(_, folder)| *folder);
    match (&item.kind, folder) {
        (Kind::Scalar(scalar), None) if ONCE.contains(&key) || key == EXTRA_HOSTS => {
            Some(scalar.text.clone())
        }
        (Kind::Scalar(scalar), Some("")) => {
            Some(scalar.text.split(':').nth(1).unwrap_or(&scalar.text).trim_end_matches('/').to_owned())
        }
        (Kind::Scalar(scalar), Some(folder)) => Some(format!("{folder}{}", scalar.text)),
        (Kind::Map(entries), Some(folder)) => {
            let text = |wanted: &str| {
                let (_, value) = entries.iter().find(|(key, _)| key.name == wanted)?;
                if let Kind::Scalar(scalar) = &value.kind { Some(scalar.text.as_str()) } else { None }
            };
            match text("target") {
                Some(target) if folder.is_empty() || target.starts_with('/') => {
                    Some(target.trim_end_matches('/').to_owned())
                }
                Some(target) => Some(format!("{folder}{target}")),
                None => text("source").map(|source| format!("{folder}{source}")),
            }
        }
        _ => None,
    }
}

/// Converts the short form of a value to its long form. Other values are returned unchanged.
fn in_full(key: &str, node: &Rc<Node>) -> Rc<Node> {
    let kind = match &node.kind {
        Kind::List(items) if PAIRS.contains(&key) => Kind::Map(items.iter().filter_map(pair).collect()),
        Kind::List(items) if NAMES.contains(&key) => Kind::Map(items.iter().filter_map(name).collect()),
        Kind::Scalar(_) if LISTS.contains(&key) && !node.is_null() => Kind::List(vec![Rc::clone(node)]),
        Kind::Scalar(_) if key == "build" => {
            let context = Key { name: "context".to_owned(), at: node.at.clone() };
            Kind::Map(vec![(context, Rc::clone(node))])
        }
        Kind::Map(entries) if key == EXTRA_HOSTS => Kind::List(entries.iter().flat_map(host).collect()),
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

/// Returns an element `NAME=ADDRESS` for each address of a name.
fn host((key, value): &(Key, Rc<Node>)) -> Vec<Rc<Node>> {
    let element = |item: &Rc<Node>| match &item.kind {
        Kind::Scalar(scalar) => {
            Some(Rc::new(Node::text(item.at.clone(), format!("{}={}", key.name, scalar.text))))
        }
        _ => None,
    };
    match &value.kind {
        Kind::List(items) => items.iter().filter_map(element).collect(),
        _ => element(value).into_iter().collect(),
    }
}

fn null(at: &At) -> Node {
    Node::new(at.clone(), Kind::Scalar(Scalar { text: String::new(), is_plain: true }))
}
