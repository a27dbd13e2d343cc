//! Comparison of the soft CPU with the host CPU, which is the oracle. The tests use random operands and encodings for
//! every form (opcode with its operand kinds) that the soft CPU has in user mode.
//!
//! - [`arena`]: the memory that both CPUs see at the same addresses
//! - [`host`], [`guest`]: execution of instructions on each CPU
//! - [`forms`]: the instruction forms to test
//! - [`exempt`]: instructions that cannot be compared, with the reasons
//! - [`encode`], [`encode_vex`], [`raw`]: random instructions and random bytes
//! - [`values`], [`place`], [`extended`]: random registers and memory for an instruction
//! - [`sequence`]: several instructions in a row
//! - [`undefined`]: flags that the manual leaves undefined; [`compare`]: comparison of outcomes
//! - [`makes`]: differences between the processors of two vendors
//! - [`golden`]: results that must be equal on all hosts
//! - [`oracle`]: one case, from the seed to the verdict
//! - [`state`]: registers and outcomes
//! - [`flag`]: bits of RFLAGS
//! - [`rng`]: random numbers
//!
//! Environment variables: `EVERETT_ORACLE_CASES` (number of cases), `EVERETT_ORACLE_SEED`, `EVERETT_ORACLE_ONLY`
//! (a mnemonic: only its forms are tested), `EVERETT_ORACLE_CASE` (number of the only case to run). See
//! `docs/instruction-tests.md`.

mod arena;
mod compare;
mod encode;
mod encode_vex;
mod exempt;
mod extended;
mod flag;
mod forms;
mod golden;
mod guest;
mod host;
mod makes;
mod oracle;
mod place;
mod raw;
mod rng;
mod sequence;
mod state;
mod undefined;
mod values;

use everett_cpu::CpuModel;
use forms::Family;
use iced_x86::Code;
use oracle::{Kind, Oracle, Result};
use std::collections::BTreeMap;

/// Default number of cases. Long runs have more than a million.
const CASES: u64 = 120_000;
/// Minimum number of comparisons for each form in a run of `CASES`.
const HITS_MIN: u64 = 50;
/// Maximum number of forms whose disagreements are printed.
const PRINTED_MAX: usize = 400;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    Some(parsed.unwrap_or_else(|_| panic!("{name}: {text:?} is not a number")))
}

#[test]
fn instructions_agree_with_the_host() {
    compare_all(CpuModel::V2, forms::forms(CpuModel::V2));
}

/// The forms that the largest model has beyond `v2`, as far as the host has them.
#[test]
fn instructions_of_larger_models_agree_with_the_host() {
    let old = forms::forms(CpuModel::V2);
    let mut new = forms::forms(CpuModel::LARGEST);
    new.retain(|form| !old.contains(form) && form.cpuid_features().iter().all(|&f| host::features::has(f)));
    if new.is_empty() {
        println!("the host has no instruction beyond x86-64-v2");
        return;
    }
    compare_all(CpuModel::LARGEST, new);
}

/// Compares cases of these forms on the host and on a soft CPU of this model.
fn compare_all(model: CpuModel, mut forms: Vec<Code>) {
    let only = std::env::var("EVERETT_ORACLE_ONLY").ok();
    let seed = number("EVERETT_ORACLE_SEED").unwrap_or(1);
    if let Some(only) = &only {
        forms.retain(|f| format!("{:?}", f.mnemonic()).eq_ignore_ascii_case(only));
        if forms.is_empty() {
            println!("EVERETT_ORACLE_ONLY: no form of {model} in this test has the mnemonic {only:?}");
            return;
        }
    }
    let one = number("EVERETT_ORACLE_CASE");
    let cases = one.map_or_else(|| 0..number("EVERETT_ORACLE_CASES").unwrap_or(CASES), |n| n..n + 1);
    let mut oracle = Oracle::new(model);
    let mut hits: BTreeMap<Code, u64> = forms.iter().map(|&f| (f, 0)).collect();
    let mut faults = 0;
    let (mut raw, mut sequences) = (0, 0);
    let mut failed: BTreeMap<Code, (u64, String)> = BTreeMap::new();
    for n in cases.clone() {
        let tested = match oracle.run(&forms, seed, n) {
            Result::Agreed(tested) => tested,
            Result::Differs(tested, text) => {
                let entry =
                    failed.entry(tested.code).or_insert_with(|| (0, format!("seed {seed} case {n}\n{text}")));
                entry.0 += 1;
                tested
            }
            Result::NotDrawn => continue,
        };
        faults += u64::from(tested.faulted);
        match tested.kind {
            Kind::Form => *hits.get_mut(&tested.code).expect("a form") += 1,
            Kind::Raw => raw += 1,
            Kind::Sequence => sequences += 1,
        }
    }
    let mut families: BTreeMap<Family, (u64, u64)> = BTreeMap::new();
    for (&code, &n) in &hits {
        let entry = families.entry(forms::family(code)).or_default();
        entry.0 += 1;
        entry.1 += n;
    }
    let total: u64 = hits.values().sum::<u64>() + raw + sequences;
    println!("seed {seed}: {total} cases, {raw} of raw bytes, {sequences} sequences, {faults} faulted");
    for (family, (forms, n)) in &families {
        println!("  {family:?}: {forms} forms, {n} cases");
    }
    for (difference, n) in oracle.differences() {
        println!("  this host differs: {}, {n} cases excused ({})", difference.name, difference.reason);
    }
    let least = hits.iter().min_by_key(|(_, n)| **n).expect("there are forms");
    println!("  fewest cases of one form: {} ({:?})", least.1, least.0);
    for (code, (n, text)) in failed.iter().take(PRINTED_MAX) {
        println!("--- {code:?}: {n} of {} cases differ\n{text}", hits.get(code).unwrap_or(&raw));
    }
    assert!(
        failed.is_empty(),
        "{} forms disagree with the host: {:?}",
        failed.len(),
        failed.iter().map(|(code, (n, _))| format!("{code:?} x{n}")).collect::<Vec<_>>()
    );
    if one.is_none() && only.is_none() && cases.end >= CASES {
        assert!(*least.1 >= HITS_MIN, "{:?} was compared only {} times", least.0, least.1);
    }
}

/// The comparison must detect a change of any part of an outcome.
#[test]
fn every_difference_is_detected() {
    let rip = arena::HIGH + arena::CODE;
    let encoded = encode::decode(&[0x48, 0x01, 0xc8], rip, CpuModel::V2);
    let mut rng = rng::Rng::for_case(1, 1);
    let factory = &mut iced_x86::InstructionInfoFactory::new();
    let case = place::place(encoded, &mut rng, factory).expect("no memory operand");
    let good = state::Outcome { state: case.state.clone(), end: state::End::Retired, retired: 1 };
    // The features of the soft CPU.
    let features = host::features::Features {
        v2: true,
        data_pointer_of_exceptions: true,
        hides_pointers: false,
        mxcsr_mask: 0xffff,
    };
    assert_eq!(compare::differences(&case, 0, features, &good, &good), Vec::<String>::new());
    type Change = Box<dyn Fn(&mut state::Outcome)>;
    let mut changes: Vec<Change> = vec![
        Box::new(|o| o.state.rip ^= 1),
        Box::new(|o| o.state.rflags ^= state::flag::AF),
        Box::new(|o| o.state.rflags ^= state::flag::DF),
        Box::new(|o| o.state.fpu.fcw ^= 0x400),
        Box::new(|o| o.state.fpu.fsw ^= 0x4000),
        Box::new(|o| o.state.fpu.ftw ^= 0x80),
        Box::new(|o| o.state.fpu.fop ^= 1),
        Box::new(|o| o.state.fpu.fip ^= 1 << 40),
        Box::new(|o| o.state.fpu.fdp ^= 1 << 40),
        Box::new(|o| o.state.fpu.mxcsr ^= 0x20),
        Box::new(|o| o.retired += 1),
        Box::new(|o| o.end = state::End::Fault { vector: 13, error: 0, address: 0 }),
    ];
    for n in 0..16 {
        changes.push(Box::new(move |o| o.state.gpr[n] ^= 1 << 63));
        changes.push(Box::new(move |o| o.state.fpu.xmm[n] ^= 1 << 127));
        changes.push(Box::new(move |o| o.state.fpu.r[n % 8].0 ^= 1));
        changes.push(Box::new(move |o| o.state.fpu.r[n % 8].1 ^= 0x8000));
    }
    for (n, change) in changes.iter().enumerate() {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(
            !compare::differences(&case, 0, features, &good, &bad).is_empty(),
            "change {n} was not detected"
        );
    }
    let mut memory = vec![0u8; 64];
    assert_eq!(compare::memory_difference(&memory, &memory), None);
    memory[63] = 1;
    assert!(compare::memory_difference(&[0; 64], &memory).is_some());
}

/// A difference between vendors excuses only the behaviour that it describes.
#[test]
fn a_difference_between_makes_hides_no_other() {
    let changes: [fn(&mut state::Outcome); 9] = [
        |o| o.state.gpr[11] ^= 1,
        |o| o.state.gpr[5] ^= 1 << 63,
        |o| o.state.rflags ^= state::flag::DF,
        |o| o.state.fpu.mxcsr ^= 1,
        |o| o.state.fpu.xmm[9] ^= 1,
        |o| o.state.fpu.r[5].0 ^= 1,
        |o| o.state.fpu.fcw ^= 0x400,
        |o| o.state.fpu.ftw ^= 4,
        |o| o.state.gpr[state::RCX] ^= 1 << 40,
    ];
    for model in [CpuModel::V2, CpuModel::LARGEST] {
        assert_eq!(Oracle::new(model).lax(&changes), Vec::<String>::new());
    }
}

/// Every mnemonic in `undefined::TABLE` belongs to a tested form. Every mnemonic in `exempt::TABLE` is an instruction
/// of 64-bit mode.
#[test]
fn every_line_of_the_tables_concerns_an_instruction() {
    let forms = forms::forms(CpuModel::LARGEST);
    for line in undefined::TABLE {
        assert!(
            forms.iter().any(|f| f.mnemonic() == line.mnemonic),
            "{:?} ({})",
            line.mnemonic,
            line.section
        );
    }
    for (mnemonics, reason) in exempt::TABLE {
        for &mnemonic in *mnemonics {
            let known = |code: Code| code.mnemonic() == mnemonic && code.op_code().mode64();
            assert!(Code::values().any(known), "{mnemonic:?} ({reason})");
        }
    }
}
