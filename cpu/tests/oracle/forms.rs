//! The instruction forms to test. A form is an opcode with its operand kinds. The tests cover each form of the
//! decoder's table that the soft CPU implements and that user code can execute.

use crate::exempt::{Verdict, verdict};
use everett_cpu::CpuModel;
use iced_x86::{Code, EncodingKind, Instruction, Mnemonic};

/// Family of a form. The printed counts and the recorded ("golden") digests are per family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Integer,
    Control,
    String,
    System,
    X87,
    Mmx,
    Sse,
    /// Vector instructions with a VEX prefix.
    Vex,
}

/// Returns all forms that a CPU model has, in the order of the decoder's table.
pub(crate) fn forms(model: CpuModel) -> Vec<Code> {
    Code::values().filter(|&code| is_form(code, model)).collect()
}

fn is_form(code: Code, model: CpuModel) -> bool {
    let info = code.op_code();
    let encoded = matches!(info.encoding(), EncodingKind::Legacy | EncodingKind::VEX);
    if !info.is_instruction() || !info.mode64() || !encoded {
        return false;
    }
    // A form with WAIT (such as `9B D9 /7`) is two instructions, and the second has a form of its own. Forms that
    // Intel's 64-bit decoder lacks, or that need a decoder option, exist only on processors that are not modelled.
    if info.fwait() || !info.intel_decoder64() || info.decoder_option() != 0 || is_old_nop(code) {
        return false;
    }
    let mut i = Instruction::default();
    i.set_code(code);
    verdict(&i, model) == Verdict::Compare && code != Code::INVALID
}

/// True for reserved NOPs. The decoder's table contains them, but the decoder returns other forms for their bytes.
fn is_old_nop(code: Code) -> bool {
    code.mnemonic() == Mnemonic::Reservednop
}

/// Returns the family of a form.
pub(crate) fn family(code: Code) -> Family {
    use iced_x86::CpuidFeature::*;
    use iced_x86::FlowControl;
    let mut i = Instruction::default();
    i.set_code(code);
    let features = code.cpuid_features();
    if code.is_privileged() {
        Family::System
    } else if code == Code::INVALID {
        Family::Integer
    } else if features.iter().any(|f| matches!(f, FPU | FPU287 | FPU387)) {
        Family::X87
    } else if code.op_code().encoding() == EncodingKind::VEX
        && features.iter().any(|f| !matches!(f, BMI1 | BMI2))
    {
        Family::Vex
    } else if features
        .iter()
        .any(|f| matches!(f, AES | PCLMULQDQ | SHA | SSE | SSE2 | SSE3 | SSSE3 | SSE4_1 | SSE4_2))
    {
        Family::Sse
    } else if features.contains(&MMX) {
        Family::Mmx
    } else if i.is_string_instruction() {
        Family::String
    } else if code.flow_control() != FlowControl::Next {
        Family::Control
    } else {
        Family::Integer
    }
}
