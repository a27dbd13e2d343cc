//! Digests of outcomes of the soft CPU, which must be equal on the hosts of all vendors.
//!
//! The soft CPU executes some operations with the host's own instructions: SSE and x87 arithmetic, for example, and
//! data moves in translated code. If hosts of two vendors differ in these instructions, the other tests do not notice,
//! because they compare the soft CPU only with the host on which it runs. This test compares the outcomes with stored
//! digests instead. It also covers the instructions whose results the soft CPU approximates in software.

use std::collections::BTreeMap;

use everett_cpu::CpuModel;
use iced_x86::{Code, InstructionInfoFactory, Mnemonic};

use crate::arena::{CODE, CODE_LEN, HIGH, LOW};
use crate::encode::encode;
use crate::forms::{Family, family, forms};
use crate::guest::Guest;
use crate::place::{Case, place};
use crate::rng::Rng;

/// Number of cases for each instruction form.
const CASES: u64 = 24;
const SEED: u64 = 77;
/// Digests of the outcomes, one for each family of instruction forms. The entry `memory` is the digest of the guest's
/// memory after all cases. A digest changes if the test draws other cases, or if the soft CPU gives other results.
const GOLDEN: &[(&str, u64)] = &[
    ("Control", 0xfe43_1161_c38d_3858),
    ("Integer", 0x3a0c_db3d_d855_f0f7),
    ("Mmx", 0xd964_5e9a_b5cf_0a29),
    ("Sse", 0x9d4f_e99d_ed62_de65),
    ("String", 0x19d8_a895_0385_2066),
    ("System", 0x74a1_6b2e_8cc2_68af),
    ("X87", 0x8266_7415_3fd3_9bce),
    ("memory", 0x0991_cde4_e748_0e77),
];

/// State of a 64-bit FNV-1a hash.
#[derive(Clone, Copy)]
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

const EMPTY: Digest = Digest(0xcbf2_9ce4_8422_2325);

/// True for instruction forms that the other tests cannot compare with the host's processor: the soft CPU computes them
/// in software, and the host's result differs.
fn approximated(code: Code) -> bool {
    use Mnemonic::{
        F2xm1, Fcos, Fpatan, Fptan, Fsin, Fsincos, Fyl2x, Fyl2xp1, Rcpps, Rcpss, Rsqrtps, Rsqrtss,
    };
    let ours = [F2xm1, Fcos, Fpatan, Fptan, Fsin, Fsincos, Fyl2x, Fyl2xp1, Rcpps, Rcpss, Rsqrtps, Rsqrtss];
    ours.contains(&code.mnemonic()) && code.op_code().mode64()
}

fn write(guest: &mut Guest, case: &Case) {
    let at = case.state.rip - if case.state.rip >= HIGH { HIGH } else { LOW };
    let room = (CODE + CODE_LEN - at) as usize;
    let bytes = &case.encoded.bytes;
    guest.write(at, &bytes[..bytes.len().min(room)]);
    case.writes.iter().for_each(|(offset, bytes)| guest.write(*offset, bytes));
}

#[test]
fn results_of_the_soft_cpu_are_the_same_on_every_host() {
    let mut guest = Guest::new(CpuModel::V2);
    let factory = &mut InstructionInfoFactory::new();
    let mut families: BTreeMap<String, Digest> = BTreeMap::new();
    let mut all = forms(CpuModel::V2);
    all.extend(Code::values().filter(|code| approximated(*code)));
    for (number, code) in all.into_iter().enumerate() {
        let mut digest = EMPTY;
        for n in 0..CASES {
            let rng = &mut Rng::for_case(SEED, number as u64 * CASES + n);
            let rip = HIGH + CODE + rng.below(CODE_LEN - 64);
            let case = (0..50).find_map(|_| place(encode(code, rip, CpuModel::V2, rng)?, rng, factory));
            let Some(case) = case else { continue };
            write(&mut guest, &case);
            let outcome = guest.run(&case.state, 1);
            digest.add(format!("{outcome:?}").as_bytes());
        }
        println!("{code:?} {:016x}", digest.0);
        let name: Family = family(code);
        families.entry(format!("{name:?}")).or_insert(EMPTY).add(&digest.0.to_le_bytes());
    }
    families.entry("memory".to_owned()).or_insert(EMPTY).add(guest.data());
    let found: Vec<(String, u64)> = families.into_iter().map(|(name, digest)| (name, digest.0)).collect();
    let golden: Vec<(String, u64)> =
        GOLDEN.iter().map(|(name, digest)| ((*name).to_owned(), *digest)).collect();
    assert_eq!(
        found, golden,
        "the soft CPU gives other results on this host: compare the digests of forms above with those of another host"
    );
}
