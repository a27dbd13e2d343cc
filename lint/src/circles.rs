//! Finds files and folders that import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Import graph: files or folders, each with the files or folders that it imports.
pub type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Returns the circles of a graph: sets of two or more members that reach each other, in ascending order.
fn circles(graph: &Graph) -> Vec<BTreeSet<PathBuf>> {
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
        graph.keys().map(|from| (from, reachable(graph, from))).collect();
    let reaches = |from: &PathBuf, to: &PathBuf| reached.get(from).is_some_and(|found| found.contains(to));
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for from in graph.keys() {
        if !reaches(from, from) || !seen.insert(from.clone()) {
            continue;
        }
        let circle: BTreeSet<PathBuf> =
            graph.keys().filter(|to| reaches(from, to) && reaches(to, from)).cloned().collect();
        seen.extend(circle.iter().cloned());
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

fn reachable<'g>(graph: &'g Graph, from: &PathBuf) -> BTreeSet<&'g PathBuf> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&PathBuf> = graph.get(from).into_iter().flatten().collect();
    while let Some(at) = open.pop() {
        if found.insert(at) {
            open.extend(graph.get(at).into_iter().flatten());
        }
    }
    found
}

/// Returns the circles of files and of folders. A circle of folders is left out if files in it also form a circle.
///
/// `mod.rs`, `lib.rs` and `main.rs` define the module of their folder, and `NAME.rs` that of the folder `NAME`. Files
/// in the folder may use what the module's file declares, so their imports of that file do not count.
#[must_use]
pub fn of_files_and_folders(imports: &Graph) -> Vec<BTreeSet<PathBuf>> {
    let files = without_own_modules(imports);
    let mut found = circles(&files);
    let of_files = found.clone();
    for (folder, graph) in folders(&files) {
        let explained = |circle: &BTreeSet<PathBuf>| {
            of_files.iter().any(|files| {
                let members: BTreeSet<PathBuf> =
                    files.iter().filter_map(|file| member(&folder, file)).collect();
                circle.is_subset(&members)
            })
        };
        found.extend(circles(&graph).into_iter().filter(|circle| !explained(circle)));
    }
    found
}

fn without_own_modules(imports: &Graph) -> Graph {
    let below = |file: &Path, module: &Path| {
        let folder = match is_own(module) {
            true => module.parent().unwrap_or(module).to_owned(),
            false => module.with_extension(""),
        };
        file.starts_with(folder)
    };
    let kept = |(from, into): (&PathBuf, &BTreeSet<PathBuf>)| {
        (from.clone(), into.iter().filter(|to| !below(from, to)).cloned().collect())
    };
    imports.iter().map(kept).collect()
}

/// Returns for each folder the import graph of its members, i.e. the files and folders directly in it. An import
/// between two files is an edge in the graph of the innermost folder that contains both. The file of the folder's own
/// module is not a member.
pub(crate) fn folders(files: &Graph) -> BTreeMap<PathBuf, Graph> {
    let mut all: BTreeMap<PathBuf, Graph> = BTreeMap::new();
    for (from, into) in files {
        for to in into {
            let Some(folder) = from.ancestors().skip(1).find(|folder| to.starts_with(folder)) else {
                continue;
            };
            let Some((one, other)) = member(folder, from).zip(member(folder, to)) else { continue };
            if is_own(&one) || is_own(&other) || one == other {
                continue;
            }
            let graph = all.entry(folder.to_owned()).or_default();
            graph.entry(other.clone()).or_default();
            graph.entry(one).or_default().insert(other);
        }
    }
    all
}

/// Returns the member of a folder (a file or subfolder) to which a file below the folder belongs. `None` if the file is
/// not below the folder. `NAME.rs` belongs to `NAME/`.
fn member(folder: &Path, file: &Path) -> Option<PathBuf> {
    let first = file.strip_prefix(folder).ok()?.components().next()?;
    Some(folder.join(Path::new(first.as_os_str()).with_extension("")))
}

/// True if the name without its ending is `mod`, `lib` or `main`, the names of files that define their folder's module.
fn is_own(file: &Path) -> bool {
    matches!(file.file_stem().and_then(|stem| stem.to_str()), Some("mod" | "lib" | "main"))
}
