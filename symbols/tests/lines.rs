//! Lines of a program that the test compiles.
#![cfg(feature = "programs")]

mod support;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use everett_elf::Elf;
use everett_symbols::lines::{Lines, SourcePlace};
use everett_symbols::program::Program;

/// Program whose function `outer` contains an inlined call. The test looks up the lines by their numbers.
const SOURCE: &str = "\
use std::hint::black_box;
#[inline(always)]
fn inner(n: u64) -> u64 {
    black_box(n)
        .wrapping_mul(3)
}
#[unsafe(no_mangle)]
#[inline(never)]
pub extern \"C\" fn outer(n: u64) -> u64 {
    let n = black_box(n + 1);
    let twice = inner(n);
    black_box(twice)
}
fn main() {
    outer(1);
}
";

/// Lines of `inner`, of `outer`, and of the call of `inner`.
const INNER: std::ops::RangeInclusive<u64> = 3..=6;
const OUTER: std::ops::RangeInclusive<u64> = 9..=13;
const CALL: u64 = 11;

/// Number of bytes of debug information that may be kept.
const DEBUG_BYTES_MAX: u64 = 256 << 20;

/// Compiles the program with these arguments.
fn compile(folder: &Path, arguments: &[&str]) -> Arc<[u8]> {
    let (source, program) = (folder.join("source.rs"), folder.join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(compiler)
        .args(["--edition", "2024", "-C", "opt-level=2", "-C", "debuginfo=2", "-o"])
        .args([&program, &source])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(program).unwrap().into()
}

fn lines_of(file: &[u8]) -> Option<Lines> {
    let mut bytes_left = DEBUG_BYTES_MAX;
    let lines = Lines::of(file, None, &mut bytes_left);
    assert!(lines.is_none() || bytes_left < DEBUG_BYTES_MAX);
    lines
}

/// Returns the places of all addresses of `outer`.
fn places(file: &Arc<[u8]>, lines: &Lines) -> Vec<Vec<SourcePlace>> {
    let program = Program::parse(Arc::clone(file)).unwrap();
    let start = program.functions_named("outer").next().expect("a function with this name");
    let holds = |address: &u64| program.function(*address).is_some_and(|function| function.name == "outer");
    (start..).take_while(holds).map(|address| lines.places(address)).collect()
}

fn assert_right(file: &Arc<[u8]>) {
    let lines = lines_of(file).expect("it has debug information");
    let places = places(file, &lines);
    assert!(places.len() > 10, "{places:?}");
    let (mut inlined, mut inner_lines) = (0, 0);
    for places in &places {
        let names: Vec<String> = places.iter().map(|place| place.function.clone().unwrap()).collect();
        let source =
            |place: &SourcePlace| place.file.as_ref().is_some_and(|file| file.ends_with("/source.rs"));
        let numbers: Vec<u64> =
            places.iter().filter(|place| source(place)).filter_map(|place| place.line).collect();
        assert_eq!(names.last().unwrap(), "outer");
        // Calls of the standard library can be inlined, too. Line 0 is an instruction of no line.
        let outer = numbers.last().copied().unwrap_or(0);
        assert!(outer == 0 || OUTER.contains(&outer), "{places:?}");
        if names.iter().any(|name| name.ends_with("::inner")) {
            inlined += 1;
            assert_eq!(outer, CALL, "{places:?}");
            if let Some(line) = numbers.iter().rev().nth(1) {
                inner_lines += 1;
                assert!(INNER.contains(line), "{places:?}");
            }
        }
    }
    assert!(inlined > 0 && inner_lines > 0, "{places:?}");
    assert_eq!(lines.places(0), []);
    assert_eq!(lines.places(u64::MAX), []);
}

#[test]
fn lines_and_inlined_calls_are_those_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["4", "5"] {
        assert_right(&compile(folder.path(), &["-C", &format!("dwarf-version={version}")]));
    }
    let none = compile(folder.path(), &["-C", "strip=debuginfo"]);
    assert!(lines_of(&none).is_none());
}

#[test]
fn compressed_sections_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let plain = compile(folder.path(), &[]);
    for compression in ["zlib", "zstd"] {
        let argument = format!("link-arg=-Wl,--compress-debug-sections={compression}");
        let packed = compile(folder.path(), &["-C", &argument]);
        assert!(packed.len() < plain.len(), "{} {}", packed.len(), plain.len());
        assert_right(&packed);
    }
    assert!(Lines::of(&plain, None, &mut 1_000).is_none(), "too long");
}

/// Changed bytes of debug information can make places wrong, but no search panics, and each ends.
#[test]
fn damaged_debug_information_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let file = compile(folder.path(), &[]);
    let program = Program::parse(Arc::clone(&file)).unwrap();
    let start = program.functions_named("outer").next().unwrap();
    let sections = Elf::parse(&file).unwrap().sections().unwrap();
    let debug = sections.named(".debug_info").unwrap().content().unwrap();
    let debug_at = debug.as_ptr().addr() - file.as_ptr().addr();
    let mut found = 0;
    let mut random = 1u64;
    let mut next = |max: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % max
    };
    for _ in 0..support::rounds(300) {
        let mut changed = file.to_vec();
        // The lines and the strings follow the section with entries.
        for _ in 0..200 {
            let at = debug_at + next(file.len() - debug_at);
            changed[at] = next(256) as u8;
        }
        if let Some(lines) = lines_of(&changed) {
            found += usize::from((0..40).any(|n| !lines.places(start + n).is_empty()));
        }
    }
    assert!(found > 10, "{found}");
}
