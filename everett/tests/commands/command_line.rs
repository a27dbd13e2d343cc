//! Tests of command lines that need no image: help, errors, JSON. Each command line is a file in `tests/cmd`, and its
//! output is the same on every host. Cases with host-dependent output are in `tests/host`.

use crate::cases::{is_as_expected, run};

#[test]
fn command_lines() {
    run("tests/cmd");
}

#[test]
fn other_output_is_noticed() {
    for (expected, found, is_same) in [
        ("a\nb\n", "a\nb", true),
        ("a\n", "a\nb\n", false),
        ("a\nb\n", "a\n", false),
        ("a [..] b", "a c b", true),
        ("a [..] b", "a b", false),
        ("[..]a[..]b", "a.a.b", true),
        ("[..]a[..]b", "b.a", false),
        ("a\n...\nb", "a\nb", true),
        ("a\n...\nb", "a\nc\nd\nb", true),
        ("a\n...\nb", "a\nb\nc", false),
        ("a", "A", false),
        ("", "a", false),
    ] {
        assert_eq!(is_as_expected(expected, found), is_same, "{expected:?} {found:?}");
    }
}
