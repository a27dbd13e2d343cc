//! Tests that all paths and items in the documentation exist.

use std::fs;

use everett_lint::files;
use everett_lint::pointers::{Repository, stale};

#[test]
fn documentation_points_to_what_exists() {
    let top = files::top();
    let repository = Repository::read(top).unwrap();
    let mut pages = files::below(&top.join("docs"), ".md").unwrap();
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|page| top.join(page)));
    assert!(pages.len() > 20);
    let mut found = Vec::new();
    for page in &pages {
        let name = page.strip_prefix(top).unwrap().display().to_string();
        found.extend(stale(&name, &fs::read_to_string(page).unwrap(), &repository));
    }
    assert!(found.is_empty(), "these pointers are stale:\n{}", found.join("\n"));
}

#[test]
fn stale_pointers_are_found() {
    let mut repository = Repository::default();
    repository.add("cpu/src/run.rs", Some("struct Cpu; fn step() {}"));
    repository.add("cpu/src/mem/tlb.rs", Some("impl Tlb { fn flush() {} }"));
    repository.add("cpu/src/mem/mod.rs", Some(""));
    repository.add("cpu/src/mod.rs", Some(""));
    repository.add("docs/guide.md", None);
    repository.add(".ci/run", None);
    let found = |page: &str, text: &str| stale(page, text, &repository);
    let architecture = |text: &str| found("docs/ARCHITECTURE.md", text);
    for true_pointers in [
        "`cpu/` has `run.rs`, `mem/tlb.rs` and `src/mem`. `guide.md` and `.ci/run` too, beside `run.rs`.",
        "Each folder has a `mod.rs`.",
        "| `cpu/src/mem/tlb.rs` | `Tlb::flush()`, `step` |",
        "`Gone::item` is beside no path.\n\n* `cpu/src/run.rs`\n* `gone`",
        "```\n`cpu/gone.rs`\n```\n\n    `cpu/gone.rs`\n\n`cpu/src/NAME.rs`, `/dev/kvm`, `a b/c`, `x/*`",
    ] {
        assert_eq!(architecture(true_pointers), [""; 0], "{true_pointers}");
    }
    assert_eq!(
        architecture("`cpu/src/gone.rs` and\n`mem/gone/`"),
        [
            "docs/ARCHITECTURE.md:1: there is no cpu/src/gone.rs",
            "docs/ARCHITECTURE.md:2: there is no mem/gone/"
        ]
    );
    // A path without its folder is found only if the page names the folder (`cpu/`) before the path.
    assert_eq!(architecture("`mem/tlb.rs` of `cpu/`"), ["docs/ARCHITECTURE.md:1: there is no mem/tlb.rs"]);
    assert_eq!(
        architecture("| x | `Tlb::flush` |\n| `cpu/src/mem/tlb.rs`: `Tlb::step`, `Tlb::flush`, `gone()` |"),
        ["docs/ARCHITECTURE.md:2: no code has Tlb::step", "docs/ARCHITECTURE.md:2: no code has gone()"]
    );
    // Pages for users may show paths in guests and in run directories, which this repository does not contain.
    assert_eq!(found("docs/guide.md", "`findings/ID`, `run/run.json`"), [""; 0]);
    assert_eq!(
        found("docs/guide.md", "`cpu/gone`, `gone.rs`"),
        ["docs/guide.md:1: there is no cpu/gone", "docs/guide.md:1: there is no gone.rs"]
    );
}
