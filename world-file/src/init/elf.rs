//! Parser of the headers of ELF programs (System V ABI): whether a machine can run the program, and which libraries it
//! loads.

/// Maximum number of program headers that Everett reads.
const HEADERS_MAX: usize = 256;
/// Maximum number of entries of the dynamic section that Everett reads.
const DYNAMIC_MAX: usize = 4_096;
/// Maximum length of a library's or dynamic linker's name, in bytes.
const NAME_BYTES_MAX: usize = 255;

const EM_X86_64: u16 = 62;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const HEADER_BYTES: usize = 56;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DYNAMIC_BYTES: usize = 16;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_VERNEED: u64 = 0x6fff_fffe;
/// Maximum number of symbol versions that Everett reads.
const VERSIONS_MAX: usize = 4_096;

/// Reason why machines cannot run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The file is not an ELF file.
    #[error("not an ELF program; name a program, a compose file, or an archive of an image")]
    NotElf,
    /// The program has another class, byte order or processor than the machines.
    #[error("a program for another processor; machines are x86-64, 64 bits")]
    Processor,
    /// The file is a library or an object file.
    #[error("an ELF file that is no program")]
    NotProgram,
    /// The file ends early, or a header points beyond its end.
    #[error("the ELF headers are damaged")]
    Damaged,
}

/// Dynamic linker and libraries that a program needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    /// Path of the dynamic linker. `None` for a static program.
    pub(super) interpreter: Option<String>,
    /// File names of the libraries that the program loads, in the order of the file.
    pub(super) libraries: Vec<String>,
    /// Versions of library symbols that the program needs, such as `GLIBC_2.34`, in the order of the file.
    pub(super) versions: Vec<String>,
}

/// Returns true if the file starts with the magic number of ELF.
pub(super) fn is_elf(file: &[u8]) -> bool {
    file.starts_with(b"\x7fELF")
}

/// Parses the headers of a program.
pub(super) fn read(file: &[u8]) -> Result<Program, ElfError> {
    if !is_elf(file) {
        return Err(ElfError::NotElf);
    }
    if file.get(4..6) != Some(&[2, 1]) || u16_at(file, 18) != Some(EM_X86_64) {
        return Err(ElfError::Processor);
    }
    let kind = u16_at(file, 16).ok_or(ElfError::Damaged)?;
    let entry = u64_at(file, 24).ok_or(ElfError::Damaged)?;
    if !matches!(kind, ET_EXEC | ET_DYN) {
        return Err(ElfError::NotProgram);
    }
    let program = needs(file).ok_or(ElfError::Damaged)?;
    // A library has no entry point. Libraries that can be run are the exception, and are accepted.
    if entry == 0 { Err(ElfError::NotProgram) } else { Ok(program) }
}

/// A program header.
struct Header {
    kind: u32,
    offset: usize,
    address: u64,
    bytes: usize,
}

fn needs(file: &[u8]) -> Option<Program> {
    let start = usize::try_from(u64_at(file, 32)?).ok()?;
    let (size, count) = (usize::from(u16_at(file, 54)?), usize::from(u16_at(file, 56)?));
    if count > HEADERS_MAX || (count > 0 && size < HEADER_BYTES) {
        return None;
    }
    let mut headers = Vec::new();
    for index in 0..count {
        let at = start.checked_add(index * size)?;
        headers.push(Header {
            kind: u32_at(file, at)?,
            offset: usize::try_from(u64_at(file, at.checked_add(8)?)?).ok()?,
            address: u64_at(file, at.checked_add(16)?)?,
            bytes: usize::try_from(u64_at(file, at.checked_add(32)?)?).ok()?,
        });
    }
    let find = |kind| headers.iter().find(|header| header.kind == kind);
    let interpreter = match find(PT_INTERP) {
        Some(header) => Some(name_at(file, header.offset)?),
        None => None,
    };
    let mut program = Program { interpreter, ..Program::default() };
    let Some(dynamic) = find(PT_DYNAMIC) else { return Some(program) };
    let (mut names, mut strings, mut versions) = (Vec::new(), None, None);
    for index in 0..(dynamic.bytes / DYNAMIC_BYTES).min(DYNAMIC_MAX) {
        let at = dynamic.offset.checked_add(index * DYNAMIC_BYTES)?;
        let (tag, value) = (u64_at(file, at)?, u64_at(file, at.checked_add(8)?)?);
        match tag {
            DT_NULL => break,
            DT_NEEDED => names.push(usize::try_from(value).ok()?),
            DT_STRTAB => strings = Some(value),
            DT_VERNEED => versions = Some(value),
            _ => {}
        }
    }
    if names.is_empty() {
        return Some(program);
    }
    let place = |address: u64| {
        let segment = headers.iter().find(|header| {
            header.kind == PT_LOAD
                && address.checked_sub(header.address).is_some_and(|within| within < header.bytes as u64)
        })?;
        let within = usize::try_from(address - segment.address).ok()?;
        segment.offset.checked_add(within)
    };
    let strings = place(strings?)?;
    for name in names {
        program.libraries.push(name_at(file, strings.checked_add(name)?)?);
    }
    if let Some(address) = versions {
        program.versions = versions_at(file, place(address)?, strings)?;
    }
    Some(program)
}

/// Reads the section of needed versions: a list of libraries, each with a list of versions.
fn versions_at(file: &[u8], start: usize, strings: usize) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut library = start;
    let mut read = 0;
    loop {
        let mut version =
            library.checked_add(usize::try_from(u32_at(file, library.checked_add(8)?)?).ok()?)?;
        loop {
            let name = usize::try_from(u32_at(file, version.checked_add(8)?)?).ok()?;
            found.push(name_at(file, strings.checked_add(name)?)?);
            read += 1;
            let next = usize::try_from(u32_at(file, version.checked_add(12)?)?).ok()?;
            if next == 0 || read >= VERSIONS_MAX {
                break;
            }
            version = version.checked_add(next)?;
        }
        let next = usize::try_from(u32_at(file, library.checked_add(12)?)?).ok()?;
        if next == 0 || read >= VERSIONS_MAX {
            return Some(found);
        }
        library = library.checked_add(next)?;
    }
}

/// Returns the text that starts at `at` and ends before the next zero byte.
fn name_at(file: &[u8], at: usize) -> Option<String> {
    let rest = file.get(at..)?;
    let end = rest.iter().take(NAME_BYTES_MAX + 1).position(|byte| *byte == 0)?;
    String::from_utf8(rest.get(..end)?.to_vec()).ok()
}

fn bytes_at<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    bytes_at(file, at).map(u16::from_le_bytes)
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    bytes_at(file, at).map(u32::from_le_bytes)
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    bytes_at(file, at).map(u64::from_le_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::{ElfError, Program, VERSIONS_MAX, read};

    /// Makes a program with this dynamic linker and these libraries.
    pub(in super::super) fn program(interpreter: Option<&str>, libraries: &[&str]) -> Vec<u8> {
        program_of_versions(interpreter, libraries, &[])
    }

    /// Makes a program that also needs versions of symbols, listed by library. Its single segment has a header, three
    /// program headers, the dynamic section, strings and versions.
    pub(in super::super) fn program_of_versions(
        interpreter: Option<&str>,
        libraries: &[&str],
        versions: &[(&str, &[&str])],
    ) -> Vec<u8> {
        const BASE: u64 = 0x40_0000;
        const DYNAMIC: usize = 64 + 3 * 56;
        /// Length in bytes of an entry for a library, and of an entry for a version.
        const ENTRY: u32 = 16;
        let strings_at = DYNAMIC + (libraries.len() + 2 + usize::from(!versions.is_empty())) * 16;
        let mut strings = vec![0];
        let mut add = |text: &str| {
            let at = strings.len();
            strings.extend(text.bytes().chain([0]));
            at
        };
        let interpreter = interpreter.map(|text| (add(text) + strings_at) as u64);
        let mut dynamic: Vec<[u64; 2]> = libraries.iter().map(|library| [1, add(library) as u64]).collect();
        dynamic.push([5, BASE + strings_at as u64]);
        let mut table: Vec<u8> = Vec::new();
        for (number, (library, names)) in versions.iter().enumerate() {
            let next = if number + 1 == versions.len() { 0 } else { ENTRY * (1 + names.len() as u32) };
            table.extend([1, names.len() as u16].iter().flat_map(|half| half.to_le_bytes()));
            table.extend([add(library) as u32, ENTRY, next].iter().flat_map(|word| word.to_le_bytes()));
            for (number, name) in names.iter().enumerate() {
                let next = if number + 1 == names.len() { 0 } else { ENTRY };
                table.extend([0, 0, add(name) as u32, next].iter().flat_map(|word| word.to_le_bytes()));
            }
        }
        if !versions.is_empty() {
            dynamic.push([0x6fff_fffe, BASE + (strings_at + strings.len()) as u64]);
        }
        dynamic.push([0, 0]);
        let total = (strings_at + strings.len() + table.len()) as u64;

        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend([2_u16, 62].iter().flat_map(|half| half.to_le_bytes()));
        file.extend(1_u32.to_le_bytes());
        file.extend([BASE, 64, 0].iter().flat_map(|long| long.to_le_bytes()));
        file.extend(0_u32.to_le_bytes());
        file.extend([64_u16, 56, 3, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
        let dynamic_bytes = (dynamic.len() * 16) as u64;
        let kind = if interpreter.is_some() { 3 } else { 0 };
        for (kind, at, bytes) in
            [(1_u32, 0, total), (kind, interpreter.unwrap_or(0), 0), (2, DYNAMIC as u64, dynamic_bytes)]
        {
            file.extend([kind, 0].iter().flat_map(|word| word.to_le_bytes()));
            file.extend([at, BASE + at, 0, bytes, bytes, 0].iter().flat_map(|long| long.to_le_bytes()));
        }
        file.extend(dynamic.iter().flatten().flat_map(|long| long.to_le_bytes()));
        file.extend(strings);
        file.extend(table);
        file
    }

    #[test]
    fn this_test_is_a_program_with_glibc() {
        let program = read(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap();
        assert_eq!(program.interpreter.as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
        assert!(program.libraries.iter().any(|name| name == "libc.so.6"), "{program:?}");
        assert!(program.versions.iter().any(|name| name == "GLIBC_2.2.5"), "{program:?}");
    }

    #[test]
    fn interpreter_and_libraries_are_named() {
        let found = read(&program(Some("/lib/ld.so"), &["a.so", "b.so.1"])).unwrap();
        let libraries = vec!["a.so".to_owned(), "b.so.1".to_owned()];
        let interpreter = Some("/lib/ld.so".to_owned());
        assert_eq!(found, Program { interpreter, libraries, versions: Vec::new() });
        assert_eq!(read(&program(None, &[])).unwrap(), Program::default());
    }

    /// Needed versions of two libraries.
    const VERSIONS: [(&str, &[&str]); 2] = [("a.so", &["A_1", "A_2.3"]), ("b.so", &["B_1"])];

    #[test]
    fn versions_of_all_libraries_are_named() {
        let found = read(&program_of_versions(Some("/lib/ld.so"), &["a.so", "b.so"], &VERSIONS)).unwrap();
        assert_eq!(found.versions, ["A_1", "A_2.3", "B_1"]);
    }

    #[test]
    fn versions_are_read_up_to_the_bound() {
        let many = ["A_1"; VERSIONS_MAX + 1];
        let file = program_of_versions(None, &["a.so"], &[("a.so", &many), ("b.so", &["B_1"])]);
        assert_eq!(read(&file).unwrap().versions, ["A_1"; VERSIONS_MAX]);
    }

    #[test]
    fn other_files_are_refused_with_their_reason() {
        let refused = |at: usize, bytes: &[u8]| {
            let mut file = program(Some("/lib/ld.so"), &["a.so"]);
            file[at..at + bytes.len()].copy_from_slice(bytes);
            read(&file).unwrap_err()
        };
        assert_eq!(read(b"#!/bin/sh\n").unwrap_err(), ElfError::NotElf);
        assert_eq!(read(b"\x7fELF").unwrap_err(), ElfError::Processor);
        assert_eq!(refused(4, &[1]), ElfError::Processor);
        assert_eq!(refused(18, &183_u16.to_le_bytes()), ElfError::Processor);
        assert_eq!(refused(16, &1_u16.to_le_bytes()), ElfError::NotProgram);
        assert_eq!(refused(24, &0_u64.to_le_bytes()), ElfError::NotProgram);
        assert_eq!(refused(32, &u64::MAX.to_le_bytes()), ElfError::Damaged);
        assert_eq!(refused(56, &u16::MAX.to_le_bytes()), ElfError::Damaged);
        let whole = program(Some("/lib/ld.so"), &["a.so"]);
        for bytes in 64..whole.len() - 1 {
            assert_eq!(read(&whole[..bytes]).unwrap_err(), ElfError::Damaged, "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn damaged_headers_never_panic(at in 4_usize..430, value in any::<[u8; 8]>()) {
            let mut file = program_of_versions(Some("/lib/ld.so"), &["a.so", "b.so"], &VERSIONS);
            prop_assume!(at + 8 <= file.len());
            file[at..at + 8].copy_from_slice(&value);
            let _ = read(&file);
        }
    }
}
