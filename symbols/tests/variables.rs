//! Variables of a program that the test compiles, and damaged debug information.
#![cfg(feature = "programs")]

mod support;

use std::process::Command;

use everett_symbols::lines::{LineAddresses, Lines};
use everett_symbols::program::Program;
use everett_symbols::variables::{Bytes, Frame, Shape};

const SOURCE: &str = "\
enum color { RED = 1, BLUE = -4 };
typedef struct { int pad; union { long value; char bytes[8]; }; unsigned low : 3, high : 7; } inner;
struct outer { struct outer *next; inner items[3][2]; const enum color color; };
struct outer globals = { &globals, { { { 1, { 2 }, 3, 4 } } }, BLUE };
double half = 0.5;
int scale(int count, struct outer *from) {
    int doubled = 2 * count;
    { int count = 7; doubled += count; }
    return doubled + (int)from->items[1][1].value;
}
int main(int count, char **arguments) { return scale(count, &globals); }
";

/// A frame without memory, whose registers have their number as value.
struct Numbers(u64);

impl Frame for Numbers {
    fn address(&self) -> u64 {
        self.0
    }
    fn bias(&self) -> u64 {
        0x1000
    }
    fn register(&self, number: u16) -> Option<u64> {
        Some(number.into())
    }
    fn vector(&self, _: u16) -> Option<[u8; 16]> {
        None
    }
    fn read(&self, _: u64, into: &mut [u8]) -> usize {
        into.fill(0x11);
        into.len()
    }
    fn frame_address(&self) -> Option<u64> {
        Some(0x7000)
    }
}

fn compile(optimisation: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("source.c"), folder.path().join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    let output =
        Command::new("cc").args(["-g", optimisation, "-o"]).args([&program, &source]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(program).unwrap()
}

fn lines_of(file: &[u8]) -> Option<Lines> {
    Lines::of(file, None, &mut { 256 << 20 })
}

#[test]
fn variables_have_places_and_types() {
    let file = compile("-O0");
    let program = Program::parse(file.clone().into()).unwrap();
    let lines = lines_of(&file).unwrap();
    let line = |number| match lines.addresses("source.c", number) {
        LineAddresses::Found(found) => found[0],
        other => panic!("{other:?}"),
    };
    let start = program.functions_named("scale").next().unwrap();
    let here = line(7);
    assert_eq!(lines.after_prologue(start, start + 100), Some(here));
    assert_eq!(lines.addresses("source.c", 2), LineAddresses::NoCode(Some(6)));
    assert_eq!(lines.addresses("ource.c", 7), LineAddresses::NoFile);

    let place = |name: &str, at: u64| {
        let variable = lines.variable(at, name).unwrap_or_else(|| panic!("{name}"));
        (variable, lines.place(&variable, &Numbers(at)))
    };
    let (count, at) = place("count", here);
    assert!(count.is_on_stack && lines.shape(count.kind) == Some(Shape::Signed(4)));
    let Ok(Bytes::Memory(outer_count)) = at else { panic!("{at:?}") };
    assert!((0x6000..0x7000).contains(&outer_count), "{outer_count:#x} is below the frame address");
    // The inner block has a variable of the same name.
    let (inner, at) = place("count", line(8) + 7);
    assert!(inner != count && at != Ok(Bytes::Memory(outer_count)), "{at:?}");
    assert_eq!(lines.variable(here, "arguments"), None, "a variable of another function");

    let (globals, at) = place("globals", here);
    assert_eq!(at, Ok(Bytes::Memory(program.variable_named("globals").unwrap() + 0x1000)));
    let member = |kind, name: &str| lines.member(kind, name).unwrap_or_else(|| panic!("{name}"));
    let items = member(globals.kind, "items");
    assert_eq!(items.offset, 8);
    let Some(Shape::Array { element, element_bytes: 48, count: Some(3) }) = lines.shape(items.kind) else {
        panic!()
    };
    let Some(Shape::Array { element, element_bytes: 24, count: Some(2) }) = lines.shape(element) else {
        panic!()
    };
    assert_eq!(member(element, "value").offset, 8, "a member of a union without a name");
    let high = member(element, "high");
    assert_eq!((high.offset, high.bits), (16, Some((3, 7))));
    let color = member(globals.kind, "color").kind;
    assert_eq!(lines.shape(color), Some(Shape::Enumeration { bytes: 4, is_signed: true }));
    assert_eq!((lines.enumerator(color, -4), lines.enumerator(color, 2)), (Some("BLUE".to_owned()), None));
    assert_eq!(lines.shape(place("half", here).0.kind), Some(Shape::Float(8)));
    let next = member(globals.kind, "next").kind;
    assert_eq!(lines.shape(next), Some(Shape::Pointer(Some(globals.kind))));
}

#[test]
fn optimised_code_has_no_place_or_the_right_register() {
    let file = compile("-O2");
    let lines = lines_of(&file).unwrap();
    let program = Program::parse(file.into()).unwrap();
    let start = program.functions_named("scale").next().unwrap();
    let at = |name: &str| {
        let variable = lines.variable(start, name).unwrap();
        assert!(!variable.is_on_stack);
        lines.place(&variable, &Numbers(start))
    };
    // The second parameter is in RSI, which is number 4. The inner block has a constant.
    assert_eq!(at("from"), Ok(Bytes::Here(4u64.to_le_bytes().to_vec())));
    assert_eq!(at("count"), Ok(Bytes::Here(7u64.to_le_bytes().to_vec())));
    assert!(program.frame_rule(start).is_some_and(|rule| (rule.register, rule.offset) == (7, 8)));
}

/// Changes bytes anywhere in the file. Each search must end.
#[test]
fn damaged_debug_information_ends_each_search() {
    for optimisation in ["-O0", "-O2"] {
        let file = compile(optimisation);
        let start = Program::parse(file.clone().into()).unwrap().functions_named("scale").next().unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..support::rounds(400) {
            let mut damaged = file.clone();
            for _ in 0..1 + draw(40) {
                let at = draw(damaged.len());
                damaged[at] = [0, 0xff, 0x2f, 0x28, draw(256) as u8][draw(5)];
            }
            let Some(lines) = lines_of(&damaged) else { continue };
            for line in 0..13 {
                let _ = lines.addresses("source.c", line);
            }
            let _ = lines.after_prologue(start, start + 100);
            for name in ["count", "doubled", "from", "globals", "half", "none"] {
                let Some(variable) = lines.variable(start + 8, name) else { continue };
                let _ = (lines.place(&variable, &Numbers(start + 8)), lines.shape(variable.kind));
                for member in ["next", "items", "value", "high", "color"] {
                    if let Some(member) = lines.member(variable.kind, member) {
                        let _ = (lines.shape(member.kind), lines.enumerator(member.kind, -4));
                    }
                }
            }
            if let Ok(program) = Program::parse(damaged.into()) {
                let _ = program.frame_rule(start + 8);
            }
        }
    }
}
