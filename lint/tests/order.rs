//! Tests that the parts of a folder use each other only in the order that the folder's documentation states.

mod sample;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use everett_lint::files::{self, roots, top};
use everett_lint::modules::Crate;
use everett_lint::order::{stated, violations};

/// Number of folders that state an order. Change it when the documentation of a folder begins or ceases to state an
/// order.
const STATED: usize = 10;

#[test]
fn stated_orders_are_true() {
    // Crates whose folders state no order need not be parsed.
    let states = |file: &PathBuf| stated(&fs::read_to_string(file).unwrap()).is_some();
    let stating: Vec<PathBuf> = files::below(top(), ".rs").unwrap().into_iter().filter(states).collect();
    let mut checked: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for root in roots(top()).unwrap() {
        if stating.iter().any(|file| file.starts_with(root.parent().unwrap())) {
            for (file, lines) in violations(&Crate::read(&root).unwrap().imports()).unwrap() {
                checked.entry(file).or_default().extend(lines);
            }
        }
    }
    let found: Vec<String> = checked.values().flatten().cloned().collect();
    assert!(found.is_empty(), "move what both use, or correct the list:\n{}", found.join("\n"));
    assert_eq!(stating.len(), STATED, "an order was added, or a sentence does not state one any more");
    let unchecked: Vec<&PathBuf> = stating.iter().filter(|file| !checked.contains_key(*file)).collect();
    assert!(unchecked.is_empty(), "no crate has these files as mod.rs, lib.rs or main.rs: {unchecked:?}");
}

/// Returns the violations in a crate with these files, without the crate's folder.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let (folder, imports) = sample::of_files(files);
    let prefix = format!("{}/", folder.path().display());
    violations(&imports).unwrap().into_values().flatten().map(|line| line.replace(&prefix, "")).collect()
}

#[test]
fn uses_against_the_order_are_found() {
    let list = "//! - [`one`]: first, with the `three` of others\n//! - `two/` and [`four`](mod@four):\n//!   second\n//!\n//! - [`three`]: no part";
    let files = |sentence: &str, one: &'static str, two: &'static str| {
        [
            ("lib.rs", format!("//! Parts. {sentence}\n{list}\nmod one; mod two; mod three; mod four;")),
            ("one.rs", format!("{one} pub struct One;")),
            ("two/mod.rs", format!("{two} pub struct Two;")),
            ("three.rs", "pub struct Three;".to_owned()),
            ("four.rs", "use crate::two::Two; pub struct Four;".to_owned()),
        ]
    };
    let of = |sentence, one, two| {
        let files = files(sentence, one, two);
        found(&files.each_ref().map(|(name, text)| (*name, text.as_str())))
    };
    let (above, below) =
        ("Each folder uses only folders above it:", "Each module uses only modules below it:");
    assert_eq!(of(above, "", "use crate::one::One;"), [""; 0]);
    assert_eq!(of(above, "use crate::two::Two;", ""), ["lib.rs: one uses two, against the stated order"]);
    assert_eq!(of(below, "use crate::two::Two;", ""), [""; 0]);
    assert_eq!(of(below, "", "use crate::one::One;"), ["lib.rs: two uses one, against the stated order"]);
    assert_eq!(of(above, "", "use crate::three::Three;"), ["lib.rs: the list lacks three"]);
    assert_eq!(of("Parts:", "use crate::two::Two;", ""), [""; 0]);
}

#[test]
fn parts_that_do_not_exist_are_found() {
    let of = |list: &str| {
        let root = format!("//! Each module uses only modules above it:\n{list}\nmod one; mod two;");
        found(&[("lib.rs", &root), ("one.rs", ""), ("two/mod.rs", "use crate::one;")])
    };
    assert_eq!(of("//! - `one.rs`: `a`, `b` and\n//!   `c`, and so on. `two/`: last"), [""; 0]);
    assert_eq!(
        of("//! - [`one`], [`gone`](mod@gone) and `lost/`: first\n//! - [`two`]: last. `late`: none"),
        ["gone", "lost", "late"].map(|name| format!("lib.rs: the list names {name}, which does not exist"))
    );
}
