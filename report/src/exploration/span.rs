//! Writes text from guests as code spans and code blocks of Markdown. No text can end its span or block early.

use everett_input::text::one_line;

/// Maximum length of a path that is shown in full, in bytes.
const PATH_BYTES_MAX: usize = 200;

/// Returns a code span with a text.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text);
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    // A backtick at either end would merge with the fence. If a text has spaces at both ends, Markdown removes both.
    let edge = |c: Option<char>| c == Some('`') || c == Some(' ');
    let pad = if edge(text.chars().next()) || edge(text.chars().last()) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Returns a code span for a cell of a table.
pub(super) fn cell(text: &str) -> String {
    // A bar ends a cell even within a code span. A backslash cannot escape it reliably, because its effect depends on
    // the characters before it.
    code(&one_line(text).replace('|', "\\u{7c}"))
}

/// Returns a code block with these lines.
pub(super) fn block<'t>(lines: impl IntoIterator<Item = &'t str>) -> String {
    let lines: Vec<String> = lines.into_iter().flat_map(str::lines).map(one_line).collect();
    let run = lines.iter().map(|line| longest_run(line)).max().unwrap_or(0);
    let fence = "`".repeat(run.max(2) + 1);
    let mut block = format!("{fence}text\n");
    for line in lines {
        block.push_str(&line);
        block.push('\n');
    }
    block + &fence + "\n"
}

/// Quotes a text for a shell command if necessary.
#[must_use]
pub fn word(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:+,@%=".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Returns a path as Markdown, in code spans. A long path is shortened to its first fork, the number of later forks,
/// and its last fork.
pub(super) fn path(path: &everett_explorer::search::Path) -> String {
    let text = path.to_string();
    if text.len() <= PATH_BYTES_MAX {
        return code(&text);
    }
    match path.forks() {
        [first, .., last] => {
            format!(
                "{} and {} forks later {}",
                code(&first.to_string()),
                path.forks().len() - 1,
                code(&last.to_string())
            )
        }
        _ => code(&text),
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the text of a code span as CommonMark reads it. `None` if `span` is not exactly one code span.
    fn read(span: &str) -> Option<String> {
        let fence = span.len() - span.trim_start_matches('`').len();
        let inner = span.get(fence..span.len().checked_sub(fence)?)?;
        let runs: Vec<&str> = inner.split(|c| c != '`').collect();
        let closed = runs.iter().any(|run| run.len() == fence) || inner.ends_with('`');
        let stripped = inner.strip_prefix(' ').and_then(|rest| rest.strip_suffix(' '));
        let blank = inner.trim_matches(' ').is_empty();
        (fence > 0 && !closed).then(|| stripped.filter(|_| !blank).unwrap_or(inner).to_owned())
    }

    proptest! {
        #[test]
        fn a_span_shows_its_text(text in "[`a\\\\| ]{1,12}|\\PC{1,20}") {
            let expected = one_line(&text);
            let read = read(&code(&text));
            // A text that consists only of spaces may come back with fewer or more spaces.
            prop_assert!(read.as_ref() == Some(&expected) || expected.trim_matches(' ').is_empty(), "{:?}", read);
        }

        #[test]
        fn a_span_is_on_one_line(text in "(?s).{0,30}") {
            prop_assert!(!code(&text).contains(|c: char| c.is_control()));
            prop_assert!(!cell(&text).contains('|'));
        }

        #[test]
        fn a_block_has_all_lines(text in "[`a~\n]{0,40}|(?s).{0,40}") {
            let block = block([text.as_str(), "end"]);
            let lines: Vec<&str> = block.split('\n').collect();
            let fence = lines[0].strip_suffix("text").unwrap();
            prop_assert_eq!(lines.len(), text.lines().count() + 4);
            prop_assert_eq!((lines[lines.len() - 2], lines[lines.len() - 1]), (fence, ""));
            prop_assert!(lines[1..lines.len() - 2].iter().all(|line| !line.trim_start().starts_with(fence)));
        }
    }

    #[test]
    fn words() {
        assert_eq!(word("runs/etcd-1"), "runs/etcd-1");
        assert_eq!(word("my run's"), "'my run'\\''s'");
        assert_eq!(word(""), "''");
    }

    #[test]
    fn long_paths_are_shortened_to_their_ends() {
        let long: Vec<String> = (1..100).map(|i| format!("{i}000.{i}")).collect();
        let long = long.join("/").parse().unwrap();
        assert_eq!(path(&long), "`1000.1` and 98 forks later `99000.99`");
        assert_eq!(path(&"5.1/6.2".parse().unwrap()), "`5.1/6.2`");
    }
}
