//! x87 and SSE registers in the XSAVE format. KVM_SET_FPU is not enough, because it does not set MXCSR.
//!
//! XSAVE stores the x87 registers in stack order, beginning at the top. [`FpuState`] stores the physical registers.
#![allow(unsafe_code)]

use everett_cpu::state::FpuState;
use kvm_bindings::kvm_xsave;

use crate::kvm::error::{KvmError, Wanted};
use crate::kvm::vcpu::Vcpu;

// Offsets in bytes (SDM vol. 1, 10.5.1 and 13.4).
const FCW: usize = 0;
const FSW: usize = 2;
const FTW: usize = 4;
const FOP: usize = 6;
const FIP: usize = 8;
const FDP: usize = 16;
const MXCSR: usize = 24;
const MXCSR_MASK: usize = 28;
const STACK: usize = 32;
const XMM: usize = 160;
const XSTATE_BV: usize = 512;
/// State components x87 and SSE. All other components get their reset values.
const X87_AND_SSE: u64 = 3;
const AREA_BYTES: usize = 4096;

/// XSAVE area as bytes.
struct Area([u8; AREA_BYTES]);

impl Area {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|n| self.0[at + n])
    }
}

fn top(fsw: u16) -> usize {
    usize::from(fsw >> 11 & 7)
}

fn write(fpu: &FpuState) -> Area {
    let mut area = Area([0; AREA_BYTES]);
    area.put(FCW, &fpu.fcw.to_le_bytes());
    area.put(FSW, &fpu.fsw.to_le_bytes());
    area.put(FTW, &[fpu.ftw]);
    area.put(FOP, &fpu.fop.to_le_bytes());
    area.put(FIP, &fpu.fip.to_le_bytes());
    area.put(FDP, &fpu.fdp.to_le_bytes());
    area.put(MXCSR, &fpu.mxcsr.to_le_bytes());
    area.put(MXCSR_MASK, &0xffffu32.to_le_bytes());
    for n in 0..8 {
        let (significand, sign_and_exponent) = fpu.r[(top(fpu.fsw) + n) & 7];
        area.put(STACK + 16 * n, &significand.to_le_bytes());
        area.put(STACK + 16 * n + 8, &sign_and_exponent.to_le_bytes());
    }
    for (n, register) in fpu.xmm.iter().enumerate() {
        area.put(XMM + 16 * n, &register.to_le_bytes());
    }
    area.put(XSTATE_BV, &X87_AND_SSE.to_le_bytes());
    area
}

fn read(area: &Area) -> FpuState {
    let word = |at| u16::from_le_bytes(area.get(at));
    let mut fpu = FpuState {
        fcw: word(FCW),
        fsw: word(FSW),
        ftw: area.0[FTW],
        fop: word(FOP),
        fip: u64::from_le_bytes(area.get(FIP)),
        fdp: u64::from_le_bytes(area.get(FDP)),
        mxcsr: u32::from_le_bytes(area.get(MXCSR)),
        xmm: std::array::from_fn(|n| u128::from_le_bytes(area.get(XMM + 16 * n))),
        ..FpuState::default()
    };
    for n in 0..8 {
        let at = STACK + 16 * n;
        fpu.r[(top(fpu.fsw) + n) & 7] = (u64::from_le_bytes(area.get(at)), word(at + 8));
    }
    fpu
}

impl Vcpu {
    pub(super) fn load_fpu(&self, fpu: &FpuState) -> Result<(), KvmError> {
        let area = write(fpu);
        let mut xsave = kvm_xsave::default();
        for (n, word) in xsave.region.iter_mut().enumerate() {
            *word = u32::from_le_bytes(area.get(4 * n));
        }
        // SAFETY: the area is no larger than this structure. Only features that a process requests with
        // ARCH_REQ_XCOMP_GUEST_PERM enlarge it, and this process never makes that request.
        unsafe { self.fd.set_xsave(&xsave) }.wanted("set floating-point registers")
    }
    pub(super) fn save_fpu(&self) -> Result<FpuState, KvmError> {
        let xsave = self.fd.get_xsave().wanted("read floating-point registers")?;
        let mut area = Area([0; AREA_BYTES]);
        for (n, word) in xsave.region.iter().enumerate() {
            area.put(4 * n, &word.to_le_bytes());
        }
        Ok(read(&area))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_turns_with_its_top() {
        for top in 0..8 {
            let fpu = FpuState {
                r: std::array::from_fn(|n| (0x8000_0000_0000_0000 | n as u64, 0x3fff + n as u16)),
                fsw: top << 11 | 0x4100,
                ftw: 0b1010_0110,
                fop: 0x123,
                fip: 0xffff_8000_1234_5678,
                fdp: 77,
                mxcsr: 0x9fc0,
                xmm: std::array::from_fn(|n| u128::MAX / (n as u128 + 1)),
                ..FpuState::default()
            };
            let area = write(&fpu);
            assert_eq!(area.get::<1>(STACK), [top as u8], "ST(0) comes first");
            assert_eq!(read(&area), fpu);
        }
    }
}
