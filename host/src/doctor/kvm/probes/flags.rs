//! Probe for status flags that the manual calls undefined. It compares the values that the host's processor and the CPU
//! model (Everett's own CPU) leave in these flags.
//!
//! In the clock modes `exit` and `branch`, digests do not cover status flags (`everett_vmm::digest::registers`).
//! Different flags therefore change no digest, and no result of this probe makes a host inexact. A program that copies
//! undefined flags would see the differences that this probe reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use everett_cpu::CacheConfig;
use everett_input::causes::with_causes;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use serde::Serialize;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use super::Notes;
use crate::doctor::kvm::guest::{Guest, RAM_BYTES, Ring};
use crate::doctor::kvm::host::{Host, Ran};

/// Name of the probe and of its guests.
pub(crate) const NAME: &str = "undefined flags";
const MEANS: &str =
    "visible only to programs that copy flags; digests in the clock modes of kvm do not cover them";

const CF: u64 = 1;
const PF: u64 = 1 << 2;
const AF: u64 = 1 << 4;
const ZF: u64 = 1 << 6;
const SF: u64 = 1 << 7;
const OF: u64 = 1 << 11;
/// The status flags, in the order in which reports list them.
const FLAGS: [(&str, u64); 6] = [("CF", CF), ("PF", PF), ("AF", AF), ("ZF", ZF), ("SF", SF), ("OF", OF)];
const ALL: u64 = CF | PF | AF | ZF | SF | OF;
/// Bit of RFLAGS that is always 1.
const ALWAYS: u64 = 2;

/// An instruction with the operands EAX, ECX and EDX, and the status flags that it leaves undefined.
struct Sample {
    name: &'static str,
    code: &'static [u8],
    undefined: u64,
    /// True if ring 3 may not execute the instruction.
    privileged: bool,
}

const fn sample(name: &'static str, code: &'static [u8], undefined: u64) -> Sample {
    Sample { name, code, undefined, privileged: false }
}

/// All instructions of the CPU model that leave a status flag undefined. A test compares this list with the decoder's
/// tables.
const SAMPLES: [Sample; 34] = [
    sample("shl by 1", &[0xd1, 0xe0], AF),
    sample("shl", &[0xc1, 0xe0, 3], OF | AF),
    sample("shl beyond its width", &[0xc0, 0xe0, 17], OF | AF | CF),
    sample("sal", &[0xc1, 0xf0, 3], OF | AF),
    sample("shr by 1", &[0xd1, 0xe8], AF),
    sample("shr", &[0xc1, 0xe8, 3], OF | AF),
    sample("shr beyond its width", &[0xc0, 0xe8, 17], OF | AF | CF),
    sample("sar by 1", &[0xd1, 0xf8], AF),
    sample("sar", &[0xc1, 0xf8, 3], OF | AF),
    sample("rol", &[0xc1, 0xc0, 3], OF),
    sample("ror", &[0xc1, 0xc8, 3], OF),
    sample("rcl", &[0xc1, 0xd0, 3], OF),
    sample("rcr", &[0xc1, 0xd8, 3], OF),
    sample("shld", &[0x0f, 0xa4, 0xc8, 3], OF | AF),
    sample("shrd", &[0x0f, 0xac, 0xc8, 3], OF | AF),
    sample("mul", &[0xf7, 0xe1], SF | ZF | AF | PF),
    sample("imul", &[0x0f, 0xaf, 0xc1], SF | ZF | AF | PF),
    sample("imul of one operand", &[0xf7, 0xe9], SF | ZF | AF | PF),
    sample("imul of three operands", &[0x6b, 0xc1, 7], SF | ZF | AF | PF),
    sample("div", &[0xf7, 0xf1], ALL),
    sample("idiv", &[0xf7, 0xf9], ALL),
    sample("bsf", &[0x0f, 0xbc, 0xc1], CF | OF | SF | AF | PF),
    sample("bsf of 0", &[0x0f, 0xbc, 0xc2], CF | OF | SF | AF | PF),
    sample("bsr", &[0x0f, 0xbd, 0xc1], CF | OF | SF | AF | PF),
    sample("bsr of 0", &[0x0f, 0xbd, 0xc2], CF | OF | SF | AF | PF),
    sample("bt", &[0x0f, 0xba, 0xe0, 3], OF | SF | AF | PF),
    sample("bts", &[0x0f, 0xba, 0xe8, 3], OF | SF | AF | PF),
    sample("btr", &[0x0f, 0xba, 0xf0, 3], OF | SF | AF | PF),
    sample("btc", &[0x0f, 0xba, 0xf8, 3], OF | SF | AF | PF),
    sample("and", &[0x21, 0xc8], AF),
    sample("or", &[0x09, 0xc8], AF),
    sample("xor", &[0x31, 0xc8], AF),
    sample("test", &[0x85, 0xc8], AF),
    Sample { privileged: true, ..sample("mov from a control register", &[0x0f, 0x20, 0xc0], ALL) },
];

/// Values of RAX and RCX before a sample's instruction. A case is one of these pairs with one value of [`BEFORE`]. RDX
/// is zero, so that no quotient overflows. The cases include products of both parities and of both signs, and bit
/// positions (results of BSF and BSR) of both parities. A flag that depends on the result therefore differs between
/// cases.
const OPERANDS: [(u64, u64); 3] = [(0x8000_0011, 0xb), (0x7fff_fff1, 0x8000_0001), (0, 0x10)];
/// Values of the status flags before the instruction.
const BEFORE: [u64; 2] = [0, ALL];
/// Number of cases of a sample. The guest keeps the flags after case number n in register R8 + n.
const CASES: usize = OPERANDS.len() * BEFORE.len();
const FIRST: usize = 8;

/// Behaviour of a processor for an undefined flag, inferred from the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// The processor clears the flag.
    Clears,
    /// The processor sets the flag.
    Sets,
    /// The processor leaves the flag unchanged.
    Keeps,
    /// The processor computes the flag from the operands.
    Computes,
}

impl Does {
    fn words(self) -> &'static str {
        match self {
            Does::Clears => "cleared by",
            Does::Sets => "set by",
            Does::Keeps => "left alone by",
            Does::Computes => "computed by",
        }
    }
}

/// Comparison of host and model for one instruction and one undefined status flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undefined {
    /// Name of the instruction.
    pub instruction: &'static str,
    /// Name of the flag.
    pub flag: &'static str,
    /// Behaviour of the host's processor.
    pub host: Does,
    /// Behaviour of the CPU model.
    pub model: Does,
    /// True if host and model give the same value in every case.
    pub equal: bool,
}

impl Sample {
    fn runs_in(&self, ring: Ring) -> bool {
        ring == Ring::Zero || !self.privileged
    }
    fn guest(&self, ring: Ring) -> Guest {
        let mut code = Vec::new();
        for (case, (before, (rax, rcx))) in cases().enumerate() {
            for (opcode, value) in [(0xb8, rax), (0xb9, rcx), (0xba, 0)] {
                code.extend([0x48, opcode]); // mov to rax, to rcx or to rdx
                code.extend(u64::to_le_bytes(value));
            }
            code.push(0x68); // push
            code.extend(((before | ALWAYS) as u32).to_le_bytes());
            code.push(0x9d); // popfq
            code.extend(self.code);
            code.extend([0x9c, 0x41, 0x58 + case as u8]); // pushfq; pop r8 and so on
        }
        Guest::new(NAME, ring, &code)
    }
    fn results(&self, ran: &Ran) -> Result<[u64; CASES], String> {
        if !ran.to_its_end() {
            return Err(format!("{}: {}", self.name, ran.how()));
        }
        Ok(std::array::from_fn(|case| ran.gpr[FIRST + case]))
    }
    /// Compares the results of host and model, for each flag that the instruction leaves undefined.
    fn rows(&self, host: [u64; CASES], model: [u64; CASES]) -> impl Iterator<Item = Undefined> {
        let flags = FLAGS.into_iter().filter(|(_, bit)| self.undefined & bit != 0);
        flags.map(move |(flag, bit)| Undefined {
            instruction: self.name,
            flag,
            host: does(host, bit),
            model: does(model, bit),
            equal: host.iter().zip(&model).all(|(host, model)| (host ^ model) & bit == 0),
        })
    }
}

/// Returns the cases: the status flags before the instruction, and the operands (RAX, RCX).
fn cases() -> impl Iterator<Item = (u64, (u64, u64))> {
    BEFORE.into_iter().flat_map(|before| OPERANDS.map(|operands| (before, operands)))
}

fn does(results: [u64; CASES], bit: u64) -> Does {
    let all = |wanted: fn(u64) -> bool| {
        results.iter().zip(cases()).all(|(result, (before, _))| (result & bit != 0) == wanted(before))
    };
    match () {
        () if all(|_| false) => Does::Clears,
        () if all(|_| true) => Does::Sets,
        () if all(|before| before != 0) => Does::Keeps,
        () => Does::Computes,
    }
}

/// Runs a guest on the CPU model. Returns the guest's general registers.
///
/// # Errors
/// Returns an error if there is no memory for the guest, or if the guest does not halt.
pub(crate) fn on_the_model(guest: &Guest) -> Result<[u64; 16], String> {
    let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), RAM_BYTES)]);
    let memory = Arc::new(memory.map_err(|error| with_causes(&error))?);
    let written = memory.write_slice(&guest.memory(), GuestAddress(0));
    written.map_err(|error| with_causes(&error))?;
    let mut soft = SoftEngine::new(memory, CacheConfig::default());
    soft.set_state(&guest.registers());
    match soft.run(Until { icount: guest.code.len() as u64, ..Until::default() }) {
        Exit::Halt => Ok(soft.state().gpr),
        other => Err(format!("the model: {other:?}")),
    }
}

pub(super) fn probe(host: &mut dyn Host, notes: &mut Notes) {
    let seen = look(host, Ring::Three).and_then(|three| Ok((three, look(host, Ring::Zero)?)));
    let (three, zero) = match seen {
        Ok(seen) => seen,
        Err(why) => return notes.note(NAME, format!("unknown: {why}"), MEANS),
    };
    let other = |rows: &[Undefined]| rows.iter().filter(|row| !row.equal).cloned().collect::<Vec<_>>();
    let (in_three, in_zero) = (other(&three), other(&zero));
    let mut detail = format!("{} of {} are as in the model", zero.len() - in_zero.len(), zero.len());
    if !in_zero.is_empty() {
        detail.push_str(&format!("; {}", summary(&in_zero)));
    }
    if in_zero != in_three {
        detail.push_str(&format!("; in ring 3: {}", summary(&in_three)));
    }
    if in_zero.is_empty() && in_three.is_empty() {
        notes.ok(NAME, detail, "");
    } else {
        notes.note(NAME, detail, MEANS);
    }
    // These rows are for privileged samples. All other rows come from ring 3: the processor executes ring 3 itself,
    // even if the host emulates ring 0.
    let privileged =
        zero.into_iter().filter(|row| !three.iter().any(|other| other.instruction == row.instruction));
    let rows = privileged.collect::<Vec<_>>();
    notes.undefined(three.into_iter().chain(rows).collect());
}

/// Runs every sample that may be executed in this ring.
fn look(host: &mut dyn Host, ring: Ring) -> Result<Vec<Undefined>, String> {
    let mut rows = Vec::new();
    for sample in SAMPLES.iter().filter(|sample| sample.runs_in(ring)) {
        let guest = sample.guest(ring);
        let seen = sample.results(&host.run(&guest)?)?;
        let gpr = on_the_model(&guest)?;
        let model = std::array::from_fn(|case| gpr[FIRST + case]);
        rows.extend(sample.rows(seen, model));
    }
    Ok(rows)
}

/// Describes rows in words, grouped by the flag and by what the host does.
fn summary(rows: &[Undefined]) -> String {
    let place = |row: &Undefined| FLAGS.iter().position(|(flag, _)| *flag == row.flag);
    let mut groups: BTreeMap<_, Vec<&Undefined>> = BTreeMap::new();
    for row in rows {
        groups.entry((place(row), row.host)).or_default().push(row);
    }
    let words = |rows: &Vec<&Undefined>| {
        let instructions = rows.iter().map(|row| row.instruction).collect::<Vec<_>>().join(", ");
        rows.first().map(|row| format!("{} {} {instructions}", row.flag, row.host.words()))
    };
    if groups.is_empty() {
        "all are".to_owned()
    } else {
        groups.values().filter_map(words).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use everett_cpu::CpuModel;
    use iced_x86::{Code, Decoder, DecoderOptions, Instruction, RflagsBits};

    use super::*;

    fn undefined(i: &Instruction) -> u64 {
        let bits = i.rflags_undefined();
        let names = [
            (RflagsBits::CF, CF),
            (RflagsBits::PF, PF),
            (RflagsBits::AF, AF),
            (RflagsBits::ZF, ZF),
            (RflagsBits::SF, SF),
            (RflagsBits::OF, OF),
        ];
        names.into_iter().filter(|(theirs, _)| bits & theirs != 0).map(|(_, ours)| ours).sum()
    }

    #[test]
    fn nothing_on_the_decoders_list_is_forgotten() {
        let mut wanted = BTreeSet::new();
        for code in Code::values().filter(|code| code.op_code().mode64()) {
            let mut i = Instruction::default();
            i.set_code(code);
            if CpuModel::default().has(&i) && undefined(&i) != 0 {
                wanted.insert(format!("{:?}", code.mnemonic()));
            }
        }
        let mut seen = BTreeSet::new();
        for sample in &SAMPLES {
            let i = Decoder::new(64, sample.code, DecoderOptions::NONE).decode();
            assert_eq!(i.len(), sample.code.len(), "{}", sample.name);
            // The decoder's tables do not say that CF is undefined after a shift by the operand's width or more (SDM
            // vol. 2B, SAL/SAR/SHL/SHR).
            let cf = if sample.name.contains("beyond") { CF } else { 0 };
            assert_eq!(sample.undefined & !cf, undefined(&i), "{}", sample.name);
            seen.insert(format!("{:?}", i.mnemonic()));
        }
        assert_eq!(seen, wanted);
    }

    #[test]
    fn what_a_processor_does_is_told_from_six_cases() {
        let cases: Vec<u64> = cases().map(|(before, _)| before).collect();
        let of = |f: fn(usize, u64) -> u64| does(std::array::from_fn(|n| f(n, cases[n])), AF);
        assert_eq!(of(|_, _| 0), Does::Clears);
        assert_eq!(of(|_, _| AF), Does::Sets);
        assert_eq!(of(|_, before| before), Does::Keeps);
        assert_eq!(of(|n, _| if n == 0 { AF } else { 0 }), Does::Computes);
    }

    /// After BSF and BSR, AMD processors set PF to the parity of the result, and the model clears PF. If all results
    /// had odd parity, the probe could not tell the two apart.
    #[test]
    fn a_flag_that_follows_a_result_varies_in_the_cases() {
        let products = OPERANDS.map(|(rax, rcx)| (rax as u32).wrapping_mul(rcx as u32));
        let by_seven = OPERANDS.map(|(_, rcx)| (rcx as u32).wrapping_mul(7));
        let lowest = OPERANDS.map(|(_, rcx)| (rcx as u32).trailing_zeros());
        let highest = OPERANDS.map(|(_, rcx)| (rcx as u32).ilog2());
        let varies =
            |results: [u32; 3], flag: fn(u32) -> bool| results.iter().any(|&r| flag(r) != flag(results[0]));
        for results in [products, by_seven, lowest, highest] {
            assert!(varies(results, |r| (r as u8).count_ones().is_multiple_of(2)), "parity of {results:x?}");
        }
        for results in [products, by_seven] {
            assert!(varies(results, |r| r >> 31 != 0), "sign of {results:x?}");
        }
        assert!(varies(products, |r| r == 0), "{products:x?}");
    }

    #[test]
    fn people_are_told_of_flags_in_the_order_of_the_manual() {
        let row = |flag, host| Undefined { instruction: "x", flag, host, model: Does::Clears, equal: false };
        let rows =
            [row("SF", Does::Keeps), row("AF", Does::Sets), row("PF", Does::Keeps), row("CF", Does::Sets)];
        let told = "CF set by x; PF left alone by x; AF set by x; SF left alone by x";
        assert_eq!(summary(&rows), told);
    }

    #[test]
    fn the_model_is_what_the_soft_cpu_does() {
        for ring in [Ring::Zero, Ring::Three] {
            for sample in SAMPLES.iter().filter(|sample| sample.runs_in(ring)) {
                let gpr = on_the_model(&sample.guest(ring)).unwrap();
                let results: [u64; CASES] = std::array::from_fn(|case| gpr[FIRST + case]);
                assert!(results.iter().all(|flags| flags & !ALL == ALWAYS), "{}: {results:x?}", sample.name);
            }
        }
        // Shifts clear AF in all cases, whatever its value was before.
        let shl = SAMPLES.iter().find(|sample| sample.name == "shl").unwrap();
        let gpr = on_the_model(&shl.guest(Ring::Three)).unwrap();
        assert_eq!(does(std::array::from_fn(|case| gpr[FIRST + case]), AF), Does::Clears);
    }
}
