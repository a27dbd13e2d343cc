//! Patterns of world files: names with `*` wildcards, and regular expressions of bounded size.
//!
//! Not here: the texts to match, and the effect of a match.

use regex::{Regex, RegexBuilder};

/// Maximum length of a regular expression, in bytes.
pub const REGEX_BYTES_MAX: usize = 1024;
/// Maximum size of a compiled expression, in bytes. The cache of the expression's lazily built automata has the same
/// limit.
pub const REGEX_SIZE_MAX: usize = 1 << 20;

/// Reason why a regular expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpressionError {
    /// The expression is longer than [`REGEX_BYTES_MAX`].
    #[error("at most {REGEX_BYTES_MAX} bytes")]
    Long,
    /// The expression has a syntax error, or would be too large when compiled.
    #[error("{0}")]
    Refused(String),
}

/// Compiles a regular expression. The compiled expression matches in time linear in the text.
pub(crate) fn expression(text: &str) -> Result<Regex, ExpressionError> {
    if text.len() > REGEX_BYTES_MAX {
        return Err(ExpressionError::Long);
    }
    RegexBuilder::new(text)
        .size_limit(REGEX_SIZE_MAX)
        .dfa_size_limit(REGEX_SIZE_MAX)
        .build()
        .map_err(|error| ExpressionError::Refused(one_line(&error)))
}

/// Returns a regex error's message on one line, without the drawing that marks the error's position.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once("\nerror: ") {
        Some((_, what)) => format!("regex parse error: {}", what.lines().next().unwrap_or_default()),
        None => text.lines().next().unwrap_or_default().to_owned(),
    }
}

/// Returns true if `name` matches `pattern`. A `*` in the pattern stands for any number of characters.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn errors_are_one_line() {
        let message = |text: &str| expression(text).unwrap_err().to_string();
        assert_eq!(message("("), "regex parse error: unclosed group");
        assert_eq!(message("a\nerror: x\n["), "regex parse error: unclosed character class");
        assert_eq!(message("(?x)\n(\n"), "regex parse error: unclosed group");
        assert!(message("a{1000}{1000}").starts_with("Compiled regex exceeds size limit"));
        assert_eq!(message(&"a".repeat(REGEX_BYTES_MAX + 1)), "at most 1024 bytes");
        assert!(expression(&"a".repeat(REGEX_BYTES_MAX)).is_ok());
    }

    /// Reference implementation of `fits`: tries each number of characters for each `*`.
    fn fits_slowly(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| fits_slowly(rest, &name[taken..])),
            Some((c, rest)) => name.first() == Some(c) && fits_slowly(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn stars_match_any_characters(pattern in "[ab*]{0,7}", name in "[ab]{0,9}") {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            prop_assert_eq!(fits(&pattern, &name), fits_slowly(&chars(&pattern), &chars(&name)));
        }

        #[test]
        fn errors_of_random_expressions_are_one_line(text in "\\PC{0,40}|[(\\[{?*+\\\\a\n-]{0,12}") {
            if let Err(error) = expression(&text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}
