//! Map from the contents of a page of code to the file of the image that contains the page.

use std::collections::BTreeMap;
use std::path::Path;

use everett_cpu::{CodeLocation, page_name};
use everett_elf::{Elf, Segment, SegmentKind};
use everett_guest_image::programs::Error;

use super::images::images;
use crate::run::launch::Launcher;

const PAGE: usize = 4096;

/// Pages of code and the files that contain them.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// Paths of the files, each with the number of its image.
    paths: Vec<(usize, String)>,
    /// For the hash of each page: index into `paths`, and address of the page in its ELF file.
    pages: BTreeMap<u64, (usize, u64)>,
}

impl Programs {
    /// Reads the programs of a world's images. If several files contain a page, the first file counts.
    ///
    /// # Errors
    /// Returns an error if an image cannot be read.
    pub(crate) fn of_launcher(launcher: &Launcher) -> Result<Programs, Error> {
        let mut programs = Programs::default();
        for (number, image) in images(launcher).enumerate() {
            image.programs(&mut |path, content| programs.add(number, path, content))?;
        }
        Ok(programs)
    }

    fn add(&mut self, image: usize, path: &Path, content: &[u8]) {
        let number = self.paths.len();
        self.paths.push((image, path.display().to_string()));
        for (n, at) in code_pages(content) {
            // The kernel maps whole pages and fills the part after the file's end with zeros.
            let bytes = content.get(n * PAGE..).unwrap_or_default();
            let mut page = [0; PAGE];
            let there = bytes.len().min(PAGE);
            page[..there].copy_from_slice(&bytes[..there]);
            self.pages.entry(page_name(&page)).or_insert((number, at));
        }
    }

    /// Returns the number of the file whose code contains the location `place`, and the address of the location's page in
    /// the ELF file.
    #[cfg(feature = "inside")]
    pub(crate) fn page(&self, place: CodeLocation) -> Option<(u32, u64)> {
        let &(file, at) = self.pages.get(&place.page())?;
        Some((u32::try_from(file).ok()?, at))
    }

    /// Returns the image and the path of a file, by its number.
    #[cfg(feature = "inside")]
    pub(crate) fn file(&self, number: u32) -> Option<(usize, &str)> {
        self.paths.get(number as usize).map(|(image, path)| (*image, path.as_str()))
    }

    /// Returns the file whose code contains the location `place`, and the location's address in the ELF file.
    #[must_use]
    pub(super) fn find(&self, place: CodeLocation) -> Option<ProgramPlace<'_>> {
        let &(file, at) = self.pages.get(&place.page())?;
        let (image, path) = self.paths.get(file)?;
        Some(ProgramPlace { image: *image, path, address: at.wrapping_add(u64::from(place.offset())) })
    }
}

/// Place in a program of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProgramPlace<'p> {
    /// Number of the image.
    pub(super) image: usize,
    /// Path of the program in the image.
    pub(super) path: &'p str,
    /// Address, as the program's file states it.
    pub(super) address: u64,
}

/// Returns the pages of an ELF64 file's executable segments, each with its address.
///
/// The total is at most twice the number of the file's pages. Valid programs stay below this bound, because their
/// segments do not overlap: a page is usually in one segment, and in two if one segment ends and the next begins in it.
/// The function leaves out the first segment that exceeds the bound, and all later segments.
fn code_pages(file: &[u8]) -> Vec<(usize, u64)> {
    let (mut pages, mut left) = (Vec::new(), 2 * file.len().div_ceil(PAGE));
    for Segment { offset, address, file_bytes, .. } in segments(file) {
        // `segments` returns only segments whose contents lie within the file, so their offsets fit in a `usize`.
        let (first, last) = (offset as usize / PAGE, ((offset + file_bytes) as usize).div_ceil(PAGE));
        let Some(rest) = left.checked_sub(last.saturating_sub(first)) else { break };
        left = rest;
        let address_of = |n: usize| address.wrapping_sub(offset).wrapping_add((n * PAGE) as u64);
        pages.extend((first..last).map(|n| (n, address_of(n))));
    }
    pages
}

/// Returns the executable segments of an ELF64 file. Segments beyond the file's end are left out.
fn segments(file: &[u8]) -> Vec<Segment> {
    let mut segments = Elf::parse(file).and_then(|elf| elf.segments()).unwrap_or_default();
    segments.retain(|segment| {
        segment.kind == SegmentKind::Load && segment.is_executable && segment.content(file).is_ok()
    });
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM_HEADER_BYTES: usize = 56;

    /// Returns an ELF file with one executable segment: 0x1100 bytes from file offset 0x1080, at address 0x40_1080.
    fn file() -> Vec<u8> {
        let mut file = vec![0u8; 0x2180];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x20, &0x40u64.to_le_bytes());
        put(0x36, &56u16.to_le_bytes());
        put(0x38, &1u16.to_le_bytes());
        put(0x40, &1u32.to_le_bytes());
        put(0x44, &5u32.to_le_bytes());
        put(0x48, &0x1080u64.to_le_bytes());
        put(0x50, &0x40_1080u64.to_le_bytes());
        put(0x60, &0x1100u64.to_le_bytes());
        put(0x1200, b"first page");
        put(0x2100, b"second page");
        file
    }

    #[test]
    fn pages_of_executable_segments_are_found() {
        let mut programs = Programs::default();
        let file = file();
        programs.add(0, Path::new("/bin/a"), &file);
        programs.add(0, Path::new("/bin/same"), &file);
        let mut second = file[0x2000..].to_vec();
        second.resize(PAGE, 0);
        let at =
            |bytes: &[u8]| programs.pages.get(&page_name(bytes)).map(|&(n, at)| (&*programs.paths[n].1, at));
        assert_eq!(at(&file[0x1000..0x2000]), Some(("/bin/a", 0x40_1000)));
        assert_eq!(at(&second), Some(("/bin/a", 0x40_2000)));
        assert_eq!(at(&file[..0x1000]), None);
    }

    #[test]
    fn pages_are_bounded_by_the_file() {
        let mut file = file();
        let header = file[0x40..0x40 + PROGRAM_HEADER_BYTES].to_vec();
        assert_eq!(code_pages(&file), [(1, 0x40_1000), (2, 0x40_2000)]);
        // All program headers describe the same segment. They fill the file from 0x40 to 0x1000, before the segment.
        let headers = (0x1000 - 0x40) / PROGRAM_HEADER_BYTES;
        for n in 0..headers {
            file[0x40 + n * PROGRAM_HEADER_BYTES..][..PROGRAM_HEADER_BYTES].copy_from_slice(&header);
        }
        file[0x38..0x3a].copy_from_slice(&u16::try_from(headers).unwrap().to_le_bytes());
        assert_eq!(segments(&file).len(), headers);
        assert_eq!(code_pages(&file).len(), 6, "the file has three pages");
    }

    #[test]
    fn invalid_elf_files_are_no_programs() {
        let mut programs = Programs::default();
        for (at, byte) in [(4, 1), (0x27, 0x7f), (0x60 + 7, 0xff), (0x48 + 7, 0xff), (0x39, 0xff)] {
            let mut bad = file();
            bad[at] = byte;
            programs.add(0, Path::new("/bin/bad"), &bad);
        }
        programs.add(0, Path::new("/bin/short"), b"\x7fELF");
        assert!(programs.pages.is_empty());
    }
}
