//! Sections with debug information, decompressed.

use std::io::Read as _;
use std::sync::Arc;

use everett_elf::{Compression, Elf, Packed, Sections};
use gimli::{EndianArcSlice, LittleEndian, SectionId};

/// Maximum length of all sections with debug information of a file, decompressed, in bytes.
pub const DEBUG_BYTES_MAX: u64 = 4 << 30;

/// Bytes that `gimli` reads.
pub(super) type Bytes = EndianArcSlice<LittleEndian>;

/// Loads the sections of a file.
pub(super) struct Loader<'f> {
    sections: Option<Sections<'f>>,
    /// Number of bytes that may still be loaded.
    left: u64,
}

impl<'f> Loader<'f> {
    pub(super) fn new(file: &'f [u8]) -> Loader<'f> {
        let sections = Elf::parse(file).and_then(|elf| elf.sections()).ok();
        Loader { sections, left: DEBUG_BYTES_MAX }
    }

    /// Returns a section. Empty if the file has no such section, or if the section is damaged or too long.
    pub(super) fn load(&mut self, id: SectionId) -> Bytes {
        let content = self.content(id.name()).unwrap_or_default();
        self.left = self.left.saturating_sub(content.len() as u64);
        Bytes::new(content, LittleEndian)
    }

    fn content(&self, name: &str) -> Option<Arc<[u8]>> {
        let section = self.sections?.named(name)?;
        let Packed { bytes: packed, compression } = section.packed().ok()?;
        let bytes = compression.map_or(packed.len() as u64, |(_, bytes)| bytes);
        if bytes > self.left {
            return None;
        }
        let unpacked = match compression {
            None => return Some(packed.into()),
            Some((Compression::Zlib, bytes)) => {
                let mut content = Vec::new();
                flate2::read::ZlibDecoder::new(packed).take(bytes).read_to_end(&mut content).ok()?;
                content
            }
            Some((Compression::Zstd, bytes)) => {
                let mut content = Vec::new();
                let reader = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
                reader.take(bytes).read_to_end(&mut content).ok()?;
                content
            }
            Some((Compression::Other(_), _)) => return None,
        };
        Some(unpacked.into())
    }
}
