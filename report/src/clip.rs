//! Cuts texts to a bounded length.

/// Returns the first `most` characters of a text, followed by an ellipsis if the text is longer.
pub(crate) fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
