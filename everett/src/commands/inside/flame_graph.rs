//! Flame graphs by executed instructions, and the lines from which other tools draw them.

use std::io::Write;

use everett_session::inside::profile::Profile;

use crate::ui::printable;

/// Returns a stack as a line of the folded form, which tools for flame graphs read.
pub(super) fn folded(stack: &[String], instructions: u64) -> String {
    // A semicolon separates functions, and the last space the number.
    let names: Vec<String> = stack.iter().map(|name| printable(name).replace(';', ":")).collect();
    format!("{} {instructions}", names.join(";"))
}

/// Draws a flame graph (SVG) of the profile's stacks.
pub(super) fn draw(profile: &Profile, title: &str, into: impl Write) -> anyhow::Result<()> {
    use inferno::flamegraph::{Options, from_lines};
    let lines: Vec<String> =
        profile.stacks().map(|(stack, instructions)| folded(&stack, instructions)).collect();
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    "instructions".clone_into(&mut options.count_name);
    // The default would draw random colours.
    options.hash = true;
    let lines = lines.iter().map(String::as_str);
    from_lines(&mut options, lines, into).map_err(|error| anyhow::anyhow!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_cannot_change_the_form_of_a_line() {
        let stack = ["a b", "f(x; y)", "g\n1"].map(str::to_owned);
        assert_eq!(folded(&stack, 7), "a b;f(x: y);g\\n1 7");
    }
}
