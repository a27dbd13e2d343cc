//! Names of registers.

use everett_inspect::registers::ProgramRegisters;

/// A register that an expression can name: its place in [`ProgramRegisters`], and the bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    place: usize,
    shift: u32,
    bytes: u32,
}

/// Registers of 64 bits in the order of [`ProgramRegisters`], whose entry 15 is no register.
const WHOLE: [&str; 27] = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
    "", "rip", "cs", "rflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
];

/// Parts of registers by the name of the whole one: the lowest 4, 2 and 1 bytes, and the second byte.
const PARTS: [(&str, [&str; 4]); 8] = [
    ("rax", ["eax", "ax", "al", "ah"]),
    ("rbx", ["ebx", "bx", "bl", "bh"]),
    ("rcx", ["ecx", "cx", "cl", "ch"]),
    ("rdx", ["edx", "dx", "dl", "dh"]),
    ("rsi", ["esi", "si", "sil", ""]),
    ("rdi", ["edi", "di", "dil", ""]),
    ("rbp", ["ebp", "bp", "bpl", ""]),
    ("rsp", ["esp", "sp", "spl", ""]),
];

impl Register {
    /// Returns the register with this name, such as `rdi`, `edi` or `r8d`.
    #[must_use]
    pub fn named(name: &str) -> Option<Register> {
        let place = |name: &str| {
            let name = match name {
                "pc" => "rip",
                "eflags" => "rflags",
                name => name,
            };
            WHOLE.iter().position(|whole| !name.is_empty() && *whole == name)
        };
        if let Some(place) = place(name) {
            return Some(Register { place, shift: 0, bytes: 8 });
        }
        for (whole, parts) in PARTS {
            if let Some(part) = parts.iter().position(|part| !name.is_empty() && *part == name) {
                let (shift, bytes) = [(0, 4), (0, 2), (0, 1), (8, 1)][part];
                return Some(Register { place: place(whole)?, shift, bytes });
            }
        }
        let numbered = |end: char, bytes: u32| {
            let whole = name.strip_suffix(end).filter(|whole| whole.starts_with('r'))?;
            whole.get(1..)?.parse::<u8>().ok()?;
            Some(Register { place: place(whole)?, shift: 0, bytes })
        };
        numbered('d', 4).or_else(|| numbered('w', 2)).or_else(|| numbered('b', 1))
    }

    /// Returns the register's value.
    #[must_use]
    pub fn value(self, registers: &ProgramRegisters) -> u64 {
        let whole = registers.0.get(self.place).copied().unwrap_or_default() >> self.shift;
        whole & u64::MAX >> (64 - 8 * self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_and_their_parts_have_names() {
        let registers = ProgramRegisters(std::array::from_fn(|n| 0x1122_3344_5566_7700 + n as u64));
        let value = |name| Register::named(name).map(|register| register.value(&registers));
        assert_eq!(value("rdi"), Some(0x1122_3344_5566_770e));
        assert_eq!((value("edi"), value("ah"), value("al")), (Some(0x5566_770e), Some(0x77), Some(0x0a)));
        assert_eq!((value("r8d"), value("r15b")), (Some(0x5566_7709), Some(0)));
        assert_eq!(value("pc"), value("rip"));
        for none in ["", "r16", "rd", "r8x", "xyz", "rdib"] {
            assert_eq!(value(none), None, "{none}");
        }
    }
}
