//! Sections with debug information, decompressed.

use std::io::Read;
use std::sync::Arc;

use everett_elf::{Compression, Elf, Packed, Sections};
use gimli::{AbbreviationsCacheStrategy, Dwarf, EndianArcSlice, LittleEndian, SectionId};

/// Bytes that `gimli` reads.
pub(crate) type Bytes = EndianArcSlice<LittleEndian>;

/// Loads the debug information of a file. A section is empty if the file does not have it, or if it is damaged or longer
/// than `bytes_left`.
pub(super) fn load(file: &[u8], bytes_left: &mut u64) -> Option<Dwarf<Bytes>> {
    let sections = Elf::parse(file).and_then(|elf| elf.sections()).ok()?;
    let load = |id: SectionId| {
        let content = content(sections, id.name(), *bytes_left).unwrap_or_default();
        *bytes_left = bytes_left.saturating_sub(content.len() as u64);
        Ok::<_, gimli::Error>(Bytes::new(content, LittleEndian))
    };
    let mut dwarf = Dwarf::load(load).ok()?;
    // Many units can share a table of abbreviations, which is then read once.
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    Some(dwarf)
}

fn content(sections: Sections<'_>, name: &str, bytes_max: u64) -> Option<Arc<[u8]>> {
    let section = sections.named(name)?;
    let Packed { bytes: packed, compression } = section.packed().ok()?;
    let bytes = compression.map_or(packed.len() as u64, |(_, bytes)| bytes);
    if bytes > bytes_max {
        return None;
    }
    let reader: Box<dyn Read> = match compression {
        None => return Some(packed.into()),
        Some((Compression::Zlib, _)) => Box::new(flate2::read::ZlibDecoder::new(packed)),
        Some((Compression::Zstd, _)) => Box::new(zstd::stream::read::Decoder::with_buffer(packed).ok()?),
        Some((Compression::Other, _)) => return None,
    };
    let mut content = Vec::new();
    reader.take(bytes).read_to_end(&mut content).ok()?;
    Some(content.into())
}
