//! The registers of a CPU that digests and comparisons cover.
//!
//! In clock mode `insn` these are all registers. In clock modes `exit` and `branch` the engine may be the host's
//! processor. The processor manuals leave some bits undefined, and vendors' processors differ in these bits.
//! [`compared`] decides which registers and bits count. The text below calls this decision the *rule*. Digests, the
//! search for the first difference of two runs, and tests all follow the rule.
//!
//! # Undefined status flags
//!
//! Many instructions leave some of the six status flags undefined. Shifts leave AF undefined, and shifts by more than
//! one bit also OF. IMUL leaves SF, ZF, AF and PF undefined; DIV leaves all six undefined. Intel's processors, AMD's
//! processors and the soft CPU leave different values there, and such instructions are everywhere in compiled programs.
//! The KVM engine does not see single instructions, so it cannot know which flags are undefined when the processor
//! stops. Therefore the rule covers no status flag at all.
//!
//! Kernels copy the flags: `PUSHF; POP` begins each region without interrupts (`local_irq_save`). Many of these regions
//! access a device, so the copy is in a register after an exit. SYSCALL puts another copy into R11. So the rule applies
//! to copies, too. It ignores the status flags in any general register that looks like the RFLAGS of a kernel or a
//! program ([`IMAGE_ONES`], [`IMAGE_ZEROES`]).
//!
//! - *What the rule misses.* If a defined flag is wrong, the next digest does not show it. A later digest does, once
//!   the guest has branched on the flag or computed with it. A flag that the guest never reads has no consequence. The
//!   rule also misses these six bits in registers that look like RFLAGS by chance: 2048 of the numbers below 2^22 do,
//!   and no larger number.
//! - *What can still differ.* A guest that extracts undefined flags copies the host's values into covered registers. It
//!   can do this by LAHF, by SETcc and CMOVcc on an undefined flag, or by shifting or masking a copy. Compiled programs
//!   hardly ever do. A test inverted all undefined flags of a stock kernel. After 4 of 60,000 exits a covered register
//!   contained an inverted flag, and the kernel still executed the same instructions (`docs/kvm.md`). Exceptions and
//!   interrupts push flags to RAM, which digests in these clock modes do not cover. IRET and POPF load them into the
//!   status flags, which digests do not cover either.
//! - *Moments* store the flags as the engine left them. Everett cannot make them canonical, because some may be defined
//!   and the next instruction may read them. Two moments of the same point can therefore differ in these six bits.
//!   Nothing compares the bytes of moments.

use everett_cpu::CpuState;

use crate::clock::ClockMode;

/// The status flags CF, PF, AF, ZF, SF and OF of RFLAGS.
pub const STATUS_FLAGS: u64 = 0x8d5;

/// Bits that are set in every image of RFLAGS, i.e. in every copy that an instruction or an exception stores.
pub const IMAGE_ONES: u64 = 1 << 1;
/// Bits that are clear in the RFLAGS images of kernels and programs: all except the status flags, bit 1, IF, DF, RF, AC
/// and ID. RF can be set, because faults push an image with RF and handlers load it.
pub const IMAGE_ZEROES: u64 = !(IMAGE_ONES | STATUS_FLAGS | 1 << 9 | 1 << 10 | 1 << 16 | 1 << 18 | 1 << 21);

/// Returns a general register. If it looks like a copy of RFLAGS, its status flags are cleared.
fn without_copied_flags(register: u64) -> u64 {
    let is_image = register & (IMAGE_ONES | IMAGE_ZEROES) == IMAGE_ONES;
    if is_image { register & !STATUS_FLAGS } else { register }
}

/// Returns the registers that are equal on all engines of this clock mode. All other registers are zero.
///
/// In clock modes `exit` and `branch`, the status flags are zero in RFLAGS and in its copies (see the module). The
/// addresses and the opcode of the last x87 instruction are zero, too, because processors differ in which instructions
/// update them.
#[must_use]
pub fn compared(clock: ClockMode, mut cpu: CpuState) -> CpuState {
    match clock {
        ClockMode::Insn => {}
        ClockMode::Exit | ClockMode::Branch => {
            cpu.rflags &= !STATUS_FLAGS;
            cpu.gpr = cpu.gpr.map(without_copied_flags);
            (cpu.fpu.fip, cpu.fpu.fdp, cpu.fpu.fop) = (0, 0, 0);
        }
    }
    cpu
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_rflags_are_distinguished_from_other_numbers() {
        for copy in [0x46, 0x56, 0x202, 0x246, 0x8d7, 0x1_0246, 0x40602, 0x20_0292, 0x21_0a97] {
            assert_eq!(without_copied_flags(copy), copy & !STATUS_FLAGS, "{copy:#x}");
        }
        // None of these values is an image of RFLAGS: bit 1 is clear, or a bit is set that kernels and programs never
        // set.
        for other in [0, 1, 0x45, 0x14a, 0x1246, 0x8002, 0x40_0046, 0xffff_8880_0000_0046, u64::MAX] {
            assert_eq!(without_copied_flags(other), other, "{other:#x}");
        }
        let images = (0..1u64 << 22).filter(|n| n & (IMAGE_ONES | IMAGE_ZEROES) == IMAGE_ONES).count();
        assert_eq!(images, 1 << 11);
        let cpu = |rax| CpuState { gpr: [rax; 16], ..CpuState::default() };
        assert_eq!(compared(ClockMode::Exit, cpu(0x46)), compared(ClockMode::Exit, cpu(0x56)));
        assert_ne!(compared(ClockMode::Insn, cpu(0x46)), compared(ClockMode::Insn, cpu(0x56)));
    }

    #[test]
    fn status_flags_are_covered_only_in_clock_mode_insn() {
        let plain = CpuState { rflags: 0x202, ..CpuState::default() };
        for bit in 0..64 {
            let other = CpuState { rflags: plain.rflags ^ 1 << bit, ..plain.clone() };
            let shows = |clock| compared(clock, plain.clone()) != compared(clock, other.clone());
            assert!(shows(ClockMode::Insn), "bit {bit}");
            for clock in [ClockMode::Exit, ClockMode::Branch] {
                assert_eq!(shows(clock), ![0, 2, 4, 6, 7, 11].contains(&bit), "bit {bit}");
            }
        }
    }
}
