//! Executed code, by binary and function.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limits::{CODE_MAX, NAME_CHARS_MAX};
use crate::clip::clip;

/// Maximum number of nodes that are read from one line of a file of edges.
const NODES_MAX: usize = 256;
/// Name for code that belongs to no file of the image.
const OTHER: &str = "code in no file of the image";

/// Executed code. An edge is a branch instruction together with an address at which execution continued after it at
/// least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Code {
    /// Number of executed edges.
    pub edges: u64,
    /// Binaries, ordered by their number of edges, largest first.
    pub binaries: Vec<Binary>,
    /// Number of binaries, including binaries that `binaries` omits.
    pub binaries_count: u64,
}

/// Executed code of one binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Binary {
    /// Path of the binary in the image, `kernel`, or `code in no file of the image`.
    pub name: String,
    /// Number of edges that end in the binary.
    pub edges: u64,
    /// Number of different places at which these edges end.
    pub places: u64,
    /// Names of the nodes that executed the binary.
    pub nodes: Vec<String>,
    /// Functions, ordered by their number of edges, largest first. Empty if function names are unknown.
    pub functions: Vec<Function>,
    /// Number of functions, including functions that `functions` omits.
    pub functions_count: u64,
}

/// Executed code of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// Number of edges that end in the function.
    pub edges: u64,
}

/// Line of a file that `everett run --edges` or `everett replay --edges` wrote: one edge.
#[derive(Deserialize)]
struct Line {
    to: String,
    #[serde(default)]
    nodes: Vec<String>,
}

/// Collector of edges from the lines of files.
#[derive(Debug, Default)]
pub struct Edges {
    binaries: BTreeMap<String, Parts>,
    edges: u64,
}

#[derive(Debug, Default)]
struct Parts {
    edges: u64,
    /// Number of edges that end at each place.
    places: BTreeMap<String, u64>,
    nodes: Vec<String>,
}

impl Edges {
    /// Adds a line of a file that `--edges` wrote.
    ///
    /// # Errors
    /// Returns an error if the line has another format.
    pub fn line(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let Line { to, nodes } = serde_json::from_str(line)?;
        let (binary, place) = match to.rsplit_once(':') {
            Some((binary, place)) if !binary.starts_with("page ") => (binary, place),
            _ => (OTHER, to.as_str()),
        };
        self.edges += 1;
        let parts = self.binaries.entry(clip(binary, NAME_CHARS_MAX)).or_default();
        parts.edges += 1;
        *parts.places.entry(clip(place, NAME_CHARS_MAX)).or_default() += 1;
        for node in nodes.iter().take(NODES_MAX).map(|node| clip(node, NAME_CHARS_MAX)) {
            if let Err(at) = parts.nodes.binary_search(&node) {
                parts.nodes.insert(at, node);
            }
        }
        Ok(())
    }

    /// Returns the executed code. `None` if there were no lines.
    #[must_use]
    pub fn finish(self) -> Option<Code> {
        let mut binaries: Vec<Binary> =
            self.binaries.into_iter().map(|(name, parts)| binary(name, parts)).collect();
        binaries.sort_by(|a, b| b.edges.cmp(&a.edges).then_with(|| a.name.cmp(&b.name)));
        let binaries_count = binaries.len() as u64;
        binaries.truncate(CODE_MAX);
        (self.edges > 0).then_some(Code { edges: self.edges, binaries, binaries_count })
    }
}

fn binary(name: String, parts: Parts) -> Binary {
    let Parts { edges, places, nodes } = parts;
    let count = places.len() as u64;
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    let named = name != OTHER;
    for (place, edges) in places.into_iter().filter(|_| named) {
        // A place is `function+0x1a`, or an offset alone.
        let function = place
            .split_once('+')
            .map(|(function, _)| function)
            .or_else(|| (!place.starts_with("0x")).then_some(place.as_str()));
        if let Some(function) = function {
            *functions.entry(function.to_owned()).or_default() += edges;
        }
    }
    let mut functions: Vec<Function> =
        functions.into_iter().map(|(name, edges)| Function { name, edges }).collect();
    functions.sort_by(|a, b| b.edges.cmp(&a.edges).then_with(|| a.name.cmp(&b.name)));
    let functions_count = functions.len() as u64;
    functions.truncate(CODE_MAX);
    Binary { name, edges, places: count, nodes, functions, functions_count }
}
