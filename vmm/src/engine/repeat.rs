//! Decides whether a repeated string instruction belongs to the exit (a device access or HLT) before it. If it does,
//! there is no boundary between the two, i.e. the guest takes no interrupt and the machine does not stop there.
//!
//! A repeated string instruction may access devices in each iteration. KVM executes some iterations in one go and
//! returns between others. It may also return after the last iteration, before the next instruction, and does not
//! report which instruction made an access. So the rule depends only on the next instruction. If, after an exit, a
//! repeated string instruction is about to start or to continue, it belongs to that exit. The rule is the same on all
//! engines, whatever was executed before.

use super::Engine;
use super::soft::SoftEngine;

/// Maximum length of an x86 instruction, in bytes.
pub(super) const INSTRUCTION_BYTES_MAX: usize = 15;

/// True if `bytes`, which the CPU executes next, start with a repeated string instruction.
pub(super) fn repeats(bytes: &[u8]) -> bool {
    let mut repeated = false;
    for byte in bytes {
        match byte {
            0xf2 | 0xf3 => repeated = true,
            // Prefixes: sizes, segments, LOCK, and REX. A REX prefix has no effect if another prefix follows it.
            0x66 | 0x67 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0x40..=0x4f => {}
            // Opcodes: INS, OUTS; MOVS, CMPS; STOS, LODS, SCAS.
            opcode => return repeated && matches!(opcode, 0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf),
        }
    }
    false
}

/// True if the next instruction of this CPU belongs to the exit before it.
pub(super) fn goes_on(soft: &SoftEngine) -> bool {
    let state = soft.state();
    let mut bytes = [0; INSTRUCTION_BYTES_MAX];
    let known = soft.read_virtual(state.rip, &mut bytes);
    // After an exception, the next instruction is the first one of its handler, and repeats nothing.
    state.exceptions == 0 && repeats(&bytes[..known])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_string_instructions_are_recognised() {
        assert!(repeats(&[0xf3, 0xa4]));
        assert!(repeats(&[0x66, 0xf3, 0x48, 0xab, 0x90]));
        assert!(repeats(&[0xf2, 0xae]) && repeats(&[0xf3, 0x6e]) && repeats(&[0x67, 0xf3, 0xa4]));
        assert!(!repeats(&[0xa4]) && !repeats(&[0xf3, 0x90]) && !repeats(&[0xf3]) && !repeats(&[]));
        // TEST AL, whose opcode lies between the opcodes of string instructions.
        assert!(!repeats(&[0xf3, 0xa8, 1]));
    }
}
