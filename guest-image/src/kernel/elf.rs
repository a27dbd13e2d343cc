//! Parser for the parts of ELF-64 files that Everett needs (System V ABI, chapter 4).

/// Reason why a file is not a suitable ELF file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file has no ELF magic number, or is truncated.
    #[error("it is not an ELF file, or it is truncated")]
    NotElf,
    /// The file is for another kind of processor.
    #[error("it is for {0}")]
    WrongMachine(String),
    /// The file has no loadable segment.
    #[error("it has no segment to load")]
    NothingToLoad,
}

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const SECTION_HEADER_BYTES: usize = 64;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const EM_X86_64: u16 = 62;

/// True if the data starts with the ELF magic number.
#[must_use]
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Checks that the file is a little-endian ELF-64 for x86-64, that it has at least one loadable segment, and that all
/// loadable segments are complete.
///
/// # Errors
/// Returns an error that names the violated condition.
pub fn check_x86_64(bytes: &[u8]) -> Result<(), Error> {
    if !is_elf(bytes) || bytes.len() < HEADER_BYTES {
        return Err(Error::NotElf);
    }
    // In e_ident, class 2 means 64 bits and data 1 means little-endian.
    if bytes[4] != 2 || bytes[5] != 1 {
        return Err(Error::WrongMachine(String::from("a 32-bit or big-endian processor")));
    }
    let machine = u16::from_le_bytes([bytes[18], bytes[19]]);
    if machine != EM_X86_64 {
        let name = match machine {
            3 => String::from("i386"),
            183 => String::from("aarch64"),
            243 => String::from("RISC-V"),
            other => format!("machine {other}"),
        };
        return Err(Error::WrongMachine(name));
    }
    let mut loads = 0;
    for header in program_headers(bytes).ok_or(Error::NotElf)? {
        let (offset, length) =
            (word(header, 8).ok_or(Error::NotElf)?, word(header, 32).ok_or(Error::NotElf)?);
        if half(header, 0) == Some(PT_LOAD) {
            let end = offset.checked_add(length).ok_or(Error::NotElf)?;
            if end > bytes.len() as u64 {
                return Err(Error::NotElf);
            }
            loads += 1;
        }
    }
    if loads == 0 { Err(Error::NothingToLoad) } else { Ok(()) }
}

/// True if the program requests a dynamic linker, that is, has a PT_INTERP header.
#[must_use]
pub fn has_interpreter(bytes: &[u8]) -> bool {
    program_headers(bytes).is_some_and(|mut headers| headers.any(|header| half(header, 0) == Some(PT_INTERP)))
}

/// Returns the content of the section with this name.
#[must_use]
pub fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let table = usize::try_from(word(bytes, 40)?).ok()?;
    let count = usize::from(short(bytes, 60)?);
    let names_index = usize::from(short(bytes, 62)?);
    let header = |index: usize| {
        let start = table.checked_add(index.checked_mul(SECTION_HEADER_BYTES)?)?;
        bytes.get(start..start.checked_add(SECTION_HEADER_BYTES)?)
    };
    let content = |header: &[u8]| {
        let start = usize::try_from(word(header, 24)?).ok()?;
        bytes.get(start..start.checked_add(usize::try_from(word(header, 32)?).ok()?)?)
    };
    let names = content(header(names_index)?)?;
    (0..count).filter_map(header).find_map(|header| {
        let start = half(header, 0)? as usize;
        let found = names.get(start..)?.split(|&byte| byte == 0).next()?;
        if found == name.as_bytes() { content(header) } else { None }
    })
}

fn program_headers(bytes: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let start = usize::try_from(word(bytes, 32)?).ok()?;
    let count = usize::from(short(bytes, 56)?);
    let end = start.checked_add(count * PROGRAM_HEADER_BYTES)?;
    Some(bytes.get(start..end)?.chunks_exact(PROGRAM_HEADER_BYTES))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{EM_X86_64, Error, HEADER_BYTES, check_x86_64, has_interpreter, section};
    use proptest::prelude::*;

    fn this_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_real_program_is_read() {
        let program = this_program();
        assert_eq!(check_x86_64(&program), Ok(()));
        assert!(has_interpreter(&program));
        assert!(section(&program, ".text").is_some_and(|text| !text.is_empty()));
        assert!(section(&program, ".nothing").is_none());
    }

    #[test]
    fn another_machine_is_named() {
        let mut program = this_program();
        program[18] = 183;
        assert_eq!(check_x86_64(&program), Err(Error::WrongMachine(String::from("aarch64"))));
        program.truncate(1000);
        program[18] = 62;
        assert_eq!(check_x86_64(&program), Err(Error::NotElf));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for (byte, magic) in bytes.iter_mut().zip(b"\x7fELF\x02\x01") {
                *byte = *magic;
            }
            let _ = has_interpreter(&bytes);
            if check_x86_64(&bytes).is_ok() {
                proptest::prop_assert!(bytes.len() >= HEADER_BYTES && bytes[18..20] == EM_X86_64.to_le_bytes());
            }
            if let Some(text) = section(&bytes, ".text") {
                let (all, text) = (bytes.as_ptr_range(), text.as_ptr_range());
                proptest::prop_assert!(all.start <= text.start && text.end <= all.end);
            }
        }
    }
}
