//! Tests that each section of the documentation with measured figures names the machine version.

use std::fs;
use std::path::PathBuf;

use everett_lint::figures::{versions, without_version};
use everett_lint::files;

/// Returns the pages that may state figures.
fn pages() -> Vec<PathBuf> {
    let below = |folder| files::below(&files::top().join(folder), ".md").unwrap();
    let mut pages: Vec<PathBuf> =
        ["docs", "examples", "emulated-hosts"].into_iter().flat_map(below).collect();
    pages.push(files::top().join("README.md"));
    pages
}

#[test]
fn each_figure_names_its_machine_version() {
    let pages = pages();
    assert!(pages.len() > 20);
    let mut without = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        without.extend(
            without_version(&text).into_iter().map(|heading| format!("{}: {heading}", page.display())),
        );
    }
    assert!(without.is_empty(), "figures without a machine version (everett-N):\n{}", without.join("\n"));
}

#[test]
fn figures_are_found() {
    let page = "# A\n\n## One\n\nIt took 3 s of\nCPU.\n\n## Two\n\ntrail 6aad481a…\n\n## Three\n\nNo figure, decade.\n";
    assert_eq!(without_version(page), ["One", "Two"]);
    assert_eq!(without_version(&page.replace("It took", "Under everett-3 it took")), ["Two"]);
    assert_eq!(without_version(&page.replace("# A\n", "# A\n\nMachine version everett-12.\n")), [""; 0]);
    assert_eq!(versions("everett-2, everett-12. everett-lint"), [2, 12]);
}
