//! Tests that the page of all bounds, docs/bounds.md, agrees with the source.

use std::fs;

use everett_lint::bounds::{Bound, bounds, page};
use everett_lint::files::top;

#[test]
fn the_page_lists_all_bounds() {
    let page_file = top().join("docs/bounds.md");
    let (expected, found) = (page(top()).unwrap(), fs::read_to_string(page_file).unwrap());
    let other = expected.lines().find(|line| !found.lines().any(|one| one == *line));
    assert!(
        expected == found,
        "docs/bounds.md is old: {other:?}; cargo run --release -p everett-lint --example bounds > docs/bounds.md"
    );
}

#[test]
fn each_bound_says_what_it_bounds() {
    let page = page(top()).unwrap();
    let silent: Vec<&str> = page.lines().filter(|line| line.ends_with("|  |")).collect();
    assert!(silent.is_empty(), "bounds without documentation:\n{}", silent.join("\n"));
}

#[test]
fn bounds_are_found() {
    let source = "/// Length of a line, e.g. `x`. [`Line`] is short.\n#[allow(unused)]\npub(crate) const LINE_BYTES_MAX: usize = 4 << 10;\n\
                  const LIMIT: u8 = 1;\n/// Widths\n/// of a [`Bus`](crate::Bus) (vol. 3, [`More`]).\nconst WIDTHS_MIN: RangeInclusive<u8> =\n    1..=2;\n\
                  #[cfg(test)]\nmod tests {\n    const OTHER_MAX: u8 = 3;\n}\n";
    let bound = |name: &str, value: &str, meaning: &str| Bound {
        name: name.to_owned(),
        value: value.to_owned(),
        meaning: meaning.to_owned(),
    };
    assert_eq!(
        bounds(source),
        [
            bound("LINE_BYTES_MAX", "4 << 10", "Length of a line, e.g. `x`."),
            bound("WIDTHS_MIN", "1..=2", "Widths of a `Bus` (vol. 3, `More`)."),
        ]
    );
}
