//! The manifest, and the names of members.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::limits::{DEPTH_MAX, MEMBER_BYTES_MAX, MEMBERS_MAX, NAME_BYTES_MAX, TOTAL_BYTES_MAX};

/// Name of the member with the manifest.
pub(crate) const NAME: &str = "manifest.json";
/// Name of the format.
const FORMAT: &str = "everett finding";
/// Version of the format. Other versions are refused.
const VERSION: u64 = 1;
/// Number of hexadecimal digits of a BLAKE3.
const DIGITS: usize = 64;

/// Contents of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest<A> {
    format: String,
    version: u64,
    /// Description of the finding.
    pub about: A,
    /// The other members, in their order.
    pub members: Vec<Member>,
}

/// A member besides the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Path, with slashes between its parts.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 of the content, in hexadecimal digits.
    pub blake3: String,
}

/// The fields that manifests of all versions have.
#[derive(Deserialize)]
struct Version {
    format: String,
    version: u64,
}

impl<A: Serialize + DeserializeOwned> Manifest<A> {
    /// Creates the manifest of these members.
    pub(crate) fn new(about: A, members: Vec<Member>) -> Result<Manifest<A>, Error> {
        let manifest = Manifest { format: FORMAT.to_owned(), version: VERSION, about, members };
        manifest.check()?;
        Ok(manifest)
    }

    /// Reads a manifest.
    pub(crate) fn parse(text: &[u8]) -> Result<Manifest<A>, Error> {
        let invalid = |error: serde_json::Error| Error::Manifest(error.to_string());
        let Version { format, version } = serde_json::from_slice(text).map_err(|_| Error::Format)?;
        if format != FORMAT {
            return Err(Error::Format);
        }
        if version != VERSION {
            return Err(Error::Version { found: version, known: VERSION });
        }
        let manifest: Manifest<A> = serde_json::from_slice(text).map_err(invalid)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Returns the text of the member.
    pub(crate) fn text(&self) -> Result<Vec<u8>, Error> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| Error::Manifest(error.to_string()))?;
        text.push(b'\n');
        Ok(text)
    }
}

impl<A> Manifest<A> {
    /// Returns the length of all members, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        // Checked: the sum is at most TOTAL_BYTES_MAX.
        self.members.iter().map(|member| member.bytes).sum()
    }

    fn check(&self) -> Result<(), Error> {
        if self.members.len() > MEMBERS_MAX {
            return Err(Error::Members);
        }
        let (mut names, mut total) = (BTreeSet::from([NAME]), 0_u64);
        for Member { name, bytes, blake3 } in &self.members {
            check_name(name)?;
            if !names.insert(name) {
                return Err(Error::Manifest(format!("{name} is there twice")));
            }
            total = total.saturating_add(*bytes);
            if *bytes > MEMBER_BYTES_MAX || total > TOTAL_BYTES_MAX {
                return Err(Error::Total { name: name.clone() });
            }
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            if blake3.len() != DIGITS || !blake3.bytes().all(is_digit) {
                return Err(Error::Manifest(format!(
                    "the BLAKE3 of {name} is not {DIGITS} hexadecimal digits"
                )));
            }
        }
        Ok(())
    }
}

/// Checks that a name stays below the folder to which it is unpacked, on every system.
///
/// # Errors
/// Returns an error if it is absolute, has an empty part, `.` or `..`, a backslash or a control character, or is too
/// long.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let fits = name.len() <= NAME_BYTES_MAX
        && name.split('/').count() <= DEPTH_MAX
        && name.split('/').all(is_part)
        && !name.chars().any(|c| c == '\\' || c.is_control());
    if fits { Ok(()) } else { Err(Error::Name(name.chars().take(NAME_BYTES_MAX).collect())) }
}
