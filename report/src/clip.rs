//! Texts of bounded length.

/// Returns the first `most` characters of a text, and an ellipsis if the text is longer.
pub(crate) fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
