//! Fields of the lines of Everett's program for shells and files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::limits::NAME_BYTES_MAX;

/// Decodes a field with bytes.
pub(super) fn bytes(field: &str) -> Option<Vec<u8>> {
    STANDARD.decode(field).ok()
}

/// True if these bytes can be the name of a file in a folder, so that the file is in this folder and nowhere else.
pub(super) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.len() <= NAME_BYTES_MAX
        && !name.iter().any(|&byte| byte == b'/' || byte == 0)
}
