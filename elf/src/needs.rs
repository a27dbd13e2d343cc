//! Lists what a program needs: its interpreter, libraries, and versions of the libraries' symbols.

use object::LittleEndian as LE;
use object::elf::{self, Dyn64, Vernaux, Verneed};
use object::pod::slice_from_bytes;
use object::read::ReadRef as _;

use crate::{Elf, Error, Part, Segment, SegmentKind, text};

/// Maximum number of entries of the dynamic section that are read.
pub const DYNAMIC_MAX: usize = 4_096;
/// Maximum length of the name of a library, a version or an interpreter, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum number of symbol versions that are read.
pub const VERSIONS_MAX: usize = 4_096;

/// Interpreter and libraries that a program needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs<'a> {
    /// Path of the program's dynamic linker; `None` for a static program.
    pub interpreter: Option<&'a str>,
    /// File names of the needed libraries, in the order in which the program lists them.
    pub libraries: Vec<&'a str>,
    /// Needed versions of the libraries' symbols, such as `GLIBC_2.34`, in the order in which the program lists them.
    pub versions: Vec<&'a str>,
}

impl<'a> Elf<'a> {
    /// Returns the needs of a program or a library. Reads neither sections nor their headers, which a stripped file may
    /// lack.
    ///
    /// # Errors
    /// Returns an error if a header, a name or a table is damaged or reaches beyond the end of the file.
    pub fn needs(&self) -> Result<Needs<'a>, Error> {
        let segments = self.segments()?;
        let find = |kind| segments.iter().find(|segment| segment.kind == kind);
        let mut needs = Needs::default();
        if let Some(segment) = find(SegmentKind::Interpreter) {
            needs.interpreter = Some(name(segment.content(self.file)?, 0)?);
        }
        let Some(dynamic) = find(SegmentKind::Dynamic) else { return Ok(needs) };
        let dynamic = dynamic.content(self.file)?;
        let count = (dynamic.len() / size_of::<Dyn64<LE>>()).min(DYNAMIC_MAX);
        let entries: &[Dyn64<LE>] = slice_from_bytes(dynamic, count).map_or(&[], |(entries, _)| entries);
        let (mut names, mut strings, mut versions) = (Vec::new(), None, None);
        for entry in entries {
            let value = entry.d_val.get(LE);
            match entry.d_tag.get(LE) {
                elf::DT_NULL => break,
                elf::DT_NEEDED => names.push(value),
                elf::DT_STRTAB => strings = Some(value),
                elf::DT_VERNEED => versions = Some(value),
                _ => {}
            }
        }
        if names.is_empty() {
            return Ok(needs);
        }
        let strings = self.loaded(&segments, strings.ok_or(Error::NoStrings)?)?;
        for at in names {
            needs.libraries.push(name(strings, usize::try_from(at).map_err(|_| Error::Name)?)?);
        }
        if let Some(address) = versions {
            needs.versions = versions_at(self.loaded(&segments, address)?, strings)?;
        }
        Ok(needs)
    }

    /// Returns the rest of the file, from the byte that a segment loads to `address`.
    fn loaded(&self, segments: &[Segment], address: u64) -> Result<&'a [u8], Error> {
        let offset = segments.iter().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            let is_here = segment.kind == SegmentKind::Load && within < segment.file_bytes;
            is_here.then_some(segment.offset.checked_add(within))
        });
        let offset = offset.flatten().and_then(|offset| usize::try_from(offset).ok());
        offset.and_then(|offset| self.file.get(offset..)).ok_or(Error::Address(address))
    }
}

/// Reads the needed versions: a list of libraries, each with a list of versions. Each entry of a list states the
/// distance in bytes to the next entry.
fn versions_at<'a>(table: &'a [u8], strings: &'a [u8]) -> Result<Vec<&'a str>, Error> {
    let truncated = |()| Error::Truncated(Part::Versions);
    let mut found = Vec::new();
    let mut library_at = 0;
    loop {
        let library: &Verneed<LE> = table.read_at(library_at).map_err(truncated)?;
        // Each distance has 32 bits and there are at most `VERSIONS_MAX`, so the sums are far from 2⁶⁴.
        let mut version_at = library_at + u64::from(library.vn_aux.get(LE));
        loop {
            let version: &Vernaux<LE> = table.read_at(version_at).map_err(truncated)?;
            found.push(name(strings, version.vna_name.get(LE) as usize)?);
            let next = u64::from(version.vna_next.get(LE));
            if next == 0 || found.len() >= VERSIONS_MAX {
                break;
            }
            version_at += next;
        }
        let next = u64::from(library.vn_next.get(LE));
        if next == 0 || found.len() >= VERSIONS_MAX {
            return Ok(found);
        }
        library_at += next;
    }
}

fn name(strings: &[u8], at: usize) -> Result<&str, Error> {
    text(strings, at, NAME_BYTES_MAX).and_then(|name| str::from_utf8(name).ok()).ok_or(Error::Name)
}
