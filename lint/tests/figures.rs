//! Tests that each section of the documentation with measured figures names the machine version.

use std::fs;
use std::path::{Path, PathBuf};

use everett_lint::figures::{versions, without_version};

fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut open = ["docs", "examples", "emulated-hosts"].map(|folder| top.join(folder)).to_vec();
    let mut found = vec![top.join("README.md")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();
    found
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
