//! Reader of finding files: tar archives, each with one finding and all that its replay needs. The first member, the
//! manifest, lists the other members.

use std::fs::File;
use std::io::{self, BufReader, Read};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zstd::stream::read::Decoder;

use crate::error::Error;
use crate::header::{self, BLOCK};
use crate::limits::{EXPANSION_FREE_BYTES, EXPANSION_MAX, MANIFEST_BYTES_MAX, WINDOW_LOG_MAX};
use crate::manifest::{self, Manifest, Member};
use crate::write::Hashed;

/// A finding file after its manifest has been read.
pub struct Reader<A> {
    manifest: Manifest<A>,
    from: Decoder<'static, BufReader<File>>,
}

impl<A: Serialize + DeserializeOwned> Reader<A> {
    /// Opens a finding file and reads its manifest.
    ///
    /// # Errors
    /// Returns an error if the file is not a finding file of this version, or if it would unpack to too many bytes.
    pub fn new(file: File) -> Result<Reader<A>, Error> {
        let packed = file.metadata().map_err(Error::io("cannot read it"))?.len();
        let mut from = Decoder::new(file).map_err(Error::Damaged)?;
        from.window_log_max(WINDOW_LOG_MAX).map_err(Error::Damaged)?;
        let mut block = [0; BLOCK];
        from.read_exact(&mut block).map_err(|_| Error::Format)?;
        let bytes = header::length(&block, manifest::NAME).ok_or(Error::Format)?;
        if bytes > MANIFEST_BYTES_MAX {
            return Err(Error::Manifest(format!("longer than {MANIFEST_BYTES_MAX} bytes")));
        }
        let mut text = Vec::new();
        from.by_ref().take(bytes).read_to_end(&mut text).map_err(Error::Damaged)?;
        if text.len() as u64 != bytes {
            return Err(Error::Damaged(io::ErrorKind::UnexpectedEof.into()));
        }
        skip_padding(&mut from, bytes, manifest::NAME)?;
        let manifest: Manifest<A> = Manifest::parse(&text)?;
        let bytes = manifest.bytes();
        if bytes > packed.saturating_mul(EXPANSION_MAX).saturating_add(EXPANSION_FREE_BYTES) {
            return Err(Error::Expansion { bytes });
        }
        Ok(Reader { manifest, from })
    }
}

impl<A> Reader<A> {
    /// Returns the manifest. Only [`Reader::unpack`] checks it against the members.
    pub fn manifest(&self) -> &Manifest<A> {
        &self.manifest
    }

    /// Reads all members. Calls `take` with each member and a reader of its content; `take` may stop reading early. The
    /// contents may be damaged until this function has returned without an error.
    ///
    /// # Errors
    /// Returns an error if a member differs from the manifest, if the file is damaged, or if `take` fails.
    pub fn unpack(
        mut self,
        take: &mut dyn FnMut(&Member, &mut dyn Read) -> io::Result<()>,
    ) -> Result<Manifest<A>, Error> {
        let mut block = [0; BLOCK];
        for (place, member) in (1..).zip(&self.manifest.members) {
            self.from.read_exact(&mut block).map_err(Error::Damaged)?;
            if block != header::of(&member.name, place, member.bytes)? {
                return Err(Error::Member(member.name.clone()));
            }
            let mut content =
                Hashed { from: self.from.by_ref().take(member.bytes), hasher: blake3::Hasher::new() };
            take(member, &mut content).map_err(Error::io(&member.name))?;
            io::copy(&mut content, &mut io::sink()).map_err(Error::Damaged)?;
            if content.from.limit() > 0 {
                return Err(Error::Damaged(io::ErrorKind::UnexpectedEof.into()));
            }
            let found = content.hasher.finalize().to_hex().to_string();
            if found != member.blake3 {
                let (name, expected) = (member.name.clone(), member.blake3.clone());
                return Err(Error::Digest { name, expected, found });
            }
            skip_padding(&mut self.from, member.bytes, &member.name)?;
        }
        let mut end = [0; 2 * BLOCK];
        self.from.read_exact(&mut end).map_err(Error::Damaged)?;
        // This read reaches the end of the zstd frame, where the decoder checks the checksum.
        let more = self.from.read(&mut block).map_err(Error::Damaged)?;
        if more > 0 || end != [0; 2 * BLOCK] {
            return Err(Error::More);
        }
        Ok(self.manifest)
    }
}

fn skip_padding(from: &mut impl Read, bytes: u64, name: &str) -> Result<(), Error> {
    let mut zeros = [0; BLOCK];
    let zeros = &mut zeros[..header::padding(bytes)];
    from.read_exact(zeros).map_err(Error::Damaged)?;
    if zeros.iter().any(|byte| *byte != 0) { Err(Error::Member(name.to_owned())) } else { Ok(()) }
}
