//! Texts of bounded length.

/// Returns the longest prefix of a text that has at most `most` bytes and ends at a character boundary.
pub(crate) fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// Shortens a text to at most `most` bytes, which must be at least 19. A text that is too long becomes its beginning
/// followed by a hash of the whole text, so different texts stay different.
pub(crate) fn clip(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let hash = hex(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
    format!("{}…{hash}", head(text, most.saturating_sub(hash.len() + '…'.len_utf8())))
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts a word in quotes if one of its characters could be taken for a separator. Different words stay different.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-+^/".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("{text:?}") }
}
