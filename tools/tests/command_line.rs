//! Command lines that need no image: help, errors, JSON. Each is a file in `tests/cmd`.

#[test]
fn command_lines() {
    trycmd::TestCases::new().case("tests/cmd/*.toml");
}
