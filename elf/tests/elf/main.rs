//! Tests that read ELF files: a real one, small ones, and damaged ones.

mod program;

use everett_elf::{
    Compression, DYNAMIC_MAX, Elf, Error, Kind, Machine, NAME_BYTES_MAX, Needs, Part, SEGMENTS_MAX,
    SymbolKind, SymbolTable, VERSIONS_MAX, is_elf,
};
use program::{program, program_of_versions};
use proptest::prelude::*;

/// Names of two libraries, each with the symbol versions that the test program needs from it.
const VERSIONS: [(&str, &[&str]); 2] = [("a.so", &["A_1", "A_2.3"]), ("b.so", &["B_1"])];

/// Section types.
const SYMBOLS: u32 = 2;
const STRINGS: u32 = 3;
const NO_BYTES: u32 = 8;

/// Appends sections to a file: each with its name, its type and its content. The last section contains the names of the
/// sections and of the symbols.
fn with_sections(mut file: Vec<u8>, sections: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let last = sections.len() as u32 + 1;
    let mut header = |name: usize, kind: u32, at: usize, bytes: usize| {
        headers.extend([name as u32, kind].iter().flat_map(|word| word.to_le_bytes()));
        headers.extend([0, 0, at as u64, bytes as u64].iter().flat_map(|long| long.to_le_bytes()));
        headers.extend([last, 0].iter().flat_map(|word| word.to_le_bytes()));
        headers.extend([1_u64, 0].iter().flat_map(|long| long.to_le_bytes()));
    };
    for (name, kind, content) in sections {
        // A section of type `NO_BYTES` has no bytes in the file, so its header may state a length beyond the file's
        // end.
        let bytes = if *kind == NO_BYTES { 1 << 40 } else { content.len() };
        header(names.len(), *kind, file.len(), bytes);
        names.extend(name.bytes().chain([0]));
        file.extend(*content);
    }
    let names_name = names.len();
    names.extend(b".names\0");
    header(names_name, STRINGS, file.len(), names.len());
    file.extend(names);
    let table = file.len() as u64;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    for (at, half) in [(58, 64), (60, last as u16 + 1), (62, last as u16)] {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    file.extend(headers);
    file
}

/// Returns an entry of a symbol table, with the offset of its name.
fn symbol(name: u32, info: u8, section: u16, address: u64) -> Vec<u8> {
    let mut entry = name.to_le_bytes().to_vec();
    entry.extend([info, 0]);
    entry.extend(section.to_le_bytes());
    entry.extend([address, 8].iter().flat_map(|long| long.to_le_bytes()));
    entry
}

/// Returns a program with all parts that the crate reads.
fn whole() -> Vec<u8> {
    let file = program_of_versions(Some("/lib/ld.so"), &["a.so", "b.so"], &VERSIONS);
    // In the section of names, `.text` is at offset 1 and `.symtab` at offset 7.
    let symbols = [symbol(0, 0, 0, 0), symbol(1, 0x12, 1, 0x40_1000), symbol(7, 0x10, 0, 0)].concat();
    let content: [(&str, u32, &[u8]); 3] =
        [(".text", 1, b"code"), (".symtab", SYMBOLS, &symbols), (".bss", NO_BYTES, b"")];
    with_sections(file, &content)
}

/// Reads everything. Fails if a part of the result lies outside the file.
fn read_all(file: &[u8]) -> Result<(), Error> {
    let inside = |part: &[u8]| {
        let (all, part) = (file.as_ptr_range(), part.as_ptr_range());
        assert!(part.is_empty() || all.start <= part.start && part.end <= all.end);
    };
    let elf = Elf::parse(file)?;
    let segments = elf.segments().and_then(|segments| {
        assert!(segments.len() <= SEGMENTS_MAX);
        segments.iter().try_for_each(|segment| segment.content(file).map(inside))
    });
    for segment in elf.load_segments().unwrap_or_default() {
        inside(segment.content(file).unwrap());
    }
    let needs = elf.needs().map(|needs| {
        assert!(needs.libraries.len() <= DYNAMIC_MAX && needs.versions.len() <= VERSIONS_MAX);
        let names = needs.libraries.iter().chain(&needs.versions).chain(&needs.interpreter);
        names.for_each(|name| {
            assert!(name.len() <= NAME_BYTES_MAX);
            inside(name.as_bytes());
        });
    });
    let sections = elf.sections().and_then(|sections| {
        for table in [SymbolTable::Static, SymbolTable::Dynamic] {
            for symbol in sections.symbols(table)?.iter() {
                symbol.name(8).into_iter().for_each(inside);
            }
        }
        let _ = sections.named(".bss");
        sections.iter().try_for_each(|section| {
            section.packed().into_iter().for_each(|packed| inside(packed.bytes));
            section.content().map(inside)
        })
    });
    segments.and(needs).and(sections)
}

#[test]
fn this_test_is_a_program_with_glibc() {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let elf = Elf::parse(&file).unwrap();
    assert_eq!((elf.kind(), elf.machine()), (Kind::Shared, Machine::X86_64));
    let needs = elf.needs().unwrap();
    assert_eq!(needs.interpreter, Some("/lib64/ld-linux-x86-64.so.2"));
    assert!(needs.libraries.contains(&"libc.so.6"), "{needs:?}");
    assert!(needs.versions.contains(&"GLIBC_2.2.5"), "{needs:?}");
    let sections = elf.sections().unwrap();
    let text = sections.named(".text").unwrap();
    assert!(text.content().unwrap().len() > 1000);
    assert!(sections.named(".tex").is_none() && sections.named(".textt").is_none());
    assert_eq!(sections.named(".bss").unwrap().content(), Ok(&[][..]));
    let loads = |address: u64| {
        elf.load_segments()
            .unwrap()
            .into_iter()
            .find(|segment| address.checked_sub(segment.address).is_some_and(|at| at < segment.file_bytes))
    };
    let code = loads(elf.entry()).unwrap();
    assert!(code.is_executable);
    let first = &code.content(&file).unwrap()[(elf.entry() - code.address) as usize..];
    assert!(text.content().unwrap().as_ptr_range().contains(&first.as_ptr()));
    let at = (text.address() - code.address) as usize;
    assert!(code.content(&file).unwrap()[at..].starts_with(text.content().unwrap()));
    let symbols = sections.symbols(SymbolTable::Static).unwrap();
    let start = symbols.iter().find(|symbol| symbol.name(6) == Some(b"_start")).unwrap();
    assert_eq!((start.address, start.kind), (elf.entry(), SymbolKind::Function));
    read_all(&file).unwrap();
}

#[test]
fn everything_in_a_small_program_is_read() {
    let file = whole();
    read_all(&file).unwrap();
    let elf = Elf::parse(&file).unwrap();
    assert_eq!((elf.kind(), elf.machine().to_string()), (Kind::Executable, "x86-64".to_owned()));
    let sections = elf.sections().unwrap();
    assert_eq!(sections.named(".text").unwrap().content(), Ok(&b"code"[..]));
    assert_eq!(sections.named(".bss").unwrap().content(), Ok(&[][..]));
    assert_eq!(sections.iter().count(), 5);
    let symbols: Vec<_> = sections.symbols(SymbolTable::Static).unwrap().iter().collect();
    assert_eq!(symbols[0].name(8), Some(&b""[..]));
    let of = |n: usize| (symbols[n].kind, symbols[n].address, symbols[n].bytes, symbols[n].is_defined);
    assert_eq!(of(1), (SymbolKind::Function, 0x40_1000, 8, true));
    assert_eq!(of(2), (SymbolKind::Untyped, 0, 8, false));
    assert_eq!((symbols[1].name(5), symbols[1].name(4)), (Some(&b".text"[..]), None));
    assert!(sections.symbols(SymbolTable::Dynamic).unwrap().iter().next().is_none());
}

/// The compression header is the type, four bytes without meaning, the unpacked length, and an alignment.
#[test]
fn compressed_sections_state_their_compression() {
    const COMPRESSED: u8 = 8;
    let packed = |content: &[u8]| {
        let mut file = with_sections(program(None, &[]), &[(".debug_info", 1, content)]);
        let headers = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
        // The second byte of the first section's flags.
        file[headers + 64 + 8 + 1] = COMPRESSED;
        let sections = Elf::parse(&file).unwrap().sections().unwrap();
        let packed = sections.named(".debug_info").unwrap().packed();
        packed.map(|packed| (packed.bytes.to_vec(), packed.compression))
    };
    let header = |kind: u64, bytes: u64| [kind, bytes, 1].map(u64::to_le_bytes).concat();
    for (kind, expected) in [(1, Compression::Zlib), (2, Compression::Zstd), (9, Compression::Other)] {
        let content = [&header(kind, 1 << 50)[..], b"packed"].concat();
        assert_eq!(packed(&content), Ok((b"packed".to_vec(), Some((expected, 1 << 50)))));
    }
    assert_eq!(packed(&header(1, 5)[..23]), Err(Error::Truncated(Part::Sections)));
}

#[test]
fn interpreter_and_libraries_are_named() {
    let file = program(Some("/lib/ld.so"), &["a.so", "b.so.1"]);
    let found = Elf::parse(&file).unwrap().needs().unwrap();
    let interpreter = Some("/lib/ld.so");
    assert_eq!(found, Needs { interpreter, libraries: vec!["a.so", "b.so.1"], versions: Vec::new() });
    assert_eq!(Elf::parse(&program(None, &[])).unwrap().needs(), Ok(Needs::default()));
}

#[test]
fn versions_of_all_libraries_are_named() {
    let file = program_of_versions(Some("/lib/ld.so"), &["a.so", "b.so"], &VERSIONS);
    assert_eq!(Elf::parse(&file).unwrap().needs().unwrap().versions, ["A_1", "A_2.3", "B_1"]);
}

#[test]
fn tables_are_read_up_to_their_bounds() {
    let many = ["A_1"; VERSIONS_MAX + 1];
    let file = program_of_versions(None, &["a.so"], &[("a.so", &many), ("b.so", &["B_1"])]);
    assert_eq!(Elf::parse(&file).unwrap().needs().unwrap().versions, ["A_1"; VERSIONS_MAX]);

    // After `DYNAMIC_MAX` libraries, the entry for the table of strings is beyond the entries that are read.
    let file = program(None, &["a.so"; DYNAMIC_MAX]);
    assert_eq!(Elf::parse(&file).unwrap().needs(), Err(Error::NoStrings));
    let file = program(None, &["a.so"; DYNAMIC_MAX - 1]);
    assert_eq!(Elf::parse(&file).unwrap().needs().unwrap().libraries.len(), DYNAMIC_MAX - 1);

    let longest = "n".repeat(NAME_BYTES_MAX);
    let file = program(Some(&longest), &[&longest]);
    assert_eq!(Elf::parse(&file).unwrap().needs().unwrap().libraries, [&longest]);
    let file = program(None, &[&(longest + "n")]);
    assert_eq!(Elf::parse(&file).unwrap().needs(), Err(Error::Name));

    let segments = |count: usize| {
        let mut file = program(None, &[]);
        file.resize(64 + count * 56, 0);
        file[56..58].copy_from_slice(&(count as u16).to_le_bytes());
        Elf::parse(&file).unwrap().segments().map(|segments| segments.len())
    };
    assert_eq!(segments(SEGMENTS_MAX), Ok(SEGMENTS_MAX));
    let error = segments(SEGMENTS_MAX + 1).unwrap_err();
    assert_eq!(error.to_string(), "it has more than 256 program headers");
}

#[test]
fn other_files_are_refused_with_their_reason() {
    let error = |file: &[u8]| Elf::parse(file).map(|_| ()).unwrap_err();
    assert_eq!(error(b"").to_string(), "it is not an ELF file");
    assert_eq!(error(b"\x7fEL"), Error::NotElf);
    assert_eq!(error(b"\x7fELF"), Error::Truncated(Part::Header));
    assert_eq!(error(b"\x7fELF\x01\x01"), Error::Class);
    assert_eq!(error(b"\x7fELF\x02\x02"), Error::Class);
    let file = whole();
    assert_eq!(error(&file[..63]).to_string(), "its first 64 bytes reach beyond the end of the file");
    assert!(is_elf(&file[..4]) && !is_elf(&file[..3]));

    let patched = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        read_all(&file).unwrap_err()
    };
    let is_damaged =
        |error: Error, which: Part| matches!(error, Error::Damaged { part, .. } if part == which);
    assert!(is_damaged(patched(6, &[0]), Part::Header));
    assert_eq!(patched(32, &u64::MAX.to_le_bytes()), Error::Truncated(Part::ProgramHeaders));
    assert!(is_damaged(patched(54, &[55]), Part::ProgramHeaders));
    assert_eq!(patched(40, &u64::MAX.to_le_bytes()), Error::Truncated(Part::SectionHeaders));
    assert!(is_damaged(patched(58, &[63]), Part::SectionHeaders));
    // The two patches change the length of the first segment in the file, and the address to which it is loaded.
    assert_eq!(patched(64 + 38, &[1]), Error::Truncated(Part::Segments));
    assert!(matches!(patched(64 + 20, &[1]), Error::Address(_)));
}

#[test]
fn symbols_are_read_even_if_the_names_of_sections_are_damaged() {
    let mut file = whole();
    let headers = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    // The first section after the null section gets an offset beyond the end of the file, and is said to contain the
    // names of the sections.
    let offset = headers + 64 + 24;
    file[offset..offset + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    file[62] = 1;
    let sections = Elf::parse(&file).unwrap().sections().unwrap();
    assert!(sections.named(".symtab").is_none());
    let symbols: Vec<_> = sections.symbols(SymbolTable::Static).unwrap().iter().collect();
    assert_eq!(symbols[1].name(5), Some(&b".text"[..]));
}

#[test]
fn damaged_and_truncated_files_never_panic() {
    let file = whole();
    for bytes in 0..file.len() {
        assert!(read_all(&file[..bytes]).is_err(), "{bytes}");
    }
    let mut refused = 0;
    for at in 0..file.len() {
        let mut damaged = file.clone();
        for value in [0, 1, 2, 7, 0x3f, 0x7f, 0x80, 0xff, file[at] ^ 1, file[at].wrapping_sub(1)] {
            damaged[at] = value;
            refused += usize::from(read_all(&damaged).is_err());
        }
    }
    assert!(refused > file.len(), "{refused}");
}

proptest! {
    #[test]
    fn damaged_numbers_never_panic(
        at in any::<prop::sample::Index>(),
        value in prop_oneof![any::<u64>(), 0..0x800_u64, Just(u64::MAX), Just(1 << 63)],
        bytes in 1..=8_usize,
    ) {
        let mut file = whole();
        let at = at.index(file.len() - 8);
        file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        let _ = read_all(&file);
    }

    #[test]
    fn other_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_all(&[&b"\x7fELF\x02\x01\x01"[..], &bytes].concat());
    }
}
