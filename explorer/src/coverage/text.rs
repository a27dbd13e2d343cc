//! Texts of a bounded length that still tell different texts apart.

/// The start of a text that has at most this many bytes.
pub(crate) fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// A text as it is, or its start and a hash of all of it. Two texts stay two.
pub(crate) fn clip(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let hash = hex(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
    format!("{}…{hash}", head(text, most.saturating_sub(hash.len() + '…'.len_utf8())))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A word as it is if nothing in it can be taken for a separator, else in quotes. Two texts stay two.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-+^/".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("{text:?}") }
}
