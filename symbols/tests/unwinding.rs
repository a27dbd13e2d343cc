//! Stacks of programs of C and Go, also with damaged unwind tables, names and headers.
#![cfg(feature = "programs")]

mod support;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use everett_elf::Elf;
use everett_symbols::FRAMES_MAX;
use everett_symbols::program::{GoSteps, Program};
use everett_symbols::unwind::Unwinder;

use crate::support::rounds;

const SOURCE: &str = "\
int leaf(int n) { volatile int area[40]; area[n] = n; return area[n]; }
int middle(int n) { int found = 0; for (int i = 0; i < n; i++) found += leaf(i) * leaf(n - i); return found; }
int main(int count, char **arguments) { return middle(count) + leaf(count); }
";

/// Distance of the addresses in memory from those that the file states.
const BIAS: u64 = 0x5555_0000_0000;

/// Random numbers by the generator xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    /// Changes a few bytes in a range.
    fn damage(&mut self, bytes: &mut [u8]) {
        for _ in 0..1 + self.below(6) {
            let at = self.below(bytes.len() as u64) as usize;
            let byte = self.below(256) as u8;
            bytes[at] = [0, 0xff, 0x2f, 0x28, bytes[at] ^ 1, byte][self.below(6) as usize];
        }
    }
}

/// Each stack has at most the bounded number of frames, and begins with the instruction. Reading ends, and nothing panics.
#[test]
fn damaged_unwind_tables_and_headers_end_each_stack() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("source.c"), folder.path().join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    let output = Command::new("cc").args(["-O1", "-o"]).args([&program, &source]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = std::fs::read(program).unwrap();
    let whole = Program::parse(file.clone().into()).unwrap();
    let middle = whole.functions_named("middle").next().unwrap();
    let tables = {
        let sections = Elf::parse(&file).unwrap().sections().unwrap();
        let content = sections.named(".eh_frame").unwrap().content().unwrap();
        let start = content.as_ptr().addr() - file.as_ptr().addr();
        start..start + content.len()
    };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut parsed, mut long) = (0, 0);
    for round in 0..rounds(1_000) {
        let mut damaged = file.clone();
        match round % 3 {
            0 => random.damage(&mut damaged),
            1 => random.damage(&mut damaged[..4096]),
            _ => random.damage(&mut damaged[tables.clone()]),
        }
        let Ok(program) = Program::parse(Arc::from(damaged)) else { continue };
        parsed += 1;
        let mut unwinder = Unwinder::default();
        let end = BIAS + file.len() as u64 + 0x10_0000;
        unwinder.add(&program, BIAS..end, BIAS);
        let (seed, mut reads) = (random.0, 0_u64);
        for instruction in
            [middle + BIAS + random.below(40), BIAS + random.below(0x4000), random.below(u64::MAX)]
        {
            let mut read = |address: u64| {
                reads += 1;
                // The stack has addresses of code, addresses of the stack, and holes.
                match (address ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 {
                    0..=7 => Ok(BIAS + middle + address / 8 % 64),
                    8..=13 => Ok(address + 16),
                    _ => Err(()),
                }
            };
            let frames = unwinder.frames(instruction, 0x7ffc_0000_0000, 0x7ffc_0000_0100, &mut read);
            assert!((1..=FRAMES_MAX).contains(&frames.addresses.len()), "{frames:?}");
            assert_eq!(frames.addresses[0], instruction);
            long += u64::from(frames.addresses.len() > 2);
        }
        assert!(reads < 64 * FRAMES_MAX as u64, "{reads}");
        for address in [middle, middle + 7, 0, u64::MAX] {
            let _ = (program.function(address), program.frame_rule(address), program.bytes_at(address));
            let _ = program.address_of_code(address);
        }
        let _ = (program.functions_called("middle").count(), program.variables_named("main").len());
    }
    assert!(parsed > rounds(1_000) / 3 && long > rounds(1_000) / 10, "{parsed} {long}");
}

/// Statement of a Go program about the address of its code.
#[derive(Debug, Clone, Copy)]
struct Stated {
    /// Value in the header of its table.
    header: &'static str,
    /// Address of the table in the description of the program. Empty without this description.
    module: &'static str,
    has_symbols: bool,
    is_pie: bool,
}

/// Program of a Go linker since Go 1.26, without symbols.
const STRIPPED: Stated = Stated { header: "0", module: ".Ltable", has_symbols: false, is_pie: false };

/// Number of bytes of code before the first function of Go.
const STARTUP_BYTES: u64 = 64;
/// Functions of 32 bytes: the name and the flags. The stack pointer of each is 24 bytes below the return address from the fifth byte
/// on, that of `main.odd` 4 bytes.
const GO_FUNCTIONS: [(&str, u8); 7] = [
    ("main.leaf", 0),
    ("main.work", 0),
    ("runtime.goexit", 1),
    ("runtime.mcall", 2),
    ("runtime.sigtramp", 1),
    ("runtime.sigpanic", 0),
    ("main.odd", 0),
];

/// Returns a program with code of C, then code of Go and its table.
fn go_program(stated: Stated) -> Vec<u8> {
    let Stated { header, module, has_symbols, is_pie } = stated;
    let count = GO_FUNCTIONS.len();
    let each = |text: &dyn Fn(usize, &str, u8) -> String| -> String {
        GO_FUNCTIONS.iter().enumerate().map(|(n, (name, flags))| text(n, name, *flags)).collect()
    };
    let names = each(&|n, name, _| format!(".Ln{n}: .asciz \"{name}\"\n"));
    let list = each(&|n, _, _| format!(".long {}, .Ld{n} - .Llist\n", 32 * n));
    let descriptions = each(&|n, name, flags| {
        let stack = if name == "main.odd" { ".Lodd" } else { ".Lstack" };
        format!(
            ".Ld{n}: .long {}, .Ln{n} - .Lnames, 0, 0, {stack} - .Lvalues, .Lfile - .Lvalues, .Lline - .Lvalues, 0, 0, 5\n\
             .byte 0, {flags}, 0, 0\n",
            32 * n
        )
    });
    let module = match module {
        "" => String::new(),
        table => format!(
            ".section .go.module, \"aw\"\n.quad {table}\n.fill 152\n.quad runtime.text, .Lend, runtime.text, .Lend\n"
        ),
    };
    let source = format!(
        ".text\n.globl _start\n_start: .fill {STARTUP_BYTES}, 1, 0x90\n\
         runtime.text: .fill 32 * {count}, 1, 0x90\n.Lend: .fill 32, 1, 0x90\n\
         .section .gopclntab, \"aw\"\n.balign 32\n\
         .Ltable: .long 0xfffffff1\n.byte 0, 0, 1, 8\n.quad {count}, 1, {header}\n\
         .quad .Lnames - .Ltable, .Lunits - .Ltable, .Lfiles - .Ltable, .Lvalues - .Ltable, .Llist - .Ltable\n\
         .Lnames: .byte 0\n{names}.balign 4\n.Lunits: .long 0\n.Lfiles: .asciz \"/a.go\"\n\
         .Lvalues: .byte 0\n.Lstack: .byte 2, 4, 48, 28, 0\n.Lodd: .byte 10, 32, 0\n.Lfile: .byte 2, 32, 0\n\
         .Lline: .byte 16, 32, 0\n.balign 4\n\
         .Llist: {list}.long 32 * {count}, 0\n{descriptions}{module}"
    );
    assembled(&source, has_symbols, is_pie)
}

/// Returns the program of a source of assembler.
fn assembled(source: &str, has_symbols: bool, is_pie: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (path, program) = (folder.path().join("source.s"), folder.path().join("program"));
    std::fs::write(&path, source).unwrap();
    let mut command = Command::new("cc");
    command.args(["-nostdlib", if is_pie { "-pie" } else { "-no-pie" }]);
    command.args((!has_symbols).then_some("-s"));
    let output = command.arg("-o").args([&program, &path]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(program).unwrap()
}

/// Returns the address of the first function of Go.
fn go_code(file: &[u8]) -> u64 {
    let sections = Elf::parse(file).unwrap().sections().unwrap();
    sections.named(".text").unwrap().address() + STARTUP_BYTES
}

#[test]
fn go_code_begins_where_the_program_states_it() {
    let with_symbols = Stated { module: "", has_symbols: true, ..STRIPPED };
    let with_header = Stated { header: "runtime.text", module: "", ..STRIPPED };
    for stated in [with_symbols, with_header, STRIPPED] {
        for is_pie in [false, true] {
            let file = go_program(Stated { is_pie, ..stated });
            let program = Program::parse(file.clone().into()).unwrap();
            let expected = (go_code(&file) + 32, 32);
            let found: Vec<_> = program.functions_called("main.work").collect();
            assert_eq!(found, [expected], "{stated:?} {is_pie}");
            let source = program.go_source(expected.0 + 3, &mut GoSteps::default());
            assert_eq!(source, Some(("/a.go".to_owned(), 7)));
        }
    }
    // Without a statement, or with that of another table, the start of `.text` would be taken for that of the code.
    for module in ["", ".Llist"] {
        for is_pie in [false, true] {
            let file = go_program(Stated { module, is_pie, ..STRIPPED });
            let program = Program::parse(file.clone().into()).unwrap();
            assert_eq!(program.functions_called("main.work").count(), 0, "{module:?} {is_pie}");
            assert_eq!(program.go_source(go_code(&file), &mut GoSteps::default()), None);
        }
    }
}

/// Stack of a thread of Go, from the words in memory.
fn go_stack(file: &[u8], instruction: u64, stack: u64, words: &[(u64, u64)]) -> (Vec<u64>, Vec<usize>, bool) {
    let words: BTreeMap<u64, u64> = words.iter().copied().collect();
    let program = Program::parse(file.into()).unwrap();
    let mut unwinder = Unwinder::default();
    unwinder.add(&program, BIAS..BIAS + 0x1000_0000, BIAS);
    let mut read = |address: u64| words.get(&address).copied().ok_or(());
    let frames = unwinder.frames(instruction, stack, 0x7000, &mut read);
    (frames.addresses, frames.interrupted, frames.is_complete)
}

#[test]
fn stacks_of_go_end_at_outermost_functions_only() {
    let file = go_program(STRIPPED);
    let [leaf, work, exit, moves, signal, panic, odd] =
        [0, 1, 2, 3, 4, 5, 6].map(|n| BIAS + go_code(&file) + 32 * n);
    let stack = 0x7ffc_0000_0000;
    // The function has a frame of 24 bytes, of which the last word is the frame pointer of its caller.
    let called = |from: u64, by: u64| vec![(from + 16, 0x7100), (from + 24, by)];
    let of = |instruction, words: &[Vec<(u64, u64)>]| go_stack(&file, instruction, stack, &words.concat());

    let whole = of(leaf + 8, &[called(stack, work + 9), called(stack + 32, exit + 1)]);
    assert_eq!(whole, (vec![leaf + 8, work + 9, exit + 1], vec![], true));
    let null = of(leaf + 8, &[called(stack, work + 9), called(stack + 32, 0)]);
    assert_eq!(null, (vec![leaf + 8, work + 9], vec![], false));
    let moved = of(leaf + 8, &[called(stack, moves + 9), called(stack + 32, exit + 1)]);
    assert_eq!(moved, (vec![leaf + 8, moves + 9], vec![], false));
    let unmapped = of(leaf + 8, &[vec![(stack + 24, work + 9)]]);
    assert_eq!(unmapped, (vec![leaf + 8], vec![], false));
    // The interrupted instruction is the first one of a function, before its frame.
    let injected =
        go_stack(&file, panic + 8, stack, &[(stack + 16, 0), (stack + 24, work), (stack + 32, exit + 1)]);
    assert_eq!(injected, (vec![panic + 8, work, exit + 1], vec![1], true));
    // The place of the frame pointer would be below address 0.
    assert_eq!(go_stack(&file, odd + 8, 0, &[(4, exit + 1)]), (vec![odd + 8], vec![], false));
    assert_eq!(go_stack(&file, leaf + 8, u64::MAX - 8, &[]), (vec![leaf + 8], vec![], false));

    // A handler of a signal. The kernel has saved the registers above the address of the code that ends the signal.
    let ends = 0x7fff_0000_0100;
    let interrupted = 0x7f00_0000_0000;
    let saved = stack + 32;
    let registers = vec![(saved + 120, 0x7200), (saved + 160, interrupted), (saved + 168, work)];
    let code = |bytes: [u8; 9]| {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        vec![(ends, word(0)), (ends + 1, word(1))]
    };
    let handled = |bytes| {
        of(signal + 9, &[called(stack, ends), code(bytes), registers.clone(), vec![(interrupted, exit + 1)]])
    };
    for bytes in [[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05], [0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0xcc, 0xcc]] {
        assert_eq!(handled(bytes), (vec![signal + 9, work, exit + 1], vec![1], true));
    }
    let other = handled([0x48, 0xc7, 0xc0, 16, 0, 0, 0, 0x0f, 0x05]);
    assert_eq!(other, (vec![signal + 9], vec![], false));
}

/// Reading of names without an end stops after as many bytes as the file has.
#[test]
fn names_of_go_without_an_end_are_bounded() {
    for (count, found) in [(2, 1), (2_000, 0)] {
        let source = format!(
            ".text\n.globl _start\n_start:\nruntime.text: .fill {count} + 2, 1, 0x90\n\
             .section .gopclntab, \"a\"\n\
             .Ltable: .long 0xfffffff1\n.byte 0, 0, 1, 8\n.quad {count} + 1, 1, 0\n\
             .quad .Lnames - .Ltable, 0, 0, 0, .Llist - .Ltable\n\
             .Lnames: .fill 5000, 1, 0x78\n.Lname: .asciz \"main.last\"\n.balign 4\n\
             .Llist: .set n, 0\n.rept {count}\n.long n, .Lnone - .Llist\n.set n, n + 1\n.endr\n\
             .long n, .Llast - .Llist, n + 1, 0\n\
             .Lnone: .fill 44\n.Llast: .long 0, .Lname - .Lnames\n.fill 36\n"
        );
        let program = Program::parse(assembled(&source, true, false).into()).unwrap();
        assert_eq!(program.functions_named("main.last").count(), found, "{count}");
    }
}

/// Each stack has at most the bounded number of frames, and begins with the instruction. Reading ends, and nothing panics.
#[test]
fn damaged_go_tables_end_each_stack() {
    let files = [false, true].map(|is_pie| go_program(Stated { is_pie, ..STRIPPED }));
    let parts = files.each_ref().map(|file| {
        let sections = Elf::parse(file).unwrap().sections().unwrap();
        [".gopclntab", ".go.module", ".rela.dyn"].map(|name| {
            let content = sections.named(name).and_then(|section| section.content().ok()).unwrap_or_default();
            let start = content.as_ptr().addr().saturating_sub(file.as_ptr().addr());
            start..start + content.len()
        })
    });
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut with_table, mut long) = (0, 0);
    for round in 0..rounds(2_000) {
        let which = (round % 2) as usize;
        let mut damaged = files[which].clone();
        let part = parts[which][(round / 2 % 3) as usize].clone();
        if round % 7 == 0 || part.is_empty() {
            random.damage(&mut damaged);
        } else {
            random.damage(&mut damaged[part]);
        }
        let Ok(program) = Program::parse(Arc::from(damaged)) else { continue };
        let code = go_code(&files[which]);
        with_table += u64::from(program.functions_named("main.work").next().is_some());
        let mut unwinder = Unwinder::default();
        unwinder.add(&program, BIAS..BIAS + 0x1000_0000, BIAS);
        let seed = random.0;
        for n in 0..GO_FUNCTIONS.len() as u64 {
            let instruction = BIAS + code + 32 * n + random.below(32);
            let mut read = |address: u64| match (address ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 {
                0..=12 => Ok(BIAS + code + address / 8 % 64),
                13 => Ok(0x0000_000f_c0c7_4800),
                _ => Err(()),
            };
            let stack = [0x7ffc_0000_0000, 0, u64::MAX - 40][random.below(3) as usize];
            let frames = unwinder.frames(instruction, stack, stack, &mut read);
            assert!((1..=FRAMES_MAX).contains(&frames.addresses.len()), "{frames:?}");
            assert_eq!(frames.addresses[0], instruction);
            assert!(frames.interrupted.iter().all(|n| (1..frames.addresses.len()).contains(n)), "{frames:?}");
            long += u64::from(frames.addresses.len() > 2);
            let _ = program.go_source(code + 32 * n + 3, &mut GoSteps::default());
        }
    }
    assert!(with_table > rounds(2_000) / 4 && long > rounds(2_000), "{with_table} {long}");
}
