//! Draws random test cases, executes them on the host CPU and on the soft CPU (the two sides), and compares the
//! outcomes.

use crate::arena::{CODE, CODE_LEN, DATA, HIGH, LOW, offset};
use crate::compare::{
    EXCEPTION_PENDING, describe, differences, listing, memory_difference, range_of_difference,
};
use crate::encode::{LEN_MAX, decode, encode};
use crate::exempt::{Verdict, after_fault, is_doubly_wrong, may_check_alignment, may_fault, verdict};
use crate::guest::Guest;
use crate::host::Host;
use crate::host::features::{Features, features, has};
use crate::makes;
use crate::makes::{Difference, Seen};
use crate::place::{Case, ITERATIONS_MAX, image, place};
use crate::raw;
use crate::rng::Rng;
use crate::sequence::{self, Sequence};
use crate::state::{End, Outcome, RCX, RSP, Steps};
use crate::undefined::{Operands, undefined_result};
use everett_cpu::CpuModel;
use iced_x86::{Code, InstructionInfoFactory, Mnemonic};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum number of attempts to draw a usable case.
const DRAWS: usize = 200;
/// Number of cases in a round. Each round has one case of raw bytes and one sequence. All other cases are random
/// encodings of an instruction form.
const ROUND: u64 = 8;
const VECTOR_UD: u8 = 6;
/// MXCSR_MASK of the soft CPU: the valid bits of MXCSR.
const MXCSR_MASK: u16 = 0xffff;

/// Result of a case.
#[derive(Debug)]
pub(crate) enum Result {
    /// Both sides agree.
    Agreed(Tested),
    /// The sides disagree. The text describes the disagreement.
    Differs(Tested, String),
    /// No attempt drew a usable case.
    NotDrawn,
}

/// Kind of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A random encoding of an instruction form.
    Form,
    /// Random bytes.
    Raw,
    /// Several instructions. [`Tested::code`] is the form of the first instruction.
    Sequence,
}

/// Description of a case that was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tested {
    /// Form of the instruction, or `Code::INVALID` if the bytes are not an instruction of the soft CPU.
    pub(crate) code: Code,
    pub(crate) kind: Kind,
    /// True if the instruction faulted on the host.
    pub(crate) faulted: bool,
}

/// The host CPU and the soft CPU, side by side.
pub(crate) struct Oracle {
    host: Host,
    guest: Guest,
    /// Model of the soft CPU.
    model: CpuModel,
    factory: InstructionInfoFactory,
    features: Features,
    /// Known differences between this host's processor and the soft CPU. Each has the number of cases that it excused,
    /// i.e. whose disagreement it explained.
    differences: Vec<(&'static Difference, u64)>,
}

impl Oracle {
    /// Prepares both sides, and detects the differences of this host. The soft CPU has this model.
    pub(crate) fn new(model: CpuModel) -> Oracle {
        let features = features();
        assert!(features.v2, "the host is not an x86-64-v2 processor: it cannot be the oracle");
        let mut oracle = Oracle {
            host: Host::new(),
            guest: Guest::new(model),
            model,
            factory: InstructionInfoFactory::new(),
            features,
            differences: Vec::new(),
        };
        // An earlier test of this process may have changed the host's memory.
        oracle.guest.write(DATA, oracle.host.data());
        for at in (CODE..CODE + CODE_LEN).step_by(16) {
            oracle.write(at, &[0xcc; 16]);
        }
        oracle.features.hides_pointers = oracle.hides_pointers();
        oracle.differences = makes::TABLE.iter().filter(|d| oracle.shows(d)).map(|d| (d, 0)).collect();
        oracle
    }
    /// Returns true if FXSAVE on this host stores zeros in place of the x87 pointers while no exception is pending
    /// ([`Features::hides_pointers`]).
    fn hides_pointers(&mut self) -> bool {
        let mut state = makes::plain();
        (state.fpu.fop, state.fpu.fip, state.fpu.fdp) = (1, 1, 1);
        let case = Case { encoded: decode(&[0x90], state.rip, self.model), state, writes: vec![] };
        self.prepare(&case);
        let fpu = self.host.run(&case.state, Steps::Instructions(1)).state.fpu;
        (fpu.fop, fpu.fip, fpu.fdp) == (0, 0, 0)
    }
    /// Returns true if model and host have the difference's instruction, and the host shows the difference. Panics if the host neither shows the difference nor agrees with
    /// the soft CPU.
    fn shows(&mut self, difference: &Difference) -> bool {
        let case = difference.case();
        let i = &case.encoded.instruction;
        let on_host = CpuModel::V2.has(i) || i.cpuid_features().iter().all(|&feature| has(feature));
        if !self.model.has(i) || !on_host {
            return false;
        }
        self.prepare(&case);
        let host = self.host.run(&case.state, Steps::Iterations(1));
        let shown = (difference.shown)(&case, &host, self.host.data());
        if !shown && let Result::Differs(_, text) = self.compare(&case, Kind::Form) {
            panic!("{}: the host shows neither of the two behaviours:\n{text}", difference.name);
        }
        self.guest.write(DATA, self.host.data());
        shown
    }
    /// Runs the test cases of this host's differences. Returns the name of each difference that excuses too much, i.e.
    /// that also explains an outcome altered by one of `changes`, or an altered byte of memory. Panics if a difference
    /// does not explain the actual outcome of its test case.
    pub(crate) fn lax(&mut self, changes: &[fn(&mut Outcome)]) -> Vec<String> {
        let mut lax = Vec::new();
        for difference in self.differences.iter().map(|(difference, _)| *difference).collect::<Vec<_>>() {
            let case = difference.case();
            self.prepare(&case);
            let host = self.host.run(&case.state, Steps::Iterations(1));
            let guest = self.guest(&case, 1).expect("the guest's outcome");
            let memory = range_of_difference(self.host.data(), self.guest.data());
            self.guest.write(DATA, self.host.data());
            let memory = memory.map(|at| DATA + at.start..DATA + at.end);
            let explains = |host: &Outcome, memory| {
                let seen = Seen { case: &case, features: self.features, host, guest: &guest, memory };
                (difference.explains)(&seen)
            };
            let name = difference.name;
            assert!((difference.concerns)(&case.encoded) && explains(&host, memory.clone()), "{name}");
            for (n, change) in changes.iter().enumerate() {
                let mut changed = host.clone();
                change(&mut changed);
                if explains(&changed, memory.clone()) {
                    lax.push(format!("{name}: change {n}"));
                }
            }
            if explains(&host, Some(DATA..DATA + 1)) {
                lax.push(format!("{name}: memory"));
            }
        }
        lax
    }
    /// Returns the differences that this host shows, each with the number of cases that it excused.
    pub(crate) fn differences(&self) -> &[(&'static Difference, u64)] {
        &self.differences
    }
    /// True if one of this host's differences explains why the outcomes differ. `memory` is the range in which memory
    /// differs, as offsets in the arena.
    fn explained(
        &mut self,
        case: &Case,
        host: &Outcome,
        guest: &Outcome,
        memory: Option<Range<u64>>,
    ) -> bool {
        let seen = Seen { case, features: self.features, host, guest, memory };
        let explains = |d: &Difference| (d.concerns)(&case.encoded) && (d.explains)(&seen);
        let found = self.differences.iter_mut().find(|(difference, _)| explains(difference));
        found.map(|(_, n)| *n += 1).is_some()
    }
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.host.write(offset, bytes);
        self.guest.write(offset, bytes);
    }

    /// Draws case `number` and runs it on both sides.
    pub(crate) fn run(&mut self, forms: &[Code], seed: u64, number: u64) -> Result {
        let rng = &mut Rng::for_case(seed, number);
        let kind = match number % ROUND {
            0 => Kind::Raw,
            1 => Kind::Sequence,
            _ => Kind::Form,
        };
        let code = forms[((number / ROUND * (ROUND - 2) + number % ROUND) % forms.len() as u64) as usize];
        for _ in 0..DRAWS {
            let rip = rip(rng);
            let encoded = match kind {
                Kind::Raw => Some(decode(&raw::bytes(forms, rip, self.model, rng), rip, self.model)),
                Kind::Form => encode(code, rip, self.model, rng),
                Kind::Sequence => {
                    let Some(sequence) =
                        sequence::draw(forms, sequence_rip(rip), self.model, rng, &mut self.factory)
                    else {
                        continue;
                    };
                    return self.sequence(&sequence);
                }
            };
            let Some(encoded) = encoded else { continue };
            let verdict = verdict(&encoded.instruction, self.model);
            let Some(case) = (match verdict {
                Verdict::Skip(_) => None,
                _ => place(encoded, rng, &mut self.factory),
            }) else {
                continue;
            };
            self.prepare(&case);
            return if verdict == Verdict::Undefined {
                self.undefined(&case)
            } else {
                self.compare(&case, kind)
            };
        }
        Result::NotDrawn
    }
    fn prepare(&mut self, case: &Case) {
        let at = case.state.rip - if case.state.rip >= HIGH { HIGH } else { LOW };
        let room = (CODE + CODE_LEN - at) as usize;
        let bytes = &case.encoded.bytes;
        self.write(at, &bytes[..bytes.len().min(room)]);
        for (offset, bytes) in &case.writes {
            self.write(*offset, bytes);
        }
    }
    fn guest(&mut self, case: &Case, count: u64) -> std::result::Result<Outcome, String> {
        let guest = &mut self.guest;
        match catch_unwind(AssertUnwindSafe(|| guest.run(&case.state, count))) {
            Ok(outcome) => outcome,
            Err(_) => {
                self.guest = Guest::new(self.model);
                self.guest.write(DATA, self.host.data());
                Err("the CPU panicked".into())
            }
        }
    }
    fn compare(&mut self, case: &Case, kind: Kind) -> Result {
        let i = case.encoded.instruction;
        let string = i.is_string_instruction();
        // A repeated instruction usually runs to its end. Sometimes the test stops it after a few iterations, as an
        // interrupt would.
        let iterations_max = match case.state.gpr[RSP] % 4 {
            _ if !string => 1,
            0 => 1 + case.state.gpr[RSP] / 4 % 8,
            _ => ITERATIONS_MAX,
        };
        let host = self.host.run(&case.state, Steps::Iterations(iterations_max));
        if matches!(i.mnemonic(), Mnemonic::Pushf | Mnemonic::Pushfq) && host.end == End::Retired {
            self.hide_trap_flag(host.state.gpr[RSP]);
        }
        let count = host.retired + u64::from(host.end != End::Retired);
        let tested = Tested { code: i.code(), kind, faulted: host.end != End::Retired };
        let mut wrong = vec![];
        let guest = self.guest(case, count);
        let cut = i.is_invalid() && is_cut(case);
        // True if the host's MXCSR has bits that the soft CPU lacks.
        let more_mxcsr = host.state.fpu.mxcsr & self.features.mxcsr_mask & !u32::from(MXCSR_MASK) != 0;
        let doubtful = cut
            || more_mxcsr
            || may_fault(&i)
            || may_check_alignment(&i, case.state.rflags)
            || is_doubly_wrong(&case.encoded.bytes, self.model);
        let may_differ = doubtful && guest.as_ref().is_ok_and(|guest| guest.end != host.end);
        match &guest {
            Ok(_) if may_differ => {}
            Ok(guest) => wrong = differences(case, 0, self.features, &host, guest),
            Err(reason) => wrong.push(reason.clone()),
        }
        if host.end == End::Retired {
            self.hide_image(case);
        }
        let mut memory = None;
        if let Some(difference) = memory_difference(self.host.data(), self.guest.data()) {
            if !(may_differ || tested.faulted && after_fault(&i).memory || has_undefined_result(case)) {
                memory = range_of_difference(self.host.data(), self.guest.data());
                wrong.push(difference);
            }
            self.guest.write(DATA, self.host.data());
        }
        if !wrong.is_empty()
            && let Ok(guest) = &guest
            && self.explained(case, &host, guest, memory.map(|at| DATA + at.start..DATA + at.end))
        {
            wrong.clear();
        }
        if !wrong.is_empty() {
            wrong.push(format!(
                "host: {:x?}, rip {:#x}, rflags {:#x}",
                host.end, host.state.rip, host.state.rflags
            ));
        }
        conclude(case, tested, &wrong)
    }
    fn sequence(&mut self, sequence: &Sequence) -> Result {
        let case = &sequence.case;
        self.prepare(case);
        let count = sequence.instructions.len() as u64;
        let host = self.host.run(&case.state, Steps::Instructions(count));
        let tested = Tested {
            code: case.encoded.instruction.code(),
            kind: Kind::Sequence,
            faulted: host.end != End::Retired,
        };
        // The comparison needs the last instruction that the host executed: the instruction that faulted, or else the
        // branch at the end of the sequence.
        let last = (host.retired as usize).min(sequence.instructions.len() - 1);
        let end = Case { encoded: sequence.instructions[last].clone(), ..case.clone() };
        // If an instruction faults, the guest executes NOPs in the exception handler until it reaches `count`.
        let guest = self.guest(case, count);
        let mut wrong = match &guest {
            Ok(guest) => differences(&end, sequence.undefined[last], self.features, &host, guest),
            Err(reason) => vec![reason.clone()],
        };
        if wrong.is_empty() {
            return Result::Agreed(tested);
        }
        wrong.push(format!("host: {:x?} after {}", host.end, host.retired));
        let listing: String = sequence.instructions.iter().map(listing).collect();
        Result::Differs(tested, format!("{listing}{}  => {}\n", describe(case), wrong.join("\n  => ")))
    }
    /// Tests an instruction that the soft CPU lacks. The guest must raise #UD at the instruction.
    fn undefined(&mut self, case: &Case) -> Result {
        let tested = Tested { code: Code::INVALID, kind: Kind::Raw, faulted: true };
        let end = End::Fault { vector: VECTOR_UD, error: 0, address: 0 };
        let wrong = match self.guest(case, 1) {
            Ok(guest) if guest.end == end && guest.state.rip == case.state.rip => vec![],
            Ok(_) if is_cut(case) => vec![],
            Ok(guest) => {
                vec![format!("outside of the model, but the guest did not raise #UD: {:?}", guest.end)]
            }
            Err(reason) => vec![reason],
        };
        conclude(case, tested, &wrong)
    }
    /// Copies the parts of an FXSAVE, FNSAVE or FNSTENV image that depend on the host CPU from the host's memory to the
    /// guest's. The parts are MXCSR_MASK, and the x87 pointers if the host hides them. On a host that hides them, an
    /// FNSAVE image may lack the pointers, too: the kernel may have interrupted the process earlier and saved its state
    /// with FXSAVE.
    fn hide_image(&mut self, case: &Case) {
        use Code::{
            Fnsave_m94byte, Fnsave_m108byte, Fnstenv_m14byte, Fnstenv_m28byte, Fxsave_m512byte,
            Fxsave64_m512byte,
        };
        let pointers = match case.encoded.instruction.code() {
            Fxsave_m512byte | Fxsave64_m512byte => 6..24,
            Fnsave_m108byte | Fnstenv_m28byte => 12..26,
            Fnsave_m94byte | Fnstenv_m14byte => 6..14,
            _ => return,
        };
        let Some(at) = image(case, &mut self.factory).and_then(offset) else { return };
        let mut hidden = vec![];
        if pointers.end == 24 && self.features.mxcsr_mask != u32::from(MXCSR_MASK) {
            hidden.push(28..32);
        }
        if self.features.hides_pointers && case.state.fpu.fsw & EXCEPTION_PENDING == 0 {
            hidden.push(pointers);
        }
        for bytes in hidden {
            let from = at + bytes.start;
            let shown =
                self.host.data()[(from - DATA) as usize..][..(bytes.end - bytes.start) as usize].to_vec();
            self.guest.write(from, &shown);
        }
    }
    /// Clears the trap flag in the flags that PUSHF stored on the host. The host had the flag set only to stop after
    /// one instruction.
    fn hide_trap_flag(&mut self, stack: u64) {
        let Some(at) = offset(stack) else { return };
        let byte = self.host.data()[(at + 1 - DATA) as usize] & !1;
        self.host.write(at + 1, &[byte]);
    }
}

/// True if the manual leaves the instruction's destination undefined (see `undefined`).
fn has_undefined_result(case: &Case) -> bool {
    undefined_result(&case.encoded.instruction, &Operands { rcx: case.state.gpr[RCX] })
}

/// True if the instruction may continue on the unmapped page after `CODE`. The manual does not define how many bytes a
/// processor fetches before it detects an invalid instruction.
fn is_cut(case: &Case) -> bool {
    offset(case.state.rip).is_some_and(|at| at > CODE + CODE_LEN - LEN_MAX as u64)
}

fn conclude(case: &Case, tested: Tested, wrong: &[String]) -> Result {
    if wrong.is_empty() {
        Result::Agreed(tested)
    } else {
        Result::Differs(tested, format!("{}  => {}\n", describe(case), wrong.join("\n  => ")))
    }
}

/// Returns an address for a sequence. At least 256 bytes of `CODE` follow it.
fn sequence_rip(rip: u64) -> u64 {
    let view = if rip >= HIGH { HIGH } else { LOW };
    view + CODE + (rip - view - CODE) % (CODE_LEN - 256)
}

/// Draws an address in `CODE` for an instruction. The instruction may span two pages, or continue on the unmapped page
/// after `CODE`.
fn rip(rng: &mut Rng) -> u64 {
    let view = if rng.one_in(3) { LOW } else { HIGH };
    let len = LEN_MAX as u64;
    let offset = match rng.below(32) {
        0..=3 => (1 + rng.below(CODE_LEN / 4096 - 1)) * 4096 - rng.below(len),
        4 => CODE_LEN - rng.below(len) - 1,
        _ => rng.below(CODE_LEN - len),
    };
    view + CODE + offset
}
