//! Random bytes, which often are not a valid instruction. If they are valid, the decoder must find the same instruction
//! as the host, with the same length.

use crate::encode::{LEN_MAX, encode};
use crate::rng::Rng;
use everett_cpu::CpuModel;
use iced_x86::Code;

/// Legacy prefixes and three REX prefixes.
const PREFIXES: [u8; 13] = [0x26, 0x2e, 0x36, 0x3e, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x40, 0x48, 0x4f];

/// Draws fifteen bytes.
pub(crate) fn bytes(forms: &[Code], rip: u64, model: CpuModel, rng: &mut Rng) -> [u8; LEN_MAX] {
    let mut out = [0; LEN_MAX];
    rng.fill(&mut out);
    match rng.below(4) {
        0 => {}
        1 => {
            // An opcode of the map 0F, 0F 38 or 0F 3A, after prefixes.
            let n = rng.below(3) as usize;
            for byte in &mut out[..n] {
                *byte = rng.pick(&PREFIXES);
            }
            out[n] = 0x0f;
            if rng.one_in(3) {
                out[n + 1] = rng.pick(&[0x38, 0x3a]);
            }
        }
        2 => {
            let n = rng.below(15) as usize;
            for byte in &mut out[..n] {
                *byte = rng.pick(&PREFIXES);
            }
        }
        _ => {
            // An encoding of an instruction form. It gets one changed byte or one additional prefix.
            if let Some(e) = encode(rng.pick(forms), rip, model, rng) {
                let n = e.bytes.len();
                if rng.one_in(2) {
                    out[..n].copy_from_slice(&e.bytes);
                    out[rng.below(n as u64) as usize] = rng.next() as u8;
                } else {
                    out[0] = rng.pick(&PREFIXES);
                    let n = n.min(LEN_MAX - 1);
                    out[1..=n].copy_from_slice(&e.bytes[..n]);
                }
            }
        }
    }
    out
}
