//! Sections of the documentation that state measured figures.
//!
//! A figure holds for the machine version under which it was measured, so each page or section with figures names one
//! (`everett-3`).

/// Words that only measurements have.
const MEASURED: [&str; 5] =
    ["MIPS", "of CPU", "branches a minute", "instructions a second", "instructions per second"];

/// Number of hexadecimal digits from which a word counts as a digest.
const DIGEST_DIGITS_MIN: usize = 8;

/// Returns the headings of the sections of a Markdown page that state a figure and name no machine version. A version
/// that is named before the first heading of the second level holds for the whole page.
#[must_use]
pub fn without_version(page: &str) -> Vec<String> {
    let mut sections = vec![(String::new(), String::new())];
    for line in page.lines() {
        if line.starts_with("## ") {
            sections.push((line.trim_start_matches('#').trim().to_owned(), String::new()));
        } else if let Some((_, text)) = sections.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    if sections.first().is_some_and(|(_, text)| names_version(text)) {
        return Vec::new();
    }
    let without = |(_, text): &(String, String)| states_figure(text) && !names_version(text);
    sections.into_iter().filter(without).map(|(heading, _)| heading).collect()
}

/// Returns the machine versions that a text names, such as 3 for `everett-3`.
#[must_use]
pub fn versions(text: &str) -> Vec<u32> {
    let after = text.split("everett-").skip(1);
    after.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).collect()
}

fn names_version(text: &str) -> bool {
    !versions(text).is_empty()
}

fn states_figure(text: &str) -> bool {
    // Lines of a paragraph belong together.
    let joined = text.replace('\n', " ");
    MEASURED.iter().any(|words| joined.contains(words)) || joined.split_whitespace().any(is_digest)
}

/// True for a word of hexadecimal digits, whole or cut, with both digits and letters.
fn is_digest(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let hex = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    hex && word.len() >= DIGEST_DIGITS_MIN
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_lowercase())
}
