//! Parser of PAX records. It splits records by their lengths, because names and values may contain newlines.
//!
//! The `tar` crate splits records at newlines, but file capabilities (`security.capability`) often contain this byte.
//! Therefore [`Records::take`] parses the records before the crate sees them, and replaces the newlines inside them.
//! The crate then reads the result.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Byte that the `tar` crate sees in place of a newline inside a record.
const STAND_IN: u8 = b'?';

/// Keyword of an entry's path.
pub(super) const PATH: &[u8] = b"path";
/// Keyword of a link's target.
pub(super) const LINK_PATH: &[u8] = b"linkpath";

/// The PAX records of one entry, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    all: Vec<(Vec<u8>, Vec<u8>)>,
    /// True if some bytes are not valid records.
    pub(super) damaged: bool,
}

impl Records {
    /// Parses the content of an extended header, and replaces the newlines inside its records. A record is `LENGTH
    /// KEYWORD=VALUE\n`, and LENGTH covers the whole record (pax(1)).
    pub(super) fn take(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some((start, length)) = extent(rest) else {
                self.damaged = true;
                return;
            };
            let (record, behind) = rest.split_at_mut(length);
            let record = &mut record[start..length - 1];
            let Some(equals) = record.iter().position(|&byte| byte == b'=') else {
                self.damaged = true;
                return;
            };
            self.all.push((record[..equals].to_vec(), record[equals + 1..].to_vec()));
            stand_in(record);
            rest = behind;
        }
    }

    /// Returns the keyword and the value of each record, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.all.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// Returns the original of `seen`, a value of the `tar` crate in which newlines were replaced. Returns `seen`
    /// itself if no record with the keyword `key` has this value.
    pub(super) fn original(&self, key: &[u8], seen: &[u8]) -> Vec<u8> {
        let is_seen = |value: &[u8]| {
            let mut value = value.to_vec();
            stand_in(&mut value);
            value == seen
        };
        let found = self.iter().find(|&(known, value)| known == key && is_seen(value));
        found.map_or(seen, |(_, value)| value).to_vec()
    }
}

/// Decodes an extended attribute from libarchive's encoding (libarchive-formats(5)). `None` if it is damaged.
pub(super) fn libarchive(name: &[u8], value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut decoded = Vec::new();
    let mut rest = name;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        decoded.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    Some((decoded, LENIENT.decode(value).ok()?))
}

/// libarchive leaves out the padding at the end of base64.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn stand_in(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte == b'\n') {
        *byte = STAND_IN;
    }
}

/// Returns the offset at which the first record's keyword starts, and the length of the record.
fn extent(bytes: &[u8]) -> Option<(usize, usize)> {
    let space = bytes.iter().position(|&byte| byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    (length > space + 1 && bytes.get(length - 1) == Some(&b'\n')).then_some((space + 1, length))
}

#[cfg(test)]
mod tests {
    use super::{Records, libarchive};

    #[test]
    fn records_are_split_by_their_lengths() {
        let mut bytes = b"12 path=a\nb\n17 \xffk=10 path=c\n\n6 x=\n\n".to_vec();
        let mut records = Records::default();
        records.take(&mut bytes);
        assert!(!records.damaged);
        let all: Vec<_> = records.iter().collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"path", b"a\nb"), (b"\xffk", b"10 path=c\n"), (b"x", b"\n")];
        assert_eq!(all, expected);
        assert_eq!(bytes, b"12 path=a?b\n17 \xffk=10 path=c?\n6 x=?\n");
        assert_eq!(records.original(b"path", b"a?b"), b"a\nb");
        assert_eq!(records.original(b"path", b"other"), b"other");
    }

    #[test]
    fn attributes_of_libarchive_are_decoded() {
        let some = |name: &[u8], value: &[u8]| Some((name.to_vec(), value.to_vec()));
        assert_eq!(libarchive(b"user.a%3db%25", b"AQID"), some(b"user.a=b%", &[1, 2, 3]));
        assert_eq!(libarchive(b"user.x", b"AQI"), some(b"user.x", &[1, 2]));
        assert_eq!(libarchive(b"user.x", b"AQI="), some(b"user.x", &[1, 2]));
        for (name, value) in [(&b"user.%4"[..], &b"AQID"[..]), (b"user.%zz", b"AQID"), (b"user.x", b"*")] {
            assert_eq!(libarchive(name, value), None);
        }
    }

    #[test]
    fn malformed_records_are_reported_as_damaged() {
        let damages: [&[u8]; 9] = [
            b"x",
            b" ",
            b"5 a=b",
            b"6 a=bc",
            b"5 ab\n",
            b"2 \n",
            b"0 a=\n",
            b"18446744073709551615 a=\n",
            b"6 a=b\n\0",
        ];
        for damage in damages {
            let mut records = Records::default();
            records.take(&mut damage.to_vec());
            assert!(records.damaged, "{damage:?}");
        }
    }
}
