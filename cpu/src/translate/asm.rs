//! Encoder for the host instructions that translated blocks contain besides re-encoded guest instructions.
//!
//! It encodes instructions (SDM vol. 2A, chapter 2) and resolves jumps within one block. The doc comment of a method
//! shows the effect of the appended instruction, in the notation of C.

/// A host register, by its number in encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Host(pub u8);

pub(super) const RAX: Host = Host(0);
pub(super) const RCX: Host = Host(1);
pub(super) const RDX: Host = Host(2);
pub(super) const RSP: Host = Host(4);
pub(super) const RSI: Host = Host(6);
pub(super) const RDI: Host = Host(7);
pub(super) const R9: Host = Host(9);
pub(super) const R10: Host = Host(10);
pub(super) const R11: Host = Host(11);
pub(super) const R12: Host = Host(12);
pub(super) const R13: Host = Host(13);
pub(super) const R14: Host = Host(14);
pub(super) const R15: Host = Host(15);

/// Two-operand arithmetic. The value is the operation's number in encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alu {
    Add = 0,
    Or = 1,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Condition codes, as in the low four bits of the Jcc opcodes.
pub(super) const OVERFLOW: u8 = 0;
pub(super) const BELOW: u8 = 2;
pub(super) const BELOW_OR_EQUAL: u8 = 6;
pub(super) const ABOVE: u8 = 7;
pub(super) const EQUAL: u8 = 4;
pub(super) const NOT_EQUAL: u8 = 5;

/// Fields of a VEX prefix (SDM vol. 2A, 2.3.5). `map` stands for the leading bytes of the opcode, and `prefix` for a
/// mandatory prefix.
#[derive(Debug, Clone, Copy)]
struct Vex {
    map: u8,
    prefix: u8,
    /// True if the instruction has 256 bits.
    wide: bool,
    /// Register operand besides those in ModRM, or 0 if there is none.
    other: u8,
}

/// Prefix of 128 bits, for opcodes that begin with 0F.
const VEX_0F: Vex = Vex { map: 1, prefix: 0, wide: false, other: 0 };
/// Prefix of VINSERTF128 and VEXTRACTF128.
const UPPER: Vex = Vex { map: 3, prefix: 1, wide: true, other: 0 };

/// A position in the code. It may be set ("bound") before or after the jumps to it are appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Position of an unbound label.
const UNBOUND: usize = usize::MAX;

/// Code under construction.
#[derive(Debug, Default)]
pub(super) struct Asm {
    code: Vec<u8>,
    /// Address at which the code will run.
    origin: u64,
    labels: Vec<usize>,
    /// Positions of 32-bit displacements, each with the label that it leads to.
    fixups: Vec<(usize, Label)>,
    /// Positions of 8-bit displacements, each with the label that it leads to.
    short: Vec<(usize, Label)>,
}

impl Asm {
    /// Starts new code, which will run at `origin`.
    pub(super) fn clear(&mut self, origin: u64) {
        self.origin = origin;
        self.code.clear();
        self.labels.clear();
        self.fixups.clear();
        self.short.clear();
    }
    /// Returns the code. All labels that jumps use must be bound.
    pub(super) fn finish(&mut self) -> &[u8] {
        for &(at, label) in &self.fixups {
            let target = self.labels[label.0];
            debug_assert_ne!(target, UNBOUND);
            let disp = (target as i64 - (at as i64 + 4)) as i32;
            self.code[at..at + 4].copy_from_slice(&disp.to_le_bytes());
        }
        for &(at, label) in &self.short {
            let disp = i8::try_from(self.labels[label.0] as i64 - (at as i64 + 1));
            self.code[at] = disp.expect("a short jump leads over a few instructions") as u8;
        }
        self.fixups.clear();
        self.short.clear();
        &self.code
    }
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(UNBOUND);
        Label(self.labels.len() - 1)
    }
    /// Returns the address of the instruction that is appended next.
    pub(super) fn here(&self) -> u64 {
        self.origin + self.code.len() as u64
    }
    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0] = self.code.len();
    }
    /// Appends instructions that were encoded elsewhere.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    fn rex(&mut self, wide: bool, reg: u8, index: u8, base: u8) {
        let rex = 0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;
        if rex != 0x40 {
            self.code.push(rex);
        }
    }
    /// Appends the ModRM byte, SIB byte and displacement of `[base + disp]`.
    fn at(&mut self, reg: u8, base: Host, disp: i32) {
        let short = i8::try_from(disp);
        // The base RBP or R13 requires a displacement, and the base RSP or R12 a SIB byte.
        let mode = match short {
            Ok(0) if base.0 & 7 != 5 => 0,
            Ok(_) => 1,
            Err(_) => 2,
        };
        self.code.push(mode << 6 | (reg & 7) << 3 | base.0 & 7);
        if base.0 & 7 == RSP.0 {
            self.code.push(0x24);
        }
        match (mode, short) {
            (1, Ok(disp)) => self.code.push(disp as u8),
            (2, _) => self.code.extend_from_slice(&disp.to_le_bytes()),
            _ => {}
        }
    }
    fn on_memory(&mut self, wide: bool, opcode: u8, reg: u8, base: Host, disp: i32) {
        self.rex(wide, reg, 0, base.0);
        self.code.push(opcode);
        self.at(reg, base, disp);
    }
    fn on_register(&mut self, wide: bool, opcode: u8, reg: u8, rm: Host) {
        self.rex(wide, reg, 0, rm.0);
        self.code.push(opcode);
        self.code.push(0xc0 | (reg & 7) << 3 | rm.0 & 7);
    }

    /// dst = [base + disp], 64 bits.
    pub(super) fn load(&mut self, dst: Host, base: Host, disp: i32) {
        self.on_memory(true, 0x8b, dst.0, base, disp);
    }
    /// dst = [base + 8 * index], 64 bits. The base must not be RBP or R13, the index not RSP.
    pub(super) fn load_scaled(&mut self, dst: Host, base: Host, index: Host) {
        debug_assert!(base.0 & 7 != 5 && index != RSP);
        self.rex(true, dst.0, index.0, base.0);
        self.code.push(0x8b);
        self.code.push((dst.0 & 7) << 3 | 4);
        self.code.push(3 << 6 | (index.0 & 7) << 3 | base.0 & 7);
    }
    /// dst = [base + disp], 32 bits, zero-extended.
    pub(super) fn load32(&mut self, dst: Host, base: Host, disp: i32) {
        self.on_memory(false, 0x8b, dst.0, base, disp);
    }
    /// dst = [base + disp], `1 << log2` bytes, zero-extended.
    pub(super) fn load_by_width(&mut self, log2: u8, dst: Host, base: Host, disp: i32) {
        match log2 {
            0 | 1 => {
                self.rex(false, dst.0, 0, base.0);
                self.code.extend_from_slice(&[0x0f, 0xb6 + log2]);
                self.at(dst.0, base, disp);
            }
            2 => self.load32(dst, base, disp),
            _ => self.load(dst, base, disp),
        }
    }
    /// [base + disp] = src, 64 bits.
    pub(super) fn store(&mut self, base: Host, disp: i32, src: Host) {
        self.on_memory(true, 0x89, src.0, base, disp);
    }
    /// [base + disp] = src, 32 bits.
    pub(super) fn store32(&mut self, base: Host, disp: i32, src: Host) {
        self.on_memory(false, 0x89, src.0, base, disp);
    }
    /// [base + disp] = imm, 64 bits, sign-extended.
    pub(super) fn store_imm(&mut self, base: Host, disp: i32, imm: i32) {
        self.on_memory(true, 0xc7, 0, base, disp);
        self.code.extend_from_slice(&imm.to_le_bytes());
    }
    /// [base + disp] = imm, 8 bits.
    pub(super) fn store8_imm(&mut self, base: Host, disp: i32, imm: u8) {
        self.on_memory(false, 0xc6, 0, base, disp);
        self.code.push(imm);
    }
    /// XMM register `n` = [base + disp]. The address must be aligned to 16.
    pub(super) fn load_vector(&mut self, n: u8, base: Host, disp: i32) {
        self.rex(false, n, 0, base.0);
        self.code.extend_from_slice(&[0x0f, 0x28]);
        self.at(n, base, disp);
    }
    /// [base + disp] = XMM register `n`. The address must be aligned to 16.
    pub(super) fn store_vector(&mut self, base: Host, disp: i32, n: u8) {
        self.rex(false, n, 0, base.0);
        self.code.extend_from_slice(&[0x0f, 0x29]);
        self.at(n, base, disp);
    }
    /// XMM register `n` = 0.
    pub(super) fn zero_vector(&mut self, n: u8) {
        self.rex(false, n, 0, n);
        self.code.extend_from_slice(&[0x0f, 0x57, 0xc0 | (n & 7) << 3 | n & 7]);
    }
    /// XMM register `n` = [base + disp], encoded with VEX: the upper half of the YMM register becomes zero. The address
    /// must be aligned to 16.
    pub(super) fn load_vector_vex(&mut self, n: u8, base: Host, disp: i32) {
        self.vex_on_memory(VEX_0F, 0x28, n, base, disp);
    }
    /// [base + disp] = XMM register `n`, encoded with VEX. The address must be aligned to 16.
    pub(super) fn store_vector_vex(&mut self, base: Host, disp: i32, n: u8) {
        self.vex_on_memory(VEX_0F, 0x29, n, base, disp);
    }
    /// YMM register `n` = [base + disp].
    pub(super) fn load_whole(&mut self, n: u8, base: Host, disp: i32) {
        self.vex_on_memory(Vex { wide: true, ..VEX_0F }, 0x10, n, base, disp);
    }
    /// [base + disp] = YMM register `n`.
    pub(super) fn store_whole(&mut self, base: Host, disp: i32, n: u8) {
        self.vex_on_memory(Vex { wide: true, ..VEX_0F }, 0x11, n, base, disp);
    }
    /// Upper half of YMM register `n` = [base + disp].
    pub(super) fn load_upper(&mut self, n: u8, base: Host, disp: i32) {
        self.vex_on_memory(Vex { other: n, ..UPPER }, 0x18, n, base, disp);
        self.code.push(1);
    }
    /// [base + disp] = upper half of YMM register `n`.
    pub(super) fn store_upper(&mut self, base: Host, disp: i32, n: u8) {
        self.vex_on_memory(UPPER, 0x19, n, base, disp);
        self.code.push(1);
    }
    /// dst = the low 32 bits of XMM register `n`, zero-extended, or the low 64 bits with `wide`.
    pub(super) fn move_low(&mut self, dst: Host, n: u8, wide: bool) {
        let extensions = (!(n >> 3) & 1) << 7 | 1 << 6 | (!(dst.0 >> 3) & 1) << 5;
        let last = u8::from(wide) << 7 | 0x79;
        self.code.extend_from_slice(&[0xc4, extensions | 1, last, 0x7e, 0xc0 | (n & 7) << 3 | dst.0 & 7]);
    }
    /// Upper halves of all YMM registers = 0 (VZEROUPPER).
    pub(super) fn zero_uppers(&mut self) {
        self.code.extend_from_slice(&[0xc5, 0xf8, 0x77]);
    }
    /// Appends a VEX instruction with a vector register and memory.
    fn vex_on_memory(&mut self, vex: Vex, opcode: u8, reg: u8, base: Host, disp: i32) {
        let extensions = (!(reg >> 3) & 1) << 7 | 1 << 6 | (!(base.0 >> 3) & 1) << 5;
        let last = (!vex.other & 15) << 3 | u8::from(vex.wide) << 2 | vex.prefix;
        self.code.extend_from_slice(&[0xc4, extensions | vex.map, last, opcode]);
        self.at(reg, base, disp);
    }
    /// MXCSR = [base + disp], 32 bits. Reserved bits must be clear, because the host would raise #GP otherwise.
    pub(super) fn load_mxcsr(&mut self, base: Host, disp: i32) {
        self.rex(false, 0, 0, base.0);
        self.code.extend_from_slice(&[0x0f, 0xae]);
        self.at(2, base, disp);
    }
    /// [base + disp] = MXCSR, 32 bits.
    pub(super) fn store_mxcsr(&mut self, base: Host, disp: i32) {
        self.rex(false, 0, 0, base.0);
        self.code.extend_from_slice(&[0x0f, 0xae]);
        self.at(3, base, disp);
    }
    /// Sets the flags of [base + disp] & imm, one byte.
    pub(super) fn test_memory(&mut self, base: Host, disp: i32, imm: u8) {
        self.rex(false, 0, 0, base.0);
        self.code.push(0xf6);
        self.at(0, base, disp);
        self.code.push(imm);
    }
    /// [base + disp] = 1 if condition `cc` holds, else 0, 8 bits. Changes no flags.
    pub(super) fn store_condition(&mut self, base: Host, disp: i32, cc: u8) {
        self.rex(false, 0, 0, base.0);
        self.code.extend_from_slice(&[0x0f, 0x90 | cc]);
        self.at(0, base, disp);
    }
    /// CF = bit `bit` of [base + disp]. The other flags are undefined.
    pub(super) fn bit_test(&mut self, base: Host, disp: i32, bit: u8) {
        self.rex(true, 0, 0, base.0);
        self.code.extend_from_slice(&[0x0f, 0xba]);
        self.at(4, base, disp);
        self.code.push(bit);
    }
    /// Sets the flags of dst & imm, for the low byte of dst.
    pub(super) fn test_byte(&mut self, dst: Host, imm: u8) {
        // With a REX prefix, the register numbers 4 to 7 mean SPL, BPL, SIL and DIL.
        self.code.push(0x40 | dst.0 >> 3);
        self.code.extend_from_slice(&[0xf6, 0xc0 | dst.0 & 7, imm]);
    }
    /// dst = src, 64 bits.
    pub(super) fn copy(&mut self, dst: Host, src: Host) {
        self.on_register(true, 0x8b, dst.0, src);
    }
    /// dst = imm.
    pub(super) fn set(&mut self, dst: Host, imm: u64) {
        if let Ok(imm) = u32::try_from(imm) {
            self.rex(false, 0, 0, dst.0);
            self.code.push(0xb8 | dst.0 & 7);
            self.code.extend_from_slice(&imm.to_le_bytes());
        } else {
            self.rex(true, 0, 0, dst.0);
            self.code.push(0xb8 | dst.0 & 7);
            self.code.extend_from_slice(&imm.to_le_bytes());
        }
    }
    /// dst = base + disp. Changes no flags.
    pub(super) fn add_to(&mut self, dst: Host, base: Host, disp: i32) {
        if disp == 0 {
            self.copy(dst, base);
        } else {
            self.on_memory(true, 0x8d, dst.0, base, disp);
        }
    }
    /// dst = base + (index << scale) + disp. Changes no flags. The index must not be RSP.
    pub(super) fn sum(&mut self, dst: Host, base: Host, index: Host, scale: u8, disp: i32) {
        debug_assert_ne!(index, RSP);
        self.rex(true, dst.0, index.0, base.0);
        self.code.push(0x8d);
        self.code.push(0x80 | (dst.0 & 7) << 3 | 4);
        self.code.push(scale << 6 | (index.0 & 7) << 3 | base.0 & 7);
        self.code.extend_from_slice(&disp.to_le_bytes());
    }
    /// dst = (index << scale) + disp. Changes no flags. The index must not be RSP.
    pub(super) fn scaled(&mut self, dst: Host, index: Host, scale: u8, disp: i32) {
        debug_assert_ne!(index, RSP);
        self.rex(true, dst.0, index.0, 0);
        self.code.push(0x8d);
        self.code.push((dst.0 & 7) << 3 | 4);
        self.code.push(scale << 6 | (index.0 & 7) << 3 | 5);
        self.code.extend_from_slice(&disp.to_le_bytes());
    }
    /// dst op= src, in `1 << log2` bytes.
    pub(super) fn alu_by_width(&mut self, op: Alu, log2: u8, dst: Host, src: Host) {
        if log2 == 1 {
            self.code.push(0x66);
        }
        if log2 == 0 {
            // With a REX prefix, the register numbers 4 to 7 mean SPL, BPL, SIL and DIL.
            self.code.push(0x40 | (dst.0 >> 3) << 2 | src.0 >> 3);
            self.code.push((op as u8) << 3 | 2);
            self.code.push(0xc0 | (dst.0 & 7) << 3 | src.0 & 7);
        } else {
            self.on_register(log2 == 3, (op as u8) << 3 | 3, dst.0, src);
        }
    }
    /// dst op= src, 64 bits.
    pub(super) fn alu(&mut self, op: Alu, dst: Host, src: Host) {
        self.alu_by_width(op, 3, dst, src);
    }
    /// dst op= imm, 64 bits.
    pub(super) fn alu_imm(&mut self, op: Alu, dst: Host, imm: i32) {
        match i8::try_from(imm) {
            Ok(imm) => {
                self.on_register(true, 0x83, op as u8, dst);
                self.code.push(imm as u8);
            }
            Err(_) => {
                self.on_register(true, 0x81, op as u8, dst);
                self.code.extend_from_slice(&imm.to_le_bytes());
            }
        }
    }
    /// dst &= imm, 32 bits, zero-extended.
    pub(super) fn and32(&mut self, dst: Host, imm: u32) {
        self.on_register(false, 0x81, Alu::And as u8, dst);
        self.code.extend_from_slice(&imm.to_le_bytes());
    }
    /// dst op= [base + disp], 64 bits.
    pub(super) fn alu_memory(&mut self, op: Alu, dst: Host, base: Host, disp: i32) {
        self.on_memory(true, (op as u8) << 3 | 3, dst.0, base, disp);
    }
    /// [base + disp] op= imm, 64 bits.
    pub(super) fn alu_memory_imm(&mut self, op: Alu, base: Host, disp: i32, imm: i8) {
        self.on_memory(true, 0x83, op as u8, base, disp);
        self.code.push(imm as u8);
    }
    /// [base + disp] op= imm, 8 bits.
    pub(super) fn alu8_memory_imm(&mut self, op: Alu, base: Host, disp: i32, imm: u8) {
        self.on_memory(false, 0x80, op as u8, base, disp);
        self.code.push(imm);
    }
    /// dst = address. The address must be within reach of a 32-bit displacement.
    pub(super) fn address(&mut self, dst: Host, address: u64) {
        self.rex(true, dst.0, 0, 0);
        self.code.push(0x8d);
        self.code.push((dst.0 & 7) << 3 | 5);
        self.displacement(address);
    }
    /// dst = address of a label.
    pub(super) fn address_of(&mut self, dst: Host, label: Label) {
        self.rex(true, dst.0, 0, 0);
        self.code.push(0x8d);
        self.code.push((dst.0 & 7) << 3 | 5);
        self.fixups.push((self.code.len(), label));
        self.code.extend_from_slice(&[0; 4]);
    }
    /// Appends the displacement to `address`, which must be within reach of 32 bits. Must be the last part of its
    /// instruction.
    fn displacement(&mut self, address: u64) {
        let disp = address.wrapping_sub(self.here() + 4) as i64;
        debug_assert!(i32::try_from(disp).is_ok());
        self.code.extend_from_slice(&(disp as i32).to_le_bytes());
    }
    /// Sets the flags of a & b, in `1 << log2` bytes.
    pub(super) fn test(&mut self, log2: u8, a: Host, b: Host) {
        if log2 == 1 {
            self.code.push(0x66);
        }
        if log2 == 0 {
            self.code.push(0x40 | (b.0 >> 3) << 2 | a.0 >> 3);
            self.code.push(0x84);
            self.code.push(0xc0 | (b.0 & 7) << 3 | a.0 & 7);
        } else {
            self.on_register(log2 == 3, 0x85, b.0, a);
        }
    }
    /// dst >>= count, 64 bits.
    pub(super) fn shift_right(&mut self, dst: Host, count: u8) {
        self.on_register(true, 0xc1, 5, dst);
        self.code.push(count);
    }
    /// dst >>= count, 32 bits, zero-extended.
    pub(super) fn shift_right32(&mut self, dst: Host, count: u8) {
        self.on_register(false, 0xc1, 5, dst);
        self.code.push(count);
    }
    /// dst = src rotated right by `count`, 32 bits, zero-extended. Changes no flags. The host must have BMI2 (RORX).
    pub(super) fn rotated32(&mut self, dst: Host, src: Host, count: u8) {
        let extensions = (!(dst.0 >> 3) & 1) << 7 | 1 << 6 | (!(src.0 >> 3) & 1) << 5;
        let registers = 3 << 6 | (dst.0 & 7) << 3 | src.0 & 7;
        self.code.extend_from_slice(&[0xc4, extensions | 3, 0x7b, 0xf0, registers, count]);
    }
    /// dst ^= src, 32 bits, zero-extended.
    pub(super) fn xor32(&mut self, dst: Host, src: Host) {
        self.on_register(false, 0x33, dst.0, src);
    }
    /// dst >>= count, 64 bits, signed.
    pub(super) fn shift_right_signed(&mut self, dst: Host, count: u8) {
        self.on_register(true, 0xc1, 7, dst);
        self.code.push(count);
    }
    /// dst = dst rotated left by count, 64 bits.
    pub(super) fn rotate_left(&mut self, dst: Host, count: u8) {
        self.on_register(true, 0xc1, 0, dst);
        self.code.push(count);
    }
    /// dst = dst rotated by one, in `1 << log2` bytes. Sets only CF and OF.
    pub(super) fn rotate_by_one(&mut self, left: bool, log2: u8, dst: Host) {
        if log2 == 1 {
            self.code.push(0x66);
        }
        // Without a REX prefix, the byte registers 4 to 7 are AH to BH.
        debug_assert!(log2 > 0 || dst.0 < 4 || dst.0 > 7);
        self.on_register(log2 == 3, if log2 == 0 { 0xd0 } else { 0xd1 }, u8::from(!left), dst);
    }
    /// dst <<= count, 64 bits.
    pub(super) fn shift_left(&mut self, dst: Host, count: u8) {
        self.on_register(true, 0xc1, 4, dst);
        self.code.push(count);
    }
    /// If condition `cc` holds, dst = src, 64 bits. Changes no flags.
    pub(super) fn copy_if(&mut self, cc: u8, dst: Host, src: Host) {
        self.on_two_bytes(0x40 | cc, dst, src);
    }
    /// dst = number of the lowest bit that is set in src, or of the highest bit with `reverse`. If src is 0, dst is
    /// undefined. The flags are undefined, except ZF.
    pub(super) fn bit_scan(&mut self, reverse: bool, dst: Host, src: Host) {
        self.on_two_bytes(0xbc + u8::from(reverse), dst, src);
    }
    /// dst = number of bits that are set in src, 64 bits. The host must have POPCNT.
    pub(super) fn count_ones(&mut self, dst: Host, src: Host) {
        self.code.push(0xf3);
        self.on_two_bytes(0xb8, dst, src);
    }
    /// Appends an instruction on two registers of 64 bits with the opcode 0F `opcode`.
    fn on_two_bytes(&mut self, opcode: u8, dst: Host, src: Host) {
        self.rex(true, dst.0, 0, src.0);
        self.code.extend_from_slice(&[0x0f, opcode, 0xc0 | (dst.0 & 7) << 3 | src.0 & 7]);
    }
    /// Divides RDX and RAX by `divisor`: RAX = quotient, RDX = remainder, in `1 << log2` bytes (4 or 8). The flags are
    /// undefined. The quotient must fit, because the host would raise #DE otherwise.
    pub(super) fn divide(&mut self, signed: bool, log2: u8, divisor: Host) {
        self.on_register(log2 == 3, 0xf7, 6 + u8::from(signed), divisor);
    }
    /// dst = the low 32 bits of src, sign-extended.
    pub(super) fn extend32(&mut self, dst: Host, src: Host) {
        self.on_register(true, 0x63, dst.0, src);
    }
    /// dst = the low 16 bits of src, sign-extended to 32 bits, then zero-extended.
    pub(super) fn extend16(&mut self, dst: Host, src: Host) {
        self.rex(false, dst.0, 0, src.0);
        self.code.extend_from_slice(&[0x0f, 0xbf, 0xc0 | (dst.0 & 7) << 3 | src.0 & 7]);
    }
    /// dst = src, 32 bits, zero-extended.
    pub(super) fn copy32(&mut self, dst: Host, src: Host) {
        self.on_register(false, 0x8b, dst.0, src);
    }

    pub(super) fn push(&mut self, reg: Host) {
        self.rex(false, 0, 0, reg.0);
        self.code.push(0x50 | reg.0 & 7);
    }
    pub(super) fn pop(&mut self, reg: Host) {
        self.rex(false, 0, 0, reg.0);
        self.code.push(0x58 | reg.0 & 7);
    }
    /// Pushes the host's flags.
    pub(super) fn push_flags(&mut self) {
        self.code.push(0x9c);
    }
    /// Pops the host's flags.
    pub(super) fn pop_flags(&mut self) {
        self.code.push(0x9d);
    }
    pub(super) fn ret(&mut self) {
        self.code.push(0xc3);
    }
    pub(super) fn call(&mut self, to: Host) {
        self.rex(false, 0, 0, to.0);
        self.code.extend_from_slice(&[0xff, 0xd0 | to.0 & 7]);
    }
    /// Calls code within reach of a 32-bit displacement.
    pub(super) fn call_to(&mut self, address: u64) {
        self.code.push(0xe8);
        self.displacement(address);
    }
    /// Jumps to code within reach of a 32-bit displacement.
    pub(super) fn jump_to(&mut self, address: u64) {
        self.code.push(0xe9);
        self.displacement(address);
    }
    pub(super) fn jump_register(&mut self, to: Host) {
        self.rex(false, 0, 0, to.0);
        self.code.extend_from_slice(&[0xff, 0xe0 | to.0 & 7]);
    }
    /// Jumps to code within reach of a 32-bit displacement if condition `cc` holds.
    pub(super) fn jump_to_if(&mut self, cc: u8, address: u64) {
        self.code.extend_from_slice(&[0x0f, 0x80 | cc]);
        self.displacement(address);
    }
    /// Jumps to a label at most 127 bytes away if condition `cc` holds.
    pub(super) fn jump_short_if(&mut self, cc: u8, to: Label) {
        self.code.push(0x70 | cc);
        self.short.push((self.code.len(), to));
        self.code.push(0);
    }
    /// Jumps to a label.
    pub(super) fn jump(&mut self, to: Label) {
        self.code.push(0xe9);
        self.fixups.push((self.code.len(), to));
        self.code.extend_from_slice(&[0; 4]);
    }
    /// Jumps to a label if condition `cc` holds.
    pub(super) fn jump_if(&mut self, cc: u8, to: Label) {
        self.code.extend_from_slice(&[0x0f, 0x80 | cc]);
        self.fixups.push((self.code.len(), to));
        self.code.extend_from_slice(&[0; 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};

    /// Returns the disassembly of `code`, one instruction per line.
    fn text(code: &[u8]) -> String {
        let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
        let line = |i: Instruction| {
            let operands: Vec<String> = (0..i.op_count()).map(|at| operand(&i, at)).collect();
            format!("{:?} {}", i.mnemonic(), operands.join(",")).trim_end().to_lowercase() + "\n"
        };
        decoder.into_iter().map(line).collect()
    }

    fn operand(i: &Instruction, at: u32) -> String {
        match i.op_kind(at) {
            OpKind::Register => format!("{:?}", i.op_register(at)),
            OpKind::Memory => {
                let index = match i.memory_index() {
                    Register::None => String::new(),
                    index => format!("+{index:?}*{}", i.memory_index_scale()),
                };
                format!("[{:?}{index}{:+}]", i.memory_base(), i.memory_displacement64() as i64)
            }
            OpKind::Immediate8 => i.immediate8().to_string(),
            _ => i.near_branch64().to_string(),
        }
    }

    #[test]
    fn each_instruction_is_what_it_says_for_every_register() {
        let name = |n: u8| {
            ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"]
                .get(usize::from(n))
                .map_or_else(|| format!("r{n}"), |name| (*name).to_owned())
        };
        for a in 0..16 {
            for b in 0..16 {
                let mut asm = Asm::default();
                asm.load(Host(a), Host(b), 0x10);
                asm.store(Host(b), -0x1000, Host(a));
                asm.alu(Alu::Cmp, Host(a), Host(b));
                asm.alu_memory(Alu::Add, Host(a), Host(b), 0);
                asm.copy(Host(a), Host(b));
                asm.extend32(Host(a), Host(b));
                asm.store32(Host(b), 0x10, Host(a));
                asm.rotated32(Host(a), Host(b), 7);
                asm.rotate_by_one(true, 3, Host(a));
                asm.rotate_by_one(false, 2, Host(b));
                asm.load_vector_vex(a, Host(b), 0x20);
                asm.store_vector_vex(Host(b), -0x1000, a);
                asm.load_whole(a, Host(b), 0);
                asm.store_whole(Host(b), 0, a);
                asm.load_upper(a, Host(b), 0x10);
                asm.store_upper(Host(b), 0x10, a);
                asm.zero_uppers();
                asm.move_low(Host(b), a, false);
                asm.move_low(Host(b), a, true);
                if Host(a) != RSP {
                    asm.sum(Host(b), Host(b), Host(a), 3, 8);
                }
                let vector = a;
                let (a, b) = (name(a), name(b));
                let mut lines = vec![
                    format!("mov {a},[{b}+16]"),
                    format!("mov [{b}-4096],{a}"),
                    format!("cmp {a},{b}"),
                    format!("add {a},[{b}+0]"),
                    format!("mov {a},{b}"),
                    format!("movsxd {a},{}", narrow(&b)),
                    format!("mov [{b}+16],{}", narrow(&a)),
                    format!("rorx {},{},7", narrow(&a), narrow(&b)),
                    format!("rol {a},1"),
                    format!("ror {},1", narrow(&b)),
                    format!("vmovaps xmm{vector},[{b}+32]"),
                    format!("vmovaps [{b}-4096],xmm{vector}"),
                    format!("vmovups ymm{vector},[{b}+0]"),
                    format!("vmovups [{b}+0],ymm{vector}"),
                    format!("vinsertf128 ymm{vector},ymm{vector},[{b}+16],1"),
                    format!("vextractf128 [{b}+16],ymm{vector},1"),
                    "vzeroupper".to_owned(),
                    format!("vmovd {},xmm{vector}", narrow(&b)),
                    format!("vmovq {b},xmm{vector}"),
                ];
                if a != "rsp" {
                    lines.push(format!("lea {b},[{b}+{a}*8+8]"));
                }
                assert_eq!(text(asm.finish()).trim_end(), lines.join("\n"));
            }
        }
    }

    fn narrow(name: &str) -> String {
        match name.strip_prefix('r') {
            Some(rest) if rest.as_bytes()[0].is_ascii_digit() => format!("{name}d"),
            Some(rest) => format!("e{rest}"),
            None => name.to_owned(),
        }
    }

    #[test]
    fn jumps_lead_where_they_were_bound() {
        let mut asm = Asm::default();
        let (end, middle) = (asm.label(), asm.label());
        asm.jump_if(EQUAL, end);
        asm.bind(middle);
        asm.ret();
        asm.bind(end);
        asm.jump_if(NOT_EQUAL, middle);
        assert_eq!(text(asm.finish()), "je 7\nret\njne 6\n");
    }
}
