//! Random encodings of an instruction form with a VEX prefix (SDM vol. 2A, 2.3).

use super::encode::{Draft, Rm};
use iced_x86::{MandatoryPrefix, OpCodeOperandKind as Kind, OpCodeTableKind};

impl Draft<'_> {
    /// Returns the bytes of an instruction with a VEX prefix, or `None` if they are too many.
    pub(super) fn finish_vex(mut self) -> Option<Vec<u8>> {
        let info = self.info;
        if self.rng.one_in(8) {
            let segment = self.rng.pick(&[0x2e, 0x36, 0x3e, 0x26, 0x65]);
            self.bytes.push(segment);
        }
        self.address_32 = self.rng.one_in(10);
        if self.address_32 {
            self.bytes.push(0x67);
        }
        let head = self.bytes.len();
        self.bytes.push(info.op_code() as u8);
        let mut reg = info.is_group().then(|| info.group_index() as u8);
        let mut rm = None;
        let mut vvvv = 0;
        let mut is4 = None;
        for &kind in info.op_kinds() {
            match kind {
                Kind::r32_reg | Kind::r64_reg | Kind::xmm_reg | Kind::ymm_reg => {
                    reg = Some(self.rng.below(8) as u8);
                    self.rex |= self.rng.pick(&[0, 4]);
                }
                Kind::r32_vvvv | Kind::r64_vvvv | Kind::xmm_vvvv | Kind::ymm_vvvv => {
                    vvvv = self.rng.below(16) as u8;
                }
                Kind::xmm_is4 | Kind::ymm_is4 => is4 = Some((self.rng.below(16) << 4) as u8),
                Kind::r32_rm | Kind::r64_rm | Kind::xmm_rm | Kind::ymm_rm => rm = Some(Rm::Register),
                Kind::mem | Kind::mem_vsib32x | Kind::mem_vsib32y | Kind::mem_vsib64x | Kind::mem_vsib64y => {
                    rm = Some(Rm::Memory);
                }
                Kind::r32_or_mem | Kind::r64_or_mem | Kind::xmm_or_mem | Kind::ymm_or_mem => {
                    rm = Some(if self.rng.below(5) < 2 { Rm::Register } else { Rm::Memory });
                }
                _ => {}
            }
        }
        match rm {
            Some(Rm::Memory) => self.memory(reg.unwrap_or(0)),
            Some(Rm::Register) => {
                self.rex |= self.rng.below(2) as u8;
                let register = self.rng.below(8) as u8;
                self.bytes.push(0xc0 | reg.unwrap_or(0) << 3 | register);
            }
            None => {}
        }
        let pp = match info.mandatory_prefix() {
            MandatoryPrefix::P66 => 1,
            MandatoryPrefix::PF3 => 2,
            MandatoryPrefix::PF2 => 3,
            _ => 0,
        };
        let map = match info.table() {
            OpCodeTableKind::T0F38 => 2,
            OpCodeTableKind::T0F3A => 3,
            _ => 1,
        };
        let w = if info.is_wig() { self.rng.one_in(2) } else { info.w() == 1 };
        let l = if info.is_lig() { self.rng.one_in(2) } else { info.l() == 1 };
        let low = !vvvv << 3 & 0x78 | u8::from(l) << 2 | pp;
        let prefix = if map == 1 && !w && self.rex & 3 == 0 && !self.rng.one_in(4) {
            vec![0xc5, (!self.rex & 4) << 5 | low]
        } else {
            vec![0xc4, (!self.rex & 7) << 5 | map, u8::from(w) << 7 | low]
        };
        self.relative = self.relative.map(|at| at + prefix.len());
        self.bytes.splice(head..head, prefix);
        if let Some(is4) = is4 {
            let low = self.rng.below(16) as u8;
            self.bytes.push(is4 | low);
        } else {
            self.immediates();
        }
        self.end()
    }
}
