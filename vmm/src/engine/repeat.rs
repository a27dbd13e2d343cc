//! Where an exit has no boundary behind it: before a repeated string instruction.
//!
//! Such an instruction may access devices, iteration by iteration. KVM does some of them in one go and comes back between others,
//! also after the last one and before the instruction is left, and does not say of which instruction an access was. So the rule
//! asks only what comes next: behind an exit, a repeated string instruction that is about to be executed, or to go on, belongs to
//! that exit. It is the same on all engines, whatever was before.

use super::Engine;
use super::soft::SoftEngine;

/// The longest instruction there is.
pub(super) const INSTRUCTION_BYTES_MAX: usize = 15;

/// Whether these bytes, which are next, begin with a repeated string instruction.
pub(super) fn repeats(bytes: &[u8]) -> bool {
    let mut repeated = false;
    for byte in bytes {
        match byte {
            0xf2 | 0xf3 => repeated = true,
            // Sizes, segments, lock; REX, which a prefix behind it makes void.
            0x66 | 0x67 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0x40..=0x4f => {}
            // INS, OUTS; MOVS, CMPS; STOS, LODS, SCAS.
            opcode => return repeated && matches!(opcode, 0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf),
        }
    }
    false
}

/// Whether what comes next on this CPU belongs to the exit before it.
pub(super) fn goes_on(soft: &SoftEngine) -> bool {
    let state = soft.state();
    let mut bytes = [0; INSTRUCTION_BYTES_MAX];
    let known = soft.read_virtual(state.rip, &mut bytes);
    // An exception that was just delivered has ended it.
    state.exceptions == 0 && repeats(&bytes[..known])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_opcode_say_so() {
        assert!(repeats(&[0xf3, 0xa4]));
        assert!(repeats(&[0x66, 0xf3, 0x48, 0xab, 0x90]));
        assert!(repeats(&[0xf2, 0xae]) && repeats(&[0xf3, 0x6e]) && repeats(&[0x67, 0xf3, 0xa4]));
        assert!(!repeats(&[0xa4]) && !repeats(&[0xf3, 0x90]) && !repeats(&[0xf3]) && !repeats(&[]));
        // TEST AL, between the string instructions.
        assert!(!repeats(&[0xf3, 0xa8, 1]));
    }
}
