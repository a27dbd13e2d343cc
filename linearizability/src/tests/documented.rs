//! Tests that the manual page docs/exploring.md lists exactly the models and operations that exist.

use std::collections::{BTreeMap, BTreeSet};

use super::super::shape;
use super::*;

const PAGE: &str = include_str!("../../../docs/exploring.md");

/// Returns the texts in backquotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_manual_lists_all_models_and_operations() {
    let (_, table) = PAGE.split_once("| model | `f` (other names) |").expect("the table of models");
    let mut models: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut model = String::new();
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if let [name] = &quoted(cells[1])[..] {
            model = name.clone();
        }
        let mut words: BTreeSet<String> = quoted(cells[2]).into_iter().collect();
        if cells[2].starts_with("those of") {
            words = words.iter().flat_map(|other| models[other].clone()).collect();
        }
        models.entry(model.clone()).or_default().extend(words);
    }
    let known = MODELS
        .into_iter()
        .map(|kind| (kind.name().to_owned(), shape::words(kind).map(|(name, _)| name.to_owned()).collect()));
    assert_eq!(models, known.collect());
}
