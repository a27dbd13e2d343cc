//! JSON forms of bytes: output lines that may not be UTF-8, and contents of files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Line of output without its newline. In JSON, a UTF-8 line is a string. Any other line is `{"base64": "..."}`, which
/// preserves every byte that the guest printed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LineText(Vec<u8>);

impl LineText {
    /// Returns the bytes of the line, as the program printed them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the line as text for display. Bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<Vec<u8>> for LineText {
    fn from(bytes: Vec<u8>) -> Self {
        LineText(bytes)
    }
}

impl From<&str> for LineText {
    fn from(text: &str) -> Self {
        LineText(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for LineText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.to_str_lossy())
    }
}

impl fmt::Display for LineText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_str_lossy())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    base64: String,
}

impl Serialize for LineText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Encoded { base64: STANDARD.encode(&self.0) }.serialize(serializer),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextForm {
    Text(String),
    Encoded(Encoded),
}

impl<'de> Deserialize<'de> for LineText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match TextForm::deserialize(deserializer)? {
            TextForm::Text(text) => Ok(LineText(text.into_bytes())),
            TextForm::Encoded(Encoded { base64 }) => {
                STANDARD.decode(base64).map(LineText).map_err(serde::de::Error::custom)
            }
        }
    }
}

/// Binary content. In JSON it is a base64 string.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, LineText};

    #[test]
    fn text_stays_text_and_other_bytes_survive() {
        let text = LineText::from("héllo\t\u{1}");
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"héllo\\t\\u0001\"");
        let raw = LineText::from(vec![0xff, 0x00, b'a']);
        let json = serde_json::to_string(&raw).unwrap();
        assert_eq!(json, r#"{"base64":"/wBh"}"#);
        assert_eq!(serde_json::from_str::<LineText>(&json).unwrap(), raw);
        assert_eq!(raw.to_str_lossy(), "\u{fffd}\0a");
    }

    #[test]
    fn broken_base64_is_an_error() {
        assert!(serde_json::from_str::<LineText>(r#"{"base64":"*"}"#).is_err());
        assert!(serde_json::from_str::<LineText>("7").is_err());
        assert!(serde_json::from_str::<Bytes>("\"*\"").is_err());
    }
}
