//! Tests of values and their formats, on memory that is a list of bytes.

use everett_inspect::registers::ProgramRegisters;
use everett_symbols::variables::{Member, Shape, TypeAt};

use super::expression::evaluate::{Absent, Scene, Value, text_at, value};
use super::format::Format;
use super::limits::WHOLE_TEXT_BYTES_MAX;
use super::probe::condition;

/// Linear address of the memory.
const START: u64 = 0x1000;
/// Place of RAX in the registers.
const RAX: usize = 10;

/// A program without debug information.
struct Plain {
    registers: ProgramRegisters,
    memory: Vec<u8>,
}

impl Plain {
    fn new(rax: u64, memory: &[u8]) -> Plain {
        let mut registers = ProgramRegisters([0; 27]);
        registers.0[RAX] = rax;
        Plain { registers, memory: memory.to_vec() }
    }
}

impl Scene for Plain {
    fn registers(&self) -> &ProgramRegisters {
        &self.registers
    }

    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let from =
            address.checked_sub(START).and_then(|from| self.memory.get(from as usize..)).unwrap_or(&[]);
        let read = from.len().min(into.len());
        into[..read].copy_from_slice(&from[..read]);
        read
    }

    fn has_whole_texts(&self) -> bool {
        true
    }

    fn variable(&self, name: &str) -> Result<Value, Absent> {
        Err(Absent::NoVariable(name.to_owned()))
    }

    fn shape(&self, _: TypeAt) -> Option<Shape> {
        None
    }

    fn member(&self, _: TypeAt, _: &str) -> Option<Member> {
        None
    }

    fn enumerator(&self, _: TypeAt, _: i128) -> Option<String> {
        None
    }
}

fn evaluated(expression: &str, scene: &Plain) -> Result<Value, Absent> {
    value(&condition(expression).unwrap(), scene)
}

#[test]
fn formats_print_all_bits_of_a_number() {
    let scene = Plain::new(0xf000_0000_0000_0001, &[]);
    let shown = |format: &str, expression| {
        Format::parse(format).unwrap().text(&[evaluated(expression, &scene)], &scene)
    };
    for (format, expression, expected) in [
        ("%d", "$rax * 16", "276701161105643274256"),
        ("%u", "$rax * 16", "276701161105643274256"),
        ("%x", "$rax * 16", "f0000000000000010"),
        ("%#x", "$rax * 16", "0xf0000000000000010"),
        ("%p", "$rax * 16", "0xf0000000000000010"),
        ("%o", "$rax * 16", "36000000000000000000020"),
        ("%x", "-1", "ffffffffffffffff"),
        ("%u", "-1", "18446744073709551615"),
        ("%#x", "-(1 << 63)", "0x8000000000000000"),
        ("%d", "-$rax", "-17293822569102704641"),
        ("%x", "-$rax", "overflow"),
        ("%u", "-$rax", "overflow"),
        ("%c", "0x141", "A"),
    ] {
        assert_eq!(shown(format, expression), expected, "{format} {expression}");
    }
}

#[test]
fn pointers_move_and_differ_by_elements() {
    let scene = Plain::new(0x1010, &[]);
    for (expression, expected) in [
        ("(u64)((u32 *)$rax + 2)", Ok(0x1018)),
        ("(u64)(2 + (u32 *)$rax)", Ok(0x1018)),
        ("(u32 *)$rax - (u32 *)0x1000", Ok(4)),
        ("(u32 *)0x1000 - (u32 *)$rax", Ok(-4)),
        ("(u64 *)$rax - (u64 *)0x1000", Ok(2)),
        ("(u64)(u32 *)$rax - (u64)(u64 *)0x1000", Ok(16)),
        ("(u32 *)$rax - (i32 *)0x1000", Err(Absent::DifferentTypes)),
        ("(u32 *)$rax - (u64 *)0x1000", Err(Absent::DifferentTypes)),
        ("(u32 *)$rax - (u32 *)0x1001", Err(Absent::NoWholeElements)),
        ("(u32 *)$rax > (u64 *)0x1000", Ok(1)),
    ] {
        assert_eq!(evaluated(expression, &scene), expected.map(Value::Integer), "{expression}");
    }
}

#[test]
fn a_whole_text_has_at_most_the_maximum_length() {
    let with_end = |length: usize| [&vec![b'a'; length][..], &[0]].concat();
    let length = |memory: &[u8]| text_at(START, &Plain::new(0, memory)).map(|text| text.len());
    let max = WHOLE_TEXT_BYTES_MAX;
    assert_eq!(length(&with_end(0)), Ok(0));
    assert_eq!(length(&with_end(max)), Ok(max));
    assert_eq!(length(&with_end(max + 1)), Err(Absent::LongText));
    assert_eq!(length(&vec![b'a'; max]), Err(Absent::Unmapped), "its end is not mapped");
    assert_eq!(length(&vec![b'a'; 2 * max]), Err(Absent::LongText));
}
