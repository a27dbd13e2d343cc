//! Probe for instructions whose results the manual does not define to the last bit: SSE reciprocals, and transcendental
//! functions of x87.
//!
//! Processors of different makes return different results, and the CPU model (Everett's own CPU) has results of its
//! own. KVM cannot intercept these instructions. Programs that use them therefore see differences between Everett's CPU
//! and a processor, and between processors. The probe lists the instructions whose results differ on this host. These
//! differences do not make the host inexact.

use super::Notes;
use super::flags::on_the_model;
use crate::doctor::kvm::guest::{Guest, Ring};
use crate::doctor::kvm::host::Host;

/// Name of the probe and of its guests.
pub(crate) const NAME: &str = "approximations";
const MEANS: &str = "programs that use them get other results than on the soft engine";

/// Reciprocals, or reciprocals of square roots, of the two single-precision numbers in RAX. The results are in RBX.
const RECIPROCALS: [(&str, &[u8]); 2] = [
    // The code is movq xmm0, rax; rcpps xmm1, xmm0; movq rbx, xmm1.
    ("RCPPS", &[0x66, 0x48, 0x0f, 0x6e, 0xc0, 0x0f, 0x53, 0xc8, 0x66, 0x48, 0x0f, 0x7e, 0xcb]),
    ("RSQRTPS", &[0x66, 0x48, 0x0f, 0x6e, 0xc0, 0x0f, 0x52, 0xc8, 0x66, 0x48, 0x0f, 0x7e, 0xcb]),
];
/// Functions of x87. Both operands, ST(0) and ST(1), are the double-precision number in RAX. The result is in ST(0).
const FUNCTIONS: [(&str, &[u8]); 6] = [
    ("FSIN", &[0xd9, 0xfe]),
    ("FCOS", &[0xd9, 0xff]),
    // FPTAN also pushes 1, so fstp st(0) follows.
    ("FPTAN", &[0xd9, 0xf2, 0xdd, 0xd8]),
    ("FPATAN", &[0xd9, 0xf3]),
    ("F2XM1", &[0xd9, 0xf0]),
    ("FYL2X", &[0xd9, 0xf1]),
];
/// Operands. The guest keeps the result for operand number n in register R8 + n.
const OPERANDS: [f64; 6] = [0.1, 0.3, 0.37, 0.567_89, 0.7, 0.912_345];
const FIRST: usize = 8;

/// Returns the name of each instruction, and the guest that executes it.
fn samples() -> impl Iterator<Item = (&'static str, Guest)> {
    let reciprocals = RECIPROCALS.into_iter().map(|(name, code)| {
        let pair = |value: f64| {
            let low = (value as f32).to_bits();
            let high = (1.0 / value as f32).to_bits();
            u64::from(high) << 32 | u64::from(low)
        };
        (name, guest(code, pair))
    });
    let functions = FUNCTIONS.into_iter().map(|(name, function)| {
        let code = [
            &[0xdb, 0xe3, 0x50][..],               // fninit; push rax
            &[0xdd, 0x04, 0x24, 0xdd, 0x04, 0x24], // fld qword [rsp], twice
            function,
            &[0xdb, 0x7c, 0x24, 0xf0],             // fstp tbyte [rsp - 16]
            &[0x48, 0x8b, 0x5c, 0x24, 0xf0, 0x58], // mov rbx, [rsp - 16]; pop rax
        ]
        .concat();
        (name, guest(&code, f64::to_bits))
    });
    reciprocals.chain(functions)
}

/// Returns a guest that executes the code once for each operand.
fn guest(code: &[u8], bits: impl Fn(f64) -> u64) -> Guest {
    let mut all = Vec::new();
    for (n, operand) in (0..).zip(OPERANDS) {
        all.extend([0x48, 0xb8]); // mov rax, operand
        all.extend(bits(operand).to_le_bytes());
        all.extend(code);
        all.extend([0x49, 0x89, 0xd8 + n]); // mov r8, rbx and so on
    }
    Guest::new(NAME, Ring::Three, &all)
}

fn results(gpr: &[u64; 16]) -> &[u64] {
    &gpr[FIRST..FIRST + OPERANDS.len()]
}

pub(super) fn probe(host: &mut dyn Host, notes: &mut Notes) {
    match differing(host) {
        Ok(names) if names.is_empty() => notes.ok(NAME, "results are the model's", ""),
        Ok(names) => notes.note(NAME, format!("{}: other results than the model's", names.join(", ")), MEANS),
        Err(why) => notes.note(NAME, format!("unknown: {why}"), MEANS),
    }
}

/// Returns the names of instructions whose results differ from the model's.
fn differing(host: &mut dyn Host) -> Result<Vec<&'static str>, String> {
    let mut names = Vec::new();
    for (name, guest) in samples() {
        let ran = host.run(&guest)?;
        if !ran.to_its_end() {
            return Err(format!("{name}: {}", ran.how()));
        }
        if results(&ran.gpr) != results(&on_the_model(&guest)?) {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_are_near_the_mathematical_ones() {
        for (name, guest) in samples() {
            let gpr = on_the_model(&guest).unwrap();
            for (&bits, x) in results(&gpr).iter().zip(OPERANDS) {
                let (result, wanted) = match name {
                    "RCPPS" => (f64::from(f32::from_bits(bits as u32)), 1.0 / x),
                    "RSQRTPS" => (f64::from(f32::from_bits(bits as u32)), 1.0 / x.sqrt()),
                    // `bits` is only the significand of an extended number. The test assumes that the number has the
                    // exponent of the expected result.
                    _ => {
                        let wanted = match name {
                            "FSIN" => x.sin(),
                            "FCOS" => x.cos(),
                            "FPTAN" => x.tan(),
                            "FPATAN" => 1f64.atan(),
                            "F2XM1" => x.exp2() - 1.0,
                            _ => (x * x.log2()).abs(),
                        };
                        (bits as f64 / 2f64.powi(63) * wanted.log2().floor().exp2(), wanted)
                    }
                };
                assert!((result / wanted - 1.0).abs() < 1e-3, "{name} of {x}: {result}, not {wanted}");
            }
        }
    }
}
