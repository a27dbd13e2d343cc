//! The manifest of a finding file, and the rules for the names of its members. A finding file is an archive, and its
//! members are the archived files.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::limits::{DEPTH_MAX, MEMBER_BYTES_MAX, MEMBERS_MAX, NAME_BYTES_MAX, TOTAL_BYTES_MAX};

/// Name of the member that is the manifest.
pub(crate) const NAME: &str = "manifest.json";
/// Name of the format, in every manifest.
const FORMAT: &str = "everett finding";
/// Version of the format. The reader refuses all other versions.
const VERSION: u64 = 1;
/// Number of hexadecimal digits of a BLAKE3 digest.
const DIGITS: usize = 64;

/// Content of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest<A> {
    format: String,
    version: u64,
    /// Description of the finding, in the caller's type.
    pub about: A,
    /// All members after the manifest, in the order in which the archive has them.
    pub members: Vec<Member>,
}

/// A member besides the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Path of the member, with slashes between its parts.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 digest of the content, in hexadecimal.
    pub blake3: String,
}

/// The fields that the manifests of all versions have.
#[derive(Deserialize)]
struct Version {
    format: String,
    version: u64,
}

impl<A: Serialize + DeserializeOwned> Manifest<A> {
    /// Creates a manifest for these members, and checks its bounds.
    pub(crate) fn new(about: A, members: Vec<Member>) -> Result<Manifest<A>, Error> {
        let manifest = Manifest { format: FORMAT.to_owned(), version: VERSION, about, members };
        manifest.check()?;
        Ok(manifest)
    }

    /// Parses a manifest, and checks its bounds.
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

    /// Returns the content of the member `manifest.json`.
    pub(crate) fn text(&self) -> Result<Vec<u8>, Error> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| Error::Manifest(error.to_string()))?;
        text.push(b'\n');
        Ok(text)
    }
}

impl<A> Manifest<A> {
    /// Returns the total length of the members in bytes, without the manifest.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        // The sum cannot overflow: `check` has bounded it by TOTAL_BYTES_MAX.
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

/// Checks that a member's name cannot lead out of the folder to which it is unpacked, on any system.
///
/// # Errors
/// Returns an error if the name is absolute, too long, or has a part that is empty, `.` or `..`. A backslash or a
/// control character is an error, too.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let fits = name.len() <= NAME_BYTES_MAX
        && name.split('/').count() <= DEPTH_MAX
        && name.split('/').all(is_part)
        && !name.chars().any(|c| c == '\\' || c.is_control());
    if fits { Ok(()) } else { Err(Error::Name(name.chars().take(NAME_BYTES_MAX).collect())) }
}
