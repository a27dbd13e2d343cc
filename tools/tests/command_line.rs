//! Command lines that need no image: help, errors, JSON. Each is a file in `tests/cmd`.
//! Their output does not depend on the host; tests with output that does are in `host`.

#[test]
fn command_lines() {
    trycmd::TestCases::new().case("tests/cmd/*.toml");
}
