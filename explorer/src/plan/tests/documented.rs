//! Tests of the user's page about faults: its examples are valid plans, and it lists all faults with their defaults.
//!
//! The page is `docs/faults.md`, outside this crate, so these tests need a checkout of the repository.

use everett_fault::FaultKind;

use super::*;
use crate::plan::draw::FaultConfig;

const PAGE: &str = include_str!("../../../../docs/faults.md");

/// Returns the page's code blocks in this language.
fn blocks(language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in PAGE.lines() {
        match &mut block {
            None if line.strip_prefix("```") == Some(language) => block = Some(String::new()),
            Some(_) if line == "```" => blocks.extend(block.take()),
            Some(text) => *text += &format!("{line}\n"),
            None => {}
        }
    }
    blocks
}

#[test]
fn the_examples_are_plans() {
    let plans = blocks("jsonl");
    let mut seen = BTreeSet::new();
    for text in &plans {
        let plan = parse(text).unwrap_or_else(|errors| panic!("{text}{errors}"));
        seen.extend(plan.entries().iter().map(|entry| entry.what.name()));
    }
    let expected: BTreeSet<&str> =
        FaultKind::ALL.into_iter().map(FaultKind::name).chain(["heal", "quiet"]).collect();
    assert_eq!(seen, expected);
}

#[test]
fn each_fault_has_a_heading_of_its_own() {
    let headings: Vec<&str> =
        PAGE.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let expected: Vec<&str> = FaultKind::ALL.into_iter().map(FaultKind::name).collect();
    assert_eq!(headings, expected);
}

/// The page's table of all settings equals the defaults in the code.
#[test]
fn the_defaults_are_those_of_the_page() {
    let tables = blocks("toml");
    assert_eq!(tables.len(), 1);
    #[derive(serde::Deserialize)]
    struct World {
        faults: FaultConfig,
    }
    let World { faults } = toml::from_str(&tables[0]).unwrap();
    assert_eq!(faults, FaultConfig::default());
    let keys: toml::Table = toml::from_str(&tables[0]).unwrap();
    let kinds = FaultKind::ALL.into_iter().filter(|kind| keys["faults"].get(kind.name()).is_some());
    assert_eq!(kinds.count(), FaultKind::ALL.len());
}
