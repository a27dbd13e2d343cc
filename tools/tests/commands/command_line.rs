//! Command lines that need no image: help, errors, JSON. Each is a file in `tests/cmd`. Their output does not depend on
//! the host; command lines whose output does are in `host`.

#[test]
fn command_lines() {
    trycmd::TestCases::new().case("tests/cmd/*.toml");
}
