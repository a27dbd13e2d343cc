//! Registers in the order that gdb expects: those of the features `core`, `sse`, `linux` and
//! `segments` (GDB manual, "i386
//! Features").

use std::fmt::Write as _;

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
pub struct Registers(pub ProgramRegisters);

impl Default for Registers {
    fn default() -> Registers {
        Registers(ProgramRegisters([0; everett_inspect::registers::COUNT]))
    }
}

impl gdbstub::arch::Registers for Registers {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.0.0[RIP]
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let all = &self.0.0;
        let mut write = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        GENERAL.iter().for_each(|n| write(&all[*n].to_le_bytes()));
        SHORT.iter().for_each(|n| write(&(all[*n] as u32).to_le_bytes()));
        // gdb shows these registers as unavailable.
        (0..FLOATING_BYTES).for_each(|_| write_byte(None));
        let mut write = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        LAST.iter().for_each(|n| write(&all[*n].to_le_bytes()));
    }

    fn gdb_deserialize(&mut self, _: &[u8]) -> Result<(), ()> {
        Err(())
    }
}

/// Returns the description of these registers in the form that gdb reads ("Target Description Format").
#[must_use]
pub fn description() -> String {
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
    xml.push_str("</feature></target>");
    xml
}
