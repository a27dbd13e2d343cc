//! Bytes as quoted text, with the escapes that `strace` prints.

/// Returns bytes as quoted text. `...` follows if they are a part of a longer text.
pub(super) fn quoted(bytes: &[u8], is_cut: bool) -> String {
    let mut text = String::from("\"");
    for (n, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // A digit behind a short escape would belong to it.
            _ if bytes.get(n + 1).is_some_and(u8::is_ascii_digit) => text.push_str(&format!("\\{byte:03o}")),
            _ => text.push_str(&format!("\\{byte:o}")),
        }
    }
    text.push('"');
    if is_cut {
        text.push_str("...");
    }
    text
}
