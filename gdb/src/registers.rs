//! Registers in the order that gdb expects: those of the features `core`, `sse`, `linux`, `segments` and, if the CPU has AVX,
//! `avx` (GDB manual, "i386 Features").

use std::fmt::Write as _;

use everett_inspect::floating::{FloatingRegisters, LEGACY_BYTES};
use everett_inspect::registers::ProgramRegisters;
use gdbstub::arch::Arch;

/// General registers in gdb's order, by their places in `struct user_regs_struct`: RAX, RBX, RCX, RDX, RSI, RDI, RBP,
/// RSP, R8 to R15, RIP.
const GENERAL: [usize; 17] = [10, 5, 11, 12, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16];
/// RFLAGS and segment registers in gdb's order (CS, SS, DS, ES, FS, GS), which have 32 bits.
const SHORT: [usize; 7] = [18, 17, 20, 23, 24, 25, 26];
/// The number of the system call, and the bases of FS and GS.
const LAST: [usize; 3] = [15, 21, 22];
/// Place of RIP in `struct user_regs_struct`.
const RIP: usize = 16;
/// Length of the x87 and SSE registers behind the segment registers, in bytes: eight of 10 bytes, eight
/// of 4 bytes, sixteen of 16 bytes, and MXCSR.
const FLOATING_BYTES: usize = 8 * 10 + 8 * 4 + 16 * 16 + 4;
/// Length of the upper halves of YMM0 to YMM15, in bytes.
const UPPER_BYTES: usize = 16 * 16;

/// x86-64 with the registers that Everett reads.
pub enum X86_64 {}

impl Arch for X86_64 {
    type Usize = u64;
    type Registers = Registers;
    type RegId = ();
    type BreakpointKind = usize;
}

/// All registers of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers {
    /// General, segment and other registers.
    pub general: ProgramRegisters,
    /// The x87, SSE and AVX registers. `None` if they are not known; gdb then shows them as unavailable.
    pub floating: Option<FloatingRegisters>,
    /// True if the CPU has AVX, so that gdb expects the upper halves of the YMM registers.
    pub has_avx: bool,
}

impl Default for Registers {
    fn default() -> Registers {
        let general = ProgramRegisters([0; everett_inspect::registers::COUNT]);
        Registers { general, floating: None, has_avx: false }
    }
}

/// Returns the x87 and SSE registers in gdb's order, from the area that FXSAVE64 stores (SDM volume 1, 10.5.1).
fn floating(area: &[u8; LEGACY_BYTES]) -> Vec<u8> {
    /// Offsets in the area. The x87 registers stand in the order of the stack, each in 16 bytes.
    const TAGS: usize = 4;
    const OPCODE: usize = 6;
    const INSTRUCTION: usize = 8;
    const OPERAND: usize = 16;
    const MXCSR: usize = 24;
    const STACK: usize = 32;
    const VECTORS: usize = 160;
    let short = |at: usize| u16::from_le_bytes([area[at], area[at + 1]]);
    let stack = |n: usize| &area[STACK + 16 * n..STACK + 16 * n + 10];
    let top = usize::from(short(2) >> 11 & 7);
    // The area has one bit for each register that is not empty, and gdb expects the tags of FSAVE.
    let tag = |register: usize| match area[TAGS] >> register & 1 {
        0 => 3,
        _ => tag(stack((register + 8 - top) & 7)),
    };
    let tags = (0..8).fold(0, |tags: u16, register| tags | tag(register) << (2 * register));
    let mut all: Vec<u8> = (0..8).flat_map(stack).copied().collect();
    let control = [short(0), short(2), tags].map(u32::from);
    // FXSAVE64 has 64 bits of each address. gdb takes the upper ones for a segment and a further part.
    let address =
        |at: usize| [u32::from(short(at + 4)), u32::from(short(at)) | u32::from(short(at + 2)) << 16];
    let control =
        [&control[..], &address(INSTRUCTION), &address(OPERAND), &[u32::from(short(OPCODE))]].concat();
    all.extend(control.iter().flat_map(|register| register.to_le_bytes()));
    all.extend_from_slice(&area[VECTORS..VECTORS + 16 * 16]);
    all.extend_from_slice(&area[MXCSR..MXCSR + 4]);
    all
}

/// Returns the tag of an x87 register that is not empty (SDM volume 1, 8.1.7): 0 for a valid number, 1 for zero, 2 for others.
fn tag(register: &[u8]) -> u16 {
    let exponent = u16::from_le_bytes([register[8], register[9]]) & 0x7fff;
    let is_normal = register[7] & 0x80 != 0;
    match exponent {
        0 if register[..8].iter().all(|byte| *byte == 0) => 1,
        1..=0x7ffe if is_normal => 0,
        _ => 2,
    }
}

impl gdbstub::arch::Registers for Registers {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.general.0[RIP]
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let all = &self.general.0;
        let mut write = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        GENERAL.iter().for_each(|n| write(&all[*n].to_le_bytes()));
        SHORT.iter().for_each(|n| write(&(all[*n] as u32).to_le_bytes()));
        match &self.floating {
            Some(registers) => {
                floating(&registers.legacy).into_iter().for_each(|byte| write_byte(Some(byte)));
            }
            None => (0..FLOATING_BYTES).for_each(|_| write_byte(None)),
        }
        let mut write = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        LAST.iter().for_each(|n| write(&all[*n].to_le_bytes()));
        match self.floating.and_then(|registers| registers.upper).filter(|_| self.has_avx) {
            Some(upper) => upper.iter().for_each(|half| write(&half.to_le_bytes())),
            None if self.has_avx => (0..UPPER_BYTES).for_each(|_| write_byte(None)),
            None => {}
        }
    }

    fn gdb_deserialize(&mut self, _: &[u8]) -> Result<(), ()> {
        Err(())
    }
}

/// Returns the description of these registers in the form that gdb reads ("Target Description Format"), for a CPU with or
/// without AVX.
#[must_use]
pub fn description(has_avx: bool) -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>\
         <architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>\
         <feature name=\"org.gnu.gdb.i386.core\">",
    );
    let mut put = |name: &str, bits: u32, kind: &str| {
        // Writing to a string cannot fail.
        let _ = write!(xml, "<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\"/>");
    };
    let general = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi"];
    general.iter().for_each(|name| put(name, 64, "int64"));
    ["rbp", "rsp"].iter().for_each(|name| put(name, 64, "data_ptr"));
    (8..16).for_each(|n| put(&format!("r{n}"), 64, "int64"));
    put("rip", 64, "code_ptr");
    ["eflags", "cs", "ss", "ds", "es", "fs", "gs"].iter().for_each(|name| put(name, 32, "int32"));
    (0..8).for_each(|n| put(&format!("st{n}"), 80, "i387_ext"));
    let control = ["fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"];
    control.iter().for_each(|name| put(name, 32, "int"));
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.sse\">");
    xml.push_str("<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/><vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>");
    xml.push_str(
        "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>",
    );
    xml.push_str(
        "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>",
    );
    xml.push_str(
        "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>\
         <field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/>\
         <field name=\"v4_int32\" type=\"v4i32\"/><field name=\"v2_int64\" type=\"v2i64\"/>\
         <field name=\"uint128\" type=\"uint128\"/></union>",
    );
    let mut put = |name: &str, bits: u32, kind: &str| {
        let _ = write!(xml, "<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\"/>");
    };
    (0..16).for_each(|n| put(&format!("xmm{n}"), 128, "vec128"));
    put("mxcsr", 32, "int");
    // Without this feature, gdb does not look for shared libraries as on Linux.
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.linux\">");
    xml.push_str("<reg name=\"orig_rax\" bitsize=\"64\" type=\"int\" group=\"system\"/>");
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.segments\">");
    let mut put = |name: &str| {
        let _ = write!(xml, "<reg name=\"{name}\" bitsize=\"64\" type=\"int64\"/>");
    };
    ["fs_base", "gs_base"].iter().for_each(|name| put(name));
    if has_avx {
        xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.avx\">");
        for n in 0..16 {
            let _ = write!(xml, "<reg name=\"ymm{n}h\" bitsize=\"128\" type=\"uint128\"/>");
        }
    }
    xml.push_str("</feature></target>");
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    use gdbstub::arch::Registers as _;

    #[test]
    fn floating_registers_stand_in_the_order_of_gdb() {
        let mut area = [0; LEGACY_BYTES];
        let mut put = |at: usize, bytes: &[u8]| area[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &0x037f_u16.to_le_bytes());
        // The top of the stack is register 6; registers 6 and 7 have values.
        put(2, &(6_u16 << 11).to_le_bytes());
        put(4, &[0xc0]);
        put(6, &0x123_u16.to_le_bytes());
        put(8, &0x7fff_1234_5678_u64.to_le_bytes());
        put(24, &0x1f80_u32.to_le_bytes());
        let pi = [&0xc90f_daa2_2168_c235_u64.to_le_bytes()[..], &0x4000_u16.to_le_bytes()].concat();
        put(32, &pi);
        put(160 + 16 * 15, &[7; 16]);
        let all = floating(&area);
        assert_eq!(all.len(), FLOATING_BYTES);
        assert_eq!((&all[..10], &all[10..20]), (&pi[..], &[0; 10][..]));
        let control = |n: usize| u32::from_le_bytes(all[80 + 4 * n..84 + 4 * n].try_into().unwrap());
        // ST0 is a number, and ST1, register 7, is zero.
        assert_eq!((control(0), control(1), control(2)), (0x37f, 6 << 11, 0x4fff));
        assert_eq!((control(3), control(4), control(7)), (0x7fff, 0x1234_5678, 0x123));
        assert_eq!((&all[352..368], &all[368..]), (&[7; 16][..], &0x1f80_u32.to_le_bytes()[..]));
    }

    /// gdb reads as many bytes as the description says.
    #[test]
    fn the_description_and_the_values_have_the_same_length() {
        let upper: [u128; 16] = std::array::from_fn(|n| n as u128 + 1);
        let known = |upper| Some(FloatingRegisters { legacy: [7; LEGACY_BYTES], upper });
        let described = |has_avx| {
            let text = description(has_avx);
            let sizes = text.split("bitsize=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
            sizes.map(|bits| bits.parse::<usize>().unwrap() / 8).sum::<usize>()
        };
        let written = |floating, has_avx| {
            let mut bytes = Vec::new();
            Registers { floating, has_avx, ..Registers::default() }.gdb_serialize(|byte| bytes.push(byte));
            assert_eq!(bytes.len(), described(has_avx));
            bytes.split_off(described(false))
        };
        for has_avx in [false, true] {
            let unavailable = vec![None; described(has_avx) - described(false)];
            assert_eq!(written(None, has_avx), unavailable);
            assert_eq!(written(known(None), has_avx), unavailable);
        }
        assert_eq!(written(known(Some(upper)), false), []);
        let halves = written(known(Some(upper)), true);
        let expected = upper.iter().flat_map(|half| half.to_le_bytes().map(Some)).collect::<Vec<_>>();
        assert_eq!((halves.len(), halves), (UPPER_BYTES, expected));
    }
}
