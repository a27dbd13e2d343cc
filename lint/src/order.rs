//! Checks that the parts of a folder use each other only in the order that the folder's `mod.rs` or `lib.rs` states.
//!
//! A list states an order if one of [`SENTENCES`] stands before it. Each line of the list begins with the names of the
//! parts that it is about, in code spans: files or folders, which must exist. A colon follows the names. Parts of one
//! line may use each other.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::circles::{Graph, folders};

/// Sentences that state an order. The bool after a sentence is true if a part may use the parts above it, and false if
/// a part may use the parts below it.
const SENTENCES: [(&str, bool); 3] = [
    ("uses only folders above it:", true),
    ("uses only modules above it:", true),
    ("uses only modules below it:", false),
];

/// Returns the names of parts in each line of the list in the comment at the head of a source file. In the returned
/// order, a part may use only parts of its own line and of earlier lines. `None` if no sentence states an order.
#[must_use]
pub fn stated(source: &str) -> Option<Vec<Vec<String>>> {
    let comment = source.lines().take_while(|line| line.starts_with("//!"));
    let lines: Vec<&str> = comment.map(|line| line.trim_start_matches("//!").trim()).collect();
    let above = |line: &str| SENTENCES.iter().find(|(end, _)| line.ends_with(end)).map(|(_, above)| *above);
    let (at, above) = lines.iter().enumerate().find_map(|(at, line)| Some((at, above(line)?)))?;
    let list = lines.get(at + 1..)?.iter().skip_while(|line| line.is_empty());
    let mut parts: Vec<Vec<String>> = Vec::new();
    for line in list.take_while(|line| !line.is_empty()) {
        if line.starts_with("- ") {
            parts.push(Vec::new());
        }
        parts.last_mut()?.extend(heads(line));
    }
    if !above {
        parts.reverse();
    }
    Some(parts)
}

/// Returns the names that a line of a list is about: a code span before a colon, or several that commas or "and" join.
fn heads(line: &str) -> Vec<String> {
    let pieces: Vec<&str> = line.split('`').skip(1).collect();
    let (mut heads, mut group) = (Vec::new(), Vec::new());
    for pair in pieces.chunks_exact(2) {
        let [name, after] = pair else { continue };
        group.push(name.trim_end_matches('/').trim_end_matches(".rs").to_owned());
        let after = after.trim_start_matches(']');
        let after = match after.strip_prefix('(') {
            Some(target) => target.split_once(')').map_or("", |(_, after)| after),
            None => after,
        };
        if after.starts_with(':') {
            heads.append(&mut group);
        } else if ![", ", " and ", ", and "].contains(&after.trim_end_matches('[')) {
            group.clear();
        }
    }
    heads
}

/// Returns the files of a crate whose orders were checked, i.e. the files that state the order of their folder, each
/// with the violations of this order, as lines. `imports` is the graph of the crate's files.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn violations(imports: &Graph) -> io::Result<BTreeMap<PathBuf, Vec<String>>> {
    let graphs = folders(imports);
    let mut checked = BTreeMap::new();
    for file in imports.keys().filter(|file| is_of_folder(file)) {
        let Some(parts) = stated(&fs::read_to_string(file)?) else { continue };
        let folder = file.parent().unwrap_or(Path::new(""));
        let empty = Graph::new();
        let graph = graphs.get(folder).unwrap_or(&empty);
        let all = missing(&parts, folder).into_iter().chain(in_folder(&parts, graph));
        checked.insert(file.clone(), all.map(|what| format!("{}: {what}", file.display())).collect());
    }
    Ok(checked)
}

/// True for the file whose comment may state the order of its folder's parts.
fn is_of_folder(file: &Path) -> bool {
    matches!(file.file_name().and_then(|name| name.to_str()), Some("mod.rs" | "lib.rs" | "main.rs"))
}

/// Returns a violation for each part that the folder does not contain.
fn missing(parts: &[Vec<String>], folder: &Path) -> Vec<String> {
    let exists = |name: &str| folder.join(name).is_dir() || folder.join(format!("{name}.rs")).is_file();
    let missing = parts.iter().flatten().filter(|name| !exists(name));
    missing.map(|name| format!("the list names {name}, which does not exist")).collect()
}

fn in_folder(parts: &[Vec<String>], graph: &Graph) -> Vec<String> {
    let mut ranks: BTreeMap<&str, usize> = BTreeMap::new();
    for (rank, names) in parts.iter().enumerate() {
        for name in names {
            ranks.entry(name).or_insert(rank);
        }
    }
    let name = |part: &PathBuf| part.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for (from, into) in graph {
        let from = name(from);
        let Some(rank) = ranks.get(from.as_str()) else {
            found.push(format!("the list lacks {from}"));
            continue;
        };
        let to = into.iter().map(name).filter(|to| ranks.get(to.as_str()).is_some_and(|other| other > rank));
        found.extend(to.map(|to| format!("{from} uses {to}, against the stated order")));
    }
    found
}
