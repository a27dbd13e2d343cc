//! The bytes that a question is about, as the operator names them.

use std::str::FromStr;

use everett_session::debug::origin::limits::BYTES_MAX;
use everett_session::debug::origin::{FileBytes, MessageBytes};

/// The bytes that a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedBytes {
    /// Memory at a linear address.
    Address {
        /// The address.
        address: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// A variable, by its name.
    Variable {
        /// Name, as the symbol table has it.
        name: String,
        /// Offset of the first byte in the variable.
        offset: u64,
        /// Number of bytes. `None` for the rest of the variable.
        bytes: Option<u64>,
    },
    /// Content of a file.
    File(FileBytes),
    /// Payload of a message.
    Message(MessageBytes),
}

/// Maximum length of a text in a payload, in bytes. A longer one would not lie in one segment.
const TEXT_BYTES_MAX: usize = 1_024;

/// Returns a text without its escapes: `\\n`, `\\r`, `\\t`, `\\\\` and `\\xHH`.
fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(place) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..place]);
        let escape = &rest[place + 1..];
        let digits = escape.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let hex = || u8::from_str_radix(digits?, 16).ok();
        let (byte, length) = match escape.as_bytes().first() {
            Some(b'n') => (Some(b'\n'), 1),
            Some(b'r') => (Some(b'\r'), 1),
            Some(b't') => (Some(b'\t'), 1),
            Some(b'\\') => (Some(b'\\'), 1),
            Some(b'x') => (hex(), 3),
            _ => (None, 0),
        };
        bytes.push(
            byte.ok_or_else(|| format!("{text:?}: write \\n, \\r, \\t, \\\\ or \\xHH after a backslash"))?,
        );
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    match bytes.len() {
        1..=TEXT_BYTES_MAX => Ok(bytes),
        0 => Err("payload: the text is empty".to_owned()),
        length => {
            Err(format!("payload: the text has {length} bytes; at most {TEXT_BYTES_MAX} are looked for"))
        }
    }
}

/// Returns a number: decimal, or hexadecimal behind `0x`.
fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is not a number; write for example 16 or 0x10"))
}

/// Returns a number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let bytes = number(text)?;
    if (1..=BYTES_MAX).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("{bytes} bytes: the length is 1 to {BYTES_MAX} bytes"))
    }
}

/// Splits `OFFSET[+LEN]`.
fn range(text: &str) -> Result<(u64, Option<u64>), String> {
    match text.split_once('+') {
        Some((offset, length)) => Ok((number(offset)?, Some(bytes(length)?))),
        None => Ok((number(text)?, None)),
    }
}

/// Splits `NAME[@OFFSET[+LEN]]`.
fn place(text: &str) -> Result<(&str, u64, Option<u64>), String> {
    match text.rsplit_once('@') {
        Some((name, rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            let (offset, bytes) = range(rest)?;
            Ok((name, offset, bytes))
        }
        _ => Ok((text, 0, None)),
    }
}

impl FromStr for NamedBytes {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedBytes, String> {
        if let Some(rest) = text.strip_prefix("memory:") {
            let (address, bytes) = range(rest)?;
            return Ok(NamedBytes::Address { address, bytes: bytes.unwrap_or(1) });
        }
        if let Some(rest) = text.strip_prefix("file:") {
            let (path, offset, bytes) = place(rest)?;
            if !path.starts_with('/') {
                return Err(format!("{path:?} is not an absolute path"));
            }
            return Ok(NamedBytes::File(FileBytes {
                path: path.to_owned(),
                offset,
                bytes: bytes.unwrap_or(1),
            }));
        }
        if let Some(rest) = text.strip_prefix("message:") {
            let (message, offset, bytes) = place(rest)?;
            return Ok(NamedBytes::Message(MessageBytes::Number {
                number: number(message)?,
                offset,
                bytes: bytes.unwrap_or(1),
            }));
        }
        if let Some(rest) = text.strip_prefix("payload:") {
            let (text, offset, bytes) = place(rest)?;
            return Ok(NamedBytes::Message(MessageBytes::Payload {
                text: unescaped(text)?,
                offset,
                bytes: bytes.unwrap_or(1),
            }));
        }
        let (name, offset, bytes) = place(text)?;
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == ':') {
            return Err(
                "write memory:ADDRESS[+LEN], the name of a variable, file:/PATH, message:NUMBER or payload:TEXT".to_owned()
            );
        }
        Ok(NamedBytes::Variable { name: name.to_owned(), offset, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let read = |text: &str| NamedBytes::from_str(text);
        assert_eq!(read("memory:0x10+8"), Ok(NamedBytes::Address { address: 16, bytes: 8 }));
        assert_eq!(read("memory:16"), Ok(NamedBytes::Address { address: 16, bytes: 1 }));
        let variable = |offset, bytes| Ok(NamedBytes::Variable { name: "x".to_owned(), offset, bytes });
        assert_eq!((read("x"), read("x@0x10+4")), (variable(0, None), variable(16, Some(4))));
        let file = NamedBytes::File(FileBytes { path: "/a@b".to_owned(), offset: 5, bytes: 1 });
        assert_eq!(read("file:/a@b@5"), Ok(file));
        assert_eq!(
            read("message:7@2+3"),
            Ok(NamedBytes::Message(MessageBytes::Number { number: 7, offset: 2, bytes: 3 }))
        );
        let payload = |text: &[u8], offset, bytes| {
            Ok(NamedBytes::Message(MessageBytes::Payload { text: text.to_vec(), offset, bytes }))
        };
        assert_eq!(read("payload:a b"), payload(b"a b", 0, 1));
        assert_eq!(read(r"payload:\x40\\13\n@1+2"), payload(b"@\\13\n", 1, 2));
        let long = format!("payload:{}", "a".repeat(TEXT_BYTES_MAX + 1));
        for wrong in ["payload:", r"payload:\", r"payload:\x+1", r"payload:\xé", &long] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for wrong in ["memory:", "memory:x", "memory:1+0", "memory:1+4097", "file:a", "message:x", "", "a b"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
