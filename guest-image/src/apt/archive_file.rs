//! Files of package archives, their paths, and the encoding of the paths in addresses.

/// A file of a package archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchiveFile {
    /// Path, relative to the archive's base address. If the file is a suite's list of packages, the path is relative to
    /// the folder of the suite's index.
    pub(crate) path: String,
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// SHA-256 in hexadecimal.
    pub(crate) sha256: String,
}

impl ArchiveFile {
    /// Returns the name under which Everett saves a package that it downloads by its path and digest, without package
    /// lists.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        format!("{}.deb", self.sha256)
    }
}

/// True if the text is a path that stays below an archive's base address.
pub(crate) fn is_path(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-.~_:%".contains(&byte);
    text.bytes().all(is_plain) && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Percent-encodes each plus, tilde and percent sign of a path, as apt does in addresses. Some servers would take a
/// plus for a space.
pub(super) fn encoded(path: &str) -> String {
    path.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'+' | b'~' | b'%' => text.push_str(&format!("%{byte:02x}")),
            _ => text.push(char::from(byte)),
        }
        text
    })
}

/// Decodes a percent-encoded path. `None` if the encoding is malformed.
pub(super) fn decoded(address: &str) -> Option<String> {
    let mut pieces = address.split('%');
    let mut text = pieces.next()?.to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        // Without this check, `from_str_radix` would accept a plus sign as the first digit.
        let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
        text.push(char::from(u8::from_str_radix(digits, 16).ok()?));
        text.push_str(rest);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_no_other_place() {
        assert!(is_path("pool/main/g/g++_1%3a2~3-4.deb"));
        for path in [
            "../x",
            "/x",
            "pool//x",
            "pool/./x",
            "pool/../../x",
            "pool/x y",
            "pool/x?y",
            "pool/x\n",
            "x/",
            "",
        ] {
            assert!(!is_path(path), "{path}");
        }
    }

    #[test]
    fn encoded_paths_are_decoded() {
        for (path, address) in [("g++_1~2", "g%2b%2b_1%7e2"), ("a%3ab", "a%253ab"), ("a:b", "a:b"), ("", "")]
        {
            assert_eq!(encoded(path), address);
            assert_eq!(decoded(address).as_deref(), Some(path));
        }
        assert_eq!(decoded("%2B%c3").as_deref(), Some("+\u{c3}"));
        for malformed in ["x%2", "x%", "x%zz", "x%é", "%+1"] {
            assert_eq!(decoded(malformed), None, "{malformed}");
        }
    }
}
