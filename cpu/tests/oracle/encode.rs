//! Random encodings of an instruction form (an opcode with its operand kinds): prefixes, opcode, ModRM, SIB,
//! displacement, immediate. An assembler always chooses the same encoding of an instruction. This encoder chooses at
//! random among the valid encodings.

use crate::arena::{DATA, DATA_LEN, HIGH, LOW};
use crate::rng::Rng;
use everett_cpu::CpuModel;
use iced_x86::{
    Code, Decoder, EncodingKind, Instruction, MandatoryPrefix, OpCodeInfo, OpCodeOperandKind as Kind,
    OpCodeTableKind,
};

/// Maximum length of an instruction in bytes (SDM vol. 2A, 2.3.11).
pub(crate) const LEN_MAX: usize = 15;

/// Bytes of one instruction, and the instruction that the decoder returns for them.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) instruction: Instruction,
}

/// Decodes one instruction of a CPU model at `rip`.
pub(crate) fn decode(bytes: &[u8], rip: u64, model: CpuModel) -> Encoded {
    let mut decoder = Decoder::with_ip(64, bytes, rip, model.decoder_options());
    let instruction = decoder.decode();
    Encoded { bytes: bytes.to_vec(), instruction }
}

/// Returns a random encoding of `code` at address `rip`. Returns `None` if 64 attempts gave no valid encoding.
pub(crate) fn encode(code: Code, rip: u64, model: CpuModel, rng: &mut Rng) -> Option<Encoded> {
    (0..64).find_map(|_| {
        let bytes = Draft::new(code.op_code(), rip, rng).finish()?;
        let e = decode(&bytes, rip, model);
        (e.instruction.code() == code && e.instruction.len() == bytes.len()).then_some(e)
    })
}

/// Bytes of an encoding, as far as they are drawn.
pub(super) struct Draft<'a> {
    pub(super) info: &'a OpCodeInfo,
    rip: u64,
    pub(super) rng: &'a mut Rng,
    pub(super) bytes: Vec<u8>,
    /// Low four bits of the REX prefix.
    pub(super) rex: u8,
    pub(super) address_32: bool,
    /// Offset in `bytes` of the displacement of a RIP-relative operand.
    pub(super) relative: Option<usize>,
}

impl<'a> Draft<'a> {
    fn new(info: &'a OpCodeInfo, rip: u64, rng: &'a mut Rng) -> Draft<'a> {
        Draft { info, rip, rng, bytes: Vec::with_capacity(16), rex: 0, address_32: false, relative: None }
    }
    fn finish(mut self) -> Option<Vec<u8>> {
        if self.info.encoding() == EncodingKind::VEX {
            return self.finish_vex();
        }
        self.prefixes();
        let head = self.bytes.len();
        self.opcode();
        let rex = self.rex;
        // A REX prefix may have no bits set. It then selects SPL instead of AH.
        if rex != 0 || self.rng.one_in(8) {
            self.bytes.insert(head, 0x40 | rex);
            self.relative = self.relative.map(|at| at + 1);
        }
        self.immediates();
        self.end()
    }
    /// Fills in the displacement of a RIP-relative operand. Returns the bytes, or `None` if they are too many.
    pub(super) fn end(mut self) -> Option<Vec<u8>> {
        if let Some(at) = self.relative {
            let next = self.rip.wrapping_add(self.bytes.len() as u64);
            let to = self.target(self.rip);
            let displacement = to.wrapping_sub(next) as u32;
            self.bytes[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
        }
        (self.bytes.len() <= LEN_MAX).then_some(self.bytes)
    }
    /// Returns a random address in `DATA`. The test memory is mapped twice, at `LOW` and at `HIGH`. The address is in
    /// the same mapping as `near`.
    fn target(&mut self, near: u64) -> u64 {
        let view = if near >= HIGH { HIGH } else { LOW };
        view + DATA + self.rng.below(DATA_LEN)
    }
    fn prefixes(&mut self) {
        let info = self.info;
        if info.can_use_lock_prefix() && self.rng.one_in(4) {
            self.bytes.push(0xf0);
        }
        if info.can_use_rep_prefix() && self.rng.one_in(2) {
            self.bytes.push(0xf3);
        } else if info.can_use_repne_prefix() && self.rng.one_in(2) {
            self.bytes.push(0xf2);
        }
        // In 64-bit mode, prefixes for CS, SS, DS and ES have no effect or are hints. A prefix for GS moves the
        // address, because the GS base is not zero.
        if self.rng.one_in(8) {
            let segment = self.rng.pick(&[0x2e, 0x36, 0x3e, 0x26, 0x65]);
            self.bytes.push(segment);
        }
        self.address_32 = match info.address_size() {
            32 => true,
            64 => false,
            _ => self.rng.one_in(10),
        };
        if self.address_32 {
            self.bytes.push(0x67);
        }
        match info.mandatory_prefix() {
            MandatoryPrefix::P66 => self.bytes.push(0x66),
            MandatoryPrefix::PF3 => self.bytes.push(0xf3),
            MandatoryPrefix::PF2 => self.bytes.push(0xf2),
            _ => {}
        }
        if info.operand_size() == 16 && info.mandatory_prefix() != MandatoryPrefix::P66 {
            self.bytes.push(0x66);
        }
        // A prefix that the instruction may ignore. If the instruction does not ignore it, the bytes decode to another
        // form, and `encode` makes another attempt.
        if self.rng.one_in(32) {
            let ignored = self.rng.pick(&[0x66, 0xf2, 0xf3, 0x66]);
            self.bytes.push(ignored);
        }
        let n = self.bytes.len() as u64;
        if n > 1 && self.rng.one_in(2) {
            let (a, b) = (self.rng.below(n), self.rng.below(n));
            self.bytes.swap(a as usize, b as usize);
        }
        if info.operand_size() == 64 && !(info.default_op_size64() || info.force_op_size64())
            || self.rng.one_in(64)
        {
            self.rex |= 8;
        }
    }
    fn opcode(&mut self) {
        match self.info.table() {
            OpCodeTableKind::T0F => self.bytes.push(0x0f),
            OpCodeTableKind::T0F38 => self.bytes.extend([0x0f, 0x38]),
            OpCodeTableKind::T0F3A => self.bytes.extend([0x0f, 0x3a]),
            _ => {}
        }
        let opcode = self.info.op_code();
        if self.info.op_code_len() == 2 {
            self.bytes.push((opcode >> 8) as u8);
        }
        self.bytes.push(opcode as u8);
        let mut reg = self.info.is_group().then(|| self.info.group_index() as u8);
        let mut rm = None;
        for &kind in self.info.op_kinds() {
            match kind {
                Kind::r8_opcode | Kind::r16_opcode | Kind::r32_opcode | Kind::r64_opcode => {
                    *self.bytes.last_mut().expect("the opcode") += self.rng.below(8) as u8;
                    self.rex |= self.rng.below(2) as u8;
                }
                Kind::sti_opcode => *self.bytes.last_mut().expect("the opcode") += self.rng.below(8) as u8,
                Kind::r8_reg
                | Kind::r16_reg
                | Kind::r32_reg
                | Kind::r64_reg
                | Kind::xmm_reg
                | Kind::mm_reg => {
                    reg = Some(self.rng.below(8) as u8);
                    self.rex |= self.rng.pick(&[0, 4]);
                }
                Kind::seg_reg | Kind::cr_reg | Kind::dr_reg => reg = Some(self.rng.below(8) as u8),
                Kind::r16_rm | Kind::r32_rm | Kind::r64_rm | Kind::xmm_rm | Kind::mm_rm => {
                    rm = Some(Rm::Register)
                }
                Kind::mem | Kind::mem_mib => rm = Some(Rm::Memory),
                Kind::r8_or_mem
                | Kind::r16_or_mem
                | Kind::r32_or_mem
                | Kind::r64_or_mem
                | Kind::mm_or_mem
                | Kind::xmm_or_mem => {
                    rm = Some(if self.rng.below(5) < 2 { Rm::Register } else { Rm::Memory });
                }
                _ => {}
            }
        }
        if self.info.is_rm_group() {
            self.bytes.push(0xc0 | reg.unwrap_or(0) << 3 | self.info.rm_group_index() as u8);
        } else if rm == Some(Rm::Memory) {
            self.memory(reg.unwrap_or(0));
        } else if reg.is_some() || rm.is_some() {
            self.rex |= self.rng.below(2) as u8;
            let register = self.rng.below(8) as u8;
            self.bytes.push(0xc0 | reg.unwrap_or(0) << 3 | register);
        }
    }
    /// Appends ModRM, SIB and displacement of a memory operand (SDM vol. 2A, 2.1.5).
    pub(super) fn memory(&mut self, reg: u8) {
        let mode = self.rng.below(3) as u8;
        let rm = if self.info.op_kinds().iter().any(is_vsib) { 4 } else { self.rng.below(8) as u8 };
        self.rex |= self.rng.below(4) as u8;
        self.bytes.push(mode << 6 | reg << 3 | rm);
        let mut base = rm;
        if rm == 4 {
            let sib = self.rng.next() as u8;
            self.bytes.push(sib);
            base = sib & 7;
        }
        let near = self.rng.one_in(2);
        match mode {
            0 if rm == 5 => {
                self.relative = Some(self.bytes.len());
                self.bytes.extend([0; 4]);
            }
            // Without a base, the displacement is the address. An index may be added to it.
            0 if base == 5 && rm == 4 => {
                let to = if near { self.target(LOW) as u32 } else { self.rng.next() as u32 };
                self.bytes.extend(to.to_le_bytes());
            }
            1 => {
                let displacement = self.rng.next() as u8;
                self.bytes.push(displacement);
            }
            2 => {
                let far = self.rng.next() as i32;
                let displacement = if near { far >> 20 } else { far };
                self.bytes.extend(displacement.to_le_bytes());
            }
            _ => {}
        }
    }
    pub(super) fn immediates(&mut self) {
        for &kind in self.info.op_kinds() {
            let value = match self.rng.below(4) {
                0 => self.rng.pick(&[
                    0,
                    1,
                    u64::MAX,
                    0x80,
                    0x7f,
                    0x8000_0000_0000_0000,
                    0x8000_0000,
                    0x7fff_ffff,
                ]),
                1 => self.rng.below(64),
                _ => self.rng.next(),
            };
            match kind {
                Kind::imm8
                | Kind::imm8sex16
                | Kind::imm8sex32
                | Kind::imm8sex64
                | Kind::br64_1
                | Kind::imm4_m2z => {
                    self.bytes.push(value as u8);
                }
                Kind::imm16 => self.bytes.extend((value as u16).to_le_bytes()),
                Kind::imm32 | Kind::imm32sex64 => self.bytes.extend((value as u32).to_le_bytes()),
                Kind::imm64 => self.bytes.extend(value.to_le_bytes()),
                Kind::br64_4 => {
                    let to = if self.rng.one_in(2) { value as i32 >> 20 } else { value as i32 };
                    self.bytes.extend(to.to_le_bytes());
                }
                Kind::mem_offs => {
                    let view = if self.address_32 || self.rng.one_in(2) { LOW } else { HIGH };
                    let to = self.target(view);
                    let bytes = to.to_le_bytes();
                    self.bytes.extend(&bytes[..if self.address_32 { 4 } else { 8 }]);
                }
                _ => {}
            }
        }
    }
}

/// True for the memory operand of a gather, whose index is a vector register.
fn is_vsib(kind: &Kind) -> bool {
    matches!(kind, Kind::mem_vsib32x | Kind::mem_vsib32y | Kind::mem_vsib64x | Kind::mem_vsib64y)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rm {
    Register,
    Memory,
}
