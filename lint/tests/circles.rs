//! Tests that no files or folders of this repository import each other, except those that `known_circles.txt` lists.

mod sample;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use everett_lint::circles::of_files_and_folders;
use everett_lint::files::{roots, top};
use everett_lint::modules::Crate;

fn named(circle: &BTreeSet<PathBuf>, top: &Path) -> String {
    let names = circle.iter().map(|path| path.strip_prefix(top).unwrap_or(path).display().to_string());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn no_circle_but_the_known_ones() {
    let top = top();
    let roots = roots(top).unwrap();
    assert!(roots.len() >= 20, "only {} crates were found", roots.len());
    let mut found = BTreeSet::new();
    for root in &roots {
        let imports = Crate::read(root).unwrap().imports();
        found.extend(of_files_and_folders(&imports).iter().map(|circle| named(circle, top)));
    }
    let file = top.join("lint/known_circles.txt");
    let known = fs::read_to_string(&file).unwrap();
    let known: BTreeSet<String> =
        known.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_owned).collect();
    let new: Vec<&String> = found.difference(&known).collect();
    let gone: Vec<&String> = known.difference(&found).collect();
    assert!(new.is_empty(), "these import each other:\n{new:#?}\nMove what they share into a separate file.");
    assert!(
        gone.is_empty(),
        "these are not circles any more; remove them from {}:\n{gone:#?}",
        file.display()
    );
}

/// Returns the circles, i.e. groups of files or folders that import each other, in a crate with these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let (folder, imports) = sample::of_files(files);
    of_files_and_folders(&imports).iter().map(|circle| named(circle, folder.path())).collect()
}

#[test]
fn circles_are_found_however_a_name_is_written() {
    let ways = [
        "use crate::b::B; pub struct A(B);",
        "use super::b::B as C; pub struct A(C);",
        "pub struct A(crate::b::B);",
        "use crate::B; pub struct A(B);",
        "use crate::b; pub struct A(b::B);",
        "use crate::b::*; pub struct A(B);",
        "use crate::{b::{self}}; pub fn f() -> b::B { b::B(None) }",
    ];
    for a in ways {
        let found = circles_of(&[
            ("lib.rs", "mod a; mod b; pub use b::B;"),
            ("a.rs", a),
            ("b.rs", "use crate::a; pub struct B(Option<Box<a::A>>);"),
        ]);
        assert_eq!(found, ["a.rs b.rs"], "{a}");
    }
}

#[test]
fn three_files_and_two_folders() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "pub struct B; use crate::c::C;"),
        ("c.rs", "pub struct C; use crate::a;"),
    ]);
    assert_eq!(found, ["a.rs b.rs c.rs"]);
    // No two files import each other, but the folders do.
    let found = circles_of(&[
        ("lib.rs", "mod one; mod two;"),
        ("one/mod.rs", "pub mod x; pub mod y;"),
        ("one/x.rs", "use crate::two::p::P;"),
        ("one/y.rs", "pub struct Y;"),
        ("two/mod.rs", "pub mod p; pub mod q;"),
        ("two/p.rs", "pub struct P;"),
        ("two/q.rs", "use crate::one::y::Y;"),
    ]);
    assert_eq!(found, ["one two"]);
}

#[test]
fn what_is_no_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("a.rs", "use crate::B; pub struct A(B); #[cfg(test)] mod tests { use crate::b; }"),
        ("b.rs", "pub struct B; pub(in crate::a) fn f() {} #[cfg(test)] mod tests { use crate::A; }"),
    ]);
    assert_eq!(found, [""; 0]);
}
