//! Writer of finding files. A finding file is a compressed tar archive, whose entries are called members.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::header::{self, BLOCK};
use crate::manifest::{self, Manifest, Member};

/// Level of compression. Most of an image is compressed already. Levels above 3 need compressors that
/// `.cargo/config.toml` leaves out; zstd would then silently use the compressor of level 3.
const LEVEL: i32 = 3;

/// A member that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSource {
    /// Name of the member.
    pub name: String,
    /// Content of the member.
    pub content: Content,
}

/// Content of a member to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The content is in memory.
    Bytes(Vec<u8>),
    /// The content is that of a file, whose length and BLAKE3 are known.
    File {
        /// Path of the file on the host.
        path: PathBuf,
        /// Length of the file in bytes.
        bytes: u64,
        /// BLAKE3 of the file, in hexadecimal.
        blake3: String,
    },
}

impl MemberSource {
    fn member(&self) -> Member {
        let name = self.name.clone();
        match &self.content {
            Content::Bytes(content) => {
                let blake3 = blake3::hash(content).to_hex().to_string();
                Member { name, bytes: content.len() as u64, blake3 }
            }
            Content::File { bytes, blake3, .. } => Member { name, bytes: *bytes, blake3: blake3.clone() },
        }
    }
}

/// Writes a finding file to `out`. After each member, calls `progress` with the number of bytes written so far and the
/// total.
///
/// # Errors
/// Returns an error if a name or length exceeds its bound, a file cannot be read or has changed, or `out` cannot be
/// written.
pub fn write<A: Serialize + DeserializeOwned>(
    about: A,
    sources: &[MemberSource],
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Manifest<A>, Error> {
    let manifest = Manifest::new(about, sources.iter().map(MemberSource::member).collect())?;
    let text = manifest.text()?;
    let failed = || Error::io("cannot write it");
    let mut out = zstd::stream::write::Encoder::new(out, LEVEL).map_err(failed())?;
    // The checksum finds accidental damage of the manifest, which has no digest.
    out.include_checksum(true).map_err(failed())?;
    let (mut done, total) = (0, manifest.bytes());
    out.write_all(&header::of(manifest::NAME, 0, text.len() as u64)?).map_err(failed())?;
    out.write_all(&text).map_err(failed())?;
    pad(&mut out, text.len() as u64).map_err(failed())?;
    for ((place, member), source) in (1..).zip(&manifest.members).zip(sources) {
        out.write_all(&header::of(&member.name, place, member.bytes)?).map_err(failed())?;
        match &source.content {
            Content::Bytes(content) => out.write_all(content).map_err(failed())?,
            Content::File { path, .. } => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(Error::io(&name))?;
                let mut hashed = Hashed { from: file.take(member.bytes), hasher: blake3::Hasher::new() };
                let copied = io::copy(&mut hashed, &mut out).map_err(Error::io(&name))?;
                if copied != member.bytes || hashed.hasher.finalize().to_hex().as_str() != member.blake3 {
                    return Err(Error::Changed(name));
                }
            }
        }
        pad(&mut out, member.bytes).map_err(failed())?;
        done += member.bytes;
        progress(done, total);
    }
    out.write_all(&[0; 2 * BLOCK]).map_err(failed())?;
    out.finish().and_then(Write::flush).map_err(failed())?;
    Ok(manifest)
}

fn pad(out: &mut impl Write, bytes: u64) -> io::Result<()> {
    out.write_all(&[0; BLOCK][..header::padding(bytes)])
}

/// A reader that hashes all bytes that are read through it.
pub(crate) struct Hashed<R> {
    pub(crate) from: R,
    pub(crate) hasher: blake3::Hasher,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}
