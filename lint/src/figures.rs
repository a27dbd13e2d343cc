//! Finds sections of the documentation that state measured figures.
//!
//! A figure holds for the machine version (the version of the simulated machine) under which it was measured. So each
//! page or section with figures must name a machine version, such as `everett-3`.

/// Words that only measured figures contain.
const MEASURED: [&str; 6] = [
    "MIPS)",
    " s of CPU",
    "0 branches a minute",
    "illion instructions a second",
    "illion instructions per second",
    "instructions per second |",
];

/// Number of hexadecimal digits of a digest.
const DIGEST_DIGITS: usize = 64;

/// Minimum number of hexadecimal digits of a shortened digest, i.e. of digits that `…` or `...` follows.
const CUT_DIGITS_MIN: usize = 8;

/// Returns the headings of the sections of a Markdown page that state a figure without a machine version. A version
/// before the first heading of the second level holds for the whole page.
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
    // A phrase may continue on the next line.
    let joined = text.replace('\n', " ");
    MEASURED.iter().any(|words| joined.contains(words)) || joined.split_whitespace().any(is_digest)
}

/// True if a word is a digest, full or shortened: hexadecimal digits with at least one of `0` to `9` and of `a` to `f`.
fn is_digest(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let digits = word.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let cut = word.get(digits.len()..).is_some_and(|rest| rest.starts_with('…') || rest.starts_with("..."));
    let hex = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let mixed = digits.bytes().any(|b| b.is_ascii_digit()) && digits.bytes().any(|b| b.is_ascii_lowercase());
    hex && mixed && (digits.len() == DIGEST_DIGITS || cut && digits.len() >= CUT_DIGITS_MIN)
}
