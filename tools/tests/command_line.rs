//! Command lines that need no image: help, errors, JSON. Each is a file in `tests/cmd`.
//! What they say does not depend on the host; `host` has those that do.

#[test]
fn command_lines() {
    trycmd::TestCases::new().case("tests/cmd/*.toml");
}
