//! Finds bounds, i.e. constants whose names end in `_MAX` or `_MIN`, and writes the page of the documentation that
//! lists them.
//!
//! The meaning of a bound is the first sentence of its documentation comment.

use std::fs;
use std::io;
use std::path::Path;

use crate::files;

/// Bound that a file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Name of the constant.
    pub name: String,
    /// Value as the source has it.
    pub value: String,
    /// First sentence of the documentation. Empty if there is none.
    pub meaning: String,
}

/// Names of folders and files of tests and benches. The page leaves out their bounds.
const TESTS: [&str; 3] = ["tests", "benches", "tests.rs"];

/// Beginning of the page.
const INTRODUCTION: &str = "# Bounds

Guests, images, files and run directories are hostile, so every length and count has a bound with a name. This page lists them all, with
the first sentence of each one's documentation. `cargo run --release -p everett-lint --example bounds > docs/bounds.md` writes it, and a
test compares it with the source.
";

/// Returns the bounds that a file declares, except in tests.
#[must_use]
pub fn bounds(source: &str) -> Vec<Bound> {
    let code = source.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let (mut found, mut comment, mut open) = (Vec::new(), String::new(), String::new());
    for line in code.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push_str(text.trim());
            comment.push(' ');
            continue;
        }
        if !open.is_empty() || declared(line).is_some() {
            open.push_str(line);
            open.push(' ');
            if line.ends_with(';') {
                found.extend(bound(&open, &comment));
                open.clear();
            }
        }
        // Attributes may stand between a comment and its constant.
        if open.is_empty() && !line.starts_with("#[") {
            comment.clear();
        }
    }
    found
}

/// Returns the text after `const` if the line declares a bound.
fn declared(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
        None => line,
    };
    let rest = rest.strip_prefix("const ")?;
    let name = rest.split(':').next()?;
    (name.ends_with("_MAX") || name.ends_with("_MIN")).then_some(rest)
}

fn bound(declaration: &str, comment: &str) -> Option<Bound> {
    let (name, rest) = declared(declaration)?.split_once(':')?;
    let (_, value) = rest.split_once(" = ")?;
    Some(Bound {
        name: name.to_owned(),
        value: value.trim().trim_end_matches(';').to_owned(),
        meaning: without_links(first_sentence(comment.trim())),
    })
}

/// Returns the text up to the first full stop that precedes a capital letter, a link or code.
fn first_sentence(text: &str) -> &str {
    let is_end = |at: usize| {
        let is_abbreviation = ["e.g", "i.e"].iter().any(|short| text[..at].ends_with(short));
        !is_abbreviation && text[at + 2..].starts_with(|c: char| c.is_uppercase() || "[`".contains(c))
    };
    let end = text.match_indices(". ").map(|(at, _)| at).find(|&at| is_end(at));
    end.map_or(text, |at| &text[..=at])
}

/// Replaces links, `[text]` or `[text](target)`, with their texts. Their targets are items of the source.
fn without_links(mut text: &str) -> String {
    let mut plain = String::new();
    while let Some((before, rest)) = text.split_once('[') {
        let Some((label, after)) = rest.split_once(']') else { break };
        plain += before;
        plain += label;
        text = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain + text
}

/// Returns the page with all bounds of the source tree at `top`, except those of tests and benches.
///
/// # Errors
/// Returns an error if a folder or a file cannot be read.
pub fn page(top: &Path) -> io::Result<String> {
    let mut page = INTRODUCTION.to_owned();
    let mut last = String::new();
    for file in files::below(top, ".rs")? {
        let name = file.strip_prefix(top).unwrap_or(&file).display().to_string();
        let Some((package, _)) = name.split_once("/src/") else { continue };
        if name.split('/').any(|part| TESTS.contains(&part)) {
            continue;
        }
        for Bound { name: bound, value, meaning } in bounds(&fs::read_to_string(&file)?) {
            if last != package {
                package.clone_into(&mut last);
                page += &format!("\n## {package}\n\n| bound | value | meaning |\n|---|---|---|\n");
            }
            let cell = |text: &str| text.replace('|', "\\|");
            page += &format!("| [`{bound}`](../{name}) | `{}` | {} |\n", cell(&value), cell(&meaning));
        }
    }
    Ok(page)
}
