//! Finds *pointers* in the documentation that point nowhere. A pointer is a code span with the path of a file or
//! folder. A code span with the name of an item is a pointer, too, if such a path precedes it in the same paragraph,
//! row or list item.
//!
//! A path may start at the repository's root, in the page's folder, in a folder that the page names before it, or in
//! the `src` of such a folder. The name of a file without its folder is never reported if several files have this name,
//! e.g. `mod.rs`. An item such as `Map::get` exists if one file of code contains all of its words.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use crate::files;

/// Pages, and a folder of pages, in which all paths belong to the repository. Other pages also show paths of guests and
/// of runs.
const DEVELOPER_PAGES: [&str; 3] = ["docs/ARCHITECTURE.md", "docs/design/", "CONTRIBUTING.md"];

/// The files of the repository, and the words of its code.
#[derive(Debug, Default)]
pub struct Repository {
    paths: BTreeSet<String>,
    tops: BTreeSet<String>,
    /// Names of files without their folders.
    names: BTreeSet<String>,
    /// Names that several files have.
    common_names: BTreeSet<String>,
    code: Vec<BTreeSet<String>>,
}

impl Repository {
    /// Reads the repository at `top`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn read(top: &Path) -> io::Result<Repository> {
        let mut repository = Repository::default();
        for path in files::below(top, "")? {
            let name = path.strip_prefix(top).unwrap_or(&path).display().to_string();
            let code = name.ends_with(".rs").then(|| fs::read_to_string(&path)).transpose()?;
            repository.add(&name, code.as_deref());
        }
        Ok(repository)
    }

    /// Adds a file, with its text if it is code.
    pub fn add(&mut self, name: &str, code: Option<&str>) {
        let ends = name.match_indices('/').map(|(at, _)| at);
        self.paths.extend(ends.chain([name.len()]).filter_map(|end| name.get(..end)).map(str::to_owned));
        self.tops.extend(name.split_once('/').map(|(top, _)| top.to_owned()));
        let last = name.rsplit('/').next().unwrap_or(name);
        if !self.names.insert(last.to_owned()) {
            self.common_names.insert(last.to_owned());
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        self.code.extend(code.map(|text| text.split(|c| !is_word(c)).map(str::to_owned).collect()));
    }

    fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// True if one file of code has all these words.
    fn has_words<'w>(&self, words: impl Iterator<Item = &'w str> + Clone) -> bool {
        self.code.iter().any(|file| words.clone().all(|word| file.contains(word)))
    }
}

/// Returns the pointers of a page that point nowhere, each with its line. `name` is the page's path from the root.
#[must_use]
pub fn stale(name: &str, text: &str, repository: &Repository) -> Vec<String> {
    let is_of_developers = DEVELOPER_PAGES.iter().any(|page| name.starts_with(page));
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut bases = BTreeSet::from([String::new(), folder.to_owned()]);
    let mut found = Vec::new();
    for block in blocks(text) {
        let mut is_beside_path = false;
        for (line, span) in block.spans() {
            if let Some(path) = path(&span, is_of_developers, repository) {
                let places: Vec<String> = bases
                    .iter()
                    .map(|base| joined(base, path))
                    .filter(|place| repository.has(place))
                    .collect();
                if places.is_empty() && !repository.common_names.contains(path) {
                    found.push(format!("{name}:{line}: there is no {span}"));
                }
                is_beside_path |= !places.is_empty();
                places.iter().for_each(|place| add_bases(&mut bases, place));
            } else if is_beside_path
                && let Some(words) = item(&span)
                && !repository.has_words(words.split("::"))
            {
                found.push(format!("{name}:{line}: no code has {span}"));
            }
        }
    }
    found
}

/// Returns the path in a span, without a slash at its end. `None` if the span is not a path, or not a path of this
/// repository.
fn path<'s>(span: &'s str, is_of_developers: bool, repository: &Repository) -> Option<&'s str> {
    let is_file = span.ends_with(".rs");
    let is_plain = span.split('/').all(|part| {
        !part.starts_with("..") && part.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    });
    if !(is_file || span.contains('/'))
        || !is_plain
        || span.starts_with(['/', '.']) && !span.starts_with(".ci/")
    {
        return None;
    }
    let top = span.split('/').next().unwrap_or_default();
    let is_ours = is_of_developers || is_file || repository.tops.contains(top);
    (is_ours && !span.contains("NAME")).then(|| span.trim_end_matches('/'))
}

/// Returns an item's name without parentheses. `None` if the span is not the name of an item.
fn item(span: &str) -> Option<&str> {
    let name = span.strip_suffix("()").unwrap_or(span);
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.split("::").all(is_name).then_some(name)
}

/// Adds the folders in which later paths of the page may start: `place` itself, if it is a folder, all folders above
/// it, and the `src` of each.
fn add_bases(bases: &mut BTreeSet<String>, place: &str) {
    let mut at = Some(place);
    while let Some(folder) = at {
        bases.insert(folder.to_owned());
        bases.insert(joined(folder, "src"));
        at = folder.rsplit_once('/').map(|(above, _)| above);
    }
}

fn joined(base: &str, path: &str) -> String {
    if base.is_empty() { path.to_owned() } else { format!("{base}/{path}") }
}

/// A paragraph, a row of a table, or an item of a list.
#[derive(Debug)]
struct Block<'t> {
    /// Number of the block's first line in the page, from 1.
    line: usize,
    lines: Vec<&'t str>,
}

impl Block<'_> {
    /// Returns the code spans, each with its line. A span may go over the end of a line.
    fn spans(&self) -> Vec<(usize, String)> {
        let text = self.lines.join("\n");
        let mut line = self.line;
        let mut found = Vec::new();
        for (index, piece) in text.split('`').enumerate() {
            if index % 2 == 1 {
                found.push((line, piece.replace('\n', " ")));
            }
            line += piece.matches('\n').count();
        }
        found
    }
}

/// Returns the blocks of a page, without blocks of code.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut is_code, mut is_new) = (false, true);
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || start.is_empty() || line.starts_with("    ") {
            is_new = true;
            continue;
        }
        let is_numbered = start.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
        let begins = ["|", "#", "* ", "- "].iter().any(|mark| start.starts_with(mark)) || is_numbered;
        match blocks.last_mut() {
            Some(block) if !is_new && !begins => block.lines.push(line),
            _ => blocks.push(Block { line: index + 1, lines: vec![line] }),
        }
        is_new = false;
    }
    blocks
}
