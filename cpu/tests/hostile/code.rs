//! Encoder for instructions. It does not check that the instructions are valid.

/// Operand that is a register or in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rm {
    Reg(u8),
    /// Memory at a register plus a displacement.
    At(u8, i32),
    /// Memory at base + (index << scale) + displacement.
    Sum(u8, u8, u8, i32),
    /// Memory at an address below 2^31.
    Abs(u32),
    /// Memory at a linear address, encoded RIP-relative. The second value is the size in bytes of the instruction's
    /// immediate operand, which follows the displacement.
    Rip(u64, u8),
}

/// Code under construction, and the linear address at which it will run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
    /// Four-byte fields that must get the linear address of a site: the field's offset, and a number to add to the
    /// address. A site is an immediate operand that attacks on translated code (module `attacks`) may change.
    pub(crate) fixups: Vec<(usize, i32)>,
    /// Linear addresses of immediate operands. A store to one changes a constant, but no opcode.
    pub(crate) sites: Vec<u64>,
}

impl Code {
    pub(crate) fn new(at: u64) -> Code {
        Code { at, ..Code::default() }
    }
    /// Returns the linear address of the instruction that is emitted next.
    pub(crate) fn here(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    pub(crate) fn imm32(&mut self, v: u32) {
        self.raw(&v.to_le_bytes());
    }
    /// Records the last `bytes` bytes as an immediate operand that attacks may change.
    pub(crate) fn site(&mut self, bytes: u64) {
        self.sites.push(self.here() - bytes);
    }
    /// Emits an instruction with ModRM and an operand of `width` bytes: 1, 2, 4 or 8. `opcode` is the opcode for
    /// operands wider than one byte.
    pub(crate) fn op(&mut self, width: u8, opcode: &[u8], reg: u8, rm: Rm) {
        let (base, index) = match rm {
            Rm::Reg(r) | Rm::At(r, _) => (r, 0),
            Rm::Sum(base, index, ..) => (base, index),
            Rm::Abs(_) | Rm::Rip(..) => (0, 0),
        };
        if width == 2 {
            self.raw(&[0x66]);
        }
        let rex = u8::from(width == 8) << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;
        let byte_register = width == 1 && (reg >= 4 || matches!(rm, Rm::Reg(r) if r >= 4));
        if rex != 0 || byte_register {
            self.raw(&[0x40 | rex]);
        }
        self.raw(opcode);
        if width == 1
            && let Some(last) = self.bytes.last_mut()
        {
            *last &= !1;
        }
        self.modrm(reg, rm);
    }
    /// Emits ModRM, SIB and displacement.
    pub(crate) fn modrm(&mut self, reg: u8, rm: Rm) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Reg(r) => self.raw(&[0xc0 | reg | r & 7]),
            Rm::At(base, disp) => {
                let short = i8::try_from(disp);
                self.raw(&[if short.is_ok() { 0x40 } else { 0x80 } | reg | base & 7]);
                if base & 7 == 4 {
                    self.raw(&[0x24]);
                }
                match short {
                    Ok(disp) => self.raw(&[disp as u8]),
                    Err(_) => self.imm32(disp as u32),
                }
            }
            Rm::Sum(base, index, scale, disp) => {
                self.raw(&[0x84 | reg, scale << 6 | (index & 7) << 3 | base & 7]);
                self.imm32(disp as u32);
            }
            Rm::Abs(address) => {
                self.raw(&[0x04 | reg, 0x25]);
                self.imm32(address);
            }
            Rm::Rip(target, behind) => {
                self.raw(&[0x05 | reg]);
                let after = self.here() + 4 + u64::from(behind);
                self.imm32(target.wrapping_sub(after) as u32);
            }
        }
    }
    /// Emits an instruction that stores to a site, i.e. to an immediate operand. Module `program` fills in the address
    /// of the site later.
    pub(crate) fn op_at_site(&mut self, width: u8, opcode: &[u8], reg: u8, offset: i32) {
        self.op(width, opcode, reg, Rm::Abs(0));
        self.fixups.push((self.bytes.len() - 4, offset));
    }
    /// Emits a MOV of a constant to a register.
    pub(crate) fn set(&mut self, reg: u8, v: u64) {
        if let Ok(v) = u32::try_from(v) {
            if reg >= 8 {
                self.raw(&[0x41]);
            }
            self.raw(&[0xb8 + (reg & 7)]);
            self.imm32(v);
        } else {
            self.raw(&[0x48 | reg >> 3, 0xb8 + (reg & 7)]);
            self.raw(&v.to_le_bytes());
        }
    }
    /// Emits JMP, CALL or Jcc (0F 8x) to a linear address.
    pub(crate) fn branch(&mut self, opcode: &[u8], target: u64) {
        self.raw(opcode);
        let after = self.here() + 4;
        self.imm32(target.wrapping_sub(after) as u32);
    }
    pub(crate) fn push(&mut self, reg: u8) {
        if reg >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0x50 + (reg & 7)]);
    }
    pub(crate) fn pop(&mut self, reg: u8) {
        if reg >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0x58 + (reg & 7)]);
    }
}
