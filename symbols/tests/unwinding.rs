//! Stacks of a program with damaged unwind tables, names and headers.
#![cfg(feature = "programs")]

mod support;

use std::process::Command;
use std::sync::Arc;

use everett_elf::Elf;
use everett_symbols::FRAMES_MAX;
use everett_symbols::program::Program;
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
