//! Probe for what guests must not see of the host's processor: its CPUID values, in ring 0 and in ring 3, and instructions
//! that the CPU model (Everett's own CPU) lacks.

use everett_cpu::CpuModel;
use everett_cpu::cpuid::leaves;
use everett_cpu::state::Msrs;

use super::{Effort, Notes, always};
use crate::doctor::kvm::guest::{Guest, Ring};
use crate::doctor::kvm::host::Host;

const UD: u8 = 6;

/// Instructions that return random numbers. No seed determines these numbers.
const RANDOM: [(&str, &[u8]); 2] =
    [("RDRAND", &[0x48, 0x0f, 0xc7, 0xf0]), ("RDSEED", &[0x48, 0x0f, 0xc7, 0xf8])];
/// Instructions that compute the same result on every processor that has them, and raise #UD on all others. Their
/// operands are registers.
const OTHERS: [(&str, &[u8]); 7] = [
    ("AESENC", &[0x66, 0x0f, 0x38, 0xdc, 0xc1]),
    ("SHA1NEXTE", &[0x0f, 0x38, 0xc8, 0xc1]),
    ("PCLMULQDQ", &[0x66, 0x0f, 0x3a, 0x44, 0xc1, 0x00]),
    ("ADX", &[0x66, 0x0f, 0x38, 0xf6, 0xc1]),
    ("RDPID", &[0xf3, 0x0f, 0xc7, 0xf8]),
    // Hypercalls compute nothing. KVM does not let them raise #UD, but returns an error to the guest.
    ("VMCALL", &[0x0f, 0x01, 0xc1]),
    ("VMMCALL", &[0x0f, 0x01, 0xd9]),
];
/// Code that begins a transaction as many times as RCX says. RBX counts the transactions that commit, and RSI collects
/// the statuses of those that abort.
const TRANSACTIONS: [u8; 24] = [
    0x31, 0xdb, // xor ebx, ebx
    0x31, 0xf6, // xor esi, esi
    0xc7, 0xf8, 0x07, 0x00, 0x00, 0x00, // again: xbegin aborted
    0xff, 0xc3, // inc ebx
    0x0f, 0x01, 0xd5, // xend
    0xeb, 0x02, // jmp next
    0x09, 0xc6, // aborted: or esi, eax
    0x48, 0xff, 0xc9, // next: dec rcx
    0x75, 0xec, // jnz again
];
const ATTEMPTS: u64 = 100;
/// Code that executes TZCNT of zero. Its last byte, which names the registers, is missing: the caller appends it. TZCNT
/// returns 64. A processor without TZCNT executes the same bytes as BSF, which keeps the register's old value (here zero).
const TZCNT: [u8; 8] = [0x31, 0xd2, 0x31, 0xc0, 0xf3, 0x48, 0x0f, 0xbc];
const TZCNT_OF_ZERO: u64 = 64;

pub(super) fn probe(host: &mut dyn Host, effort: Effort, notes: &mut Notes) {
    for (name, ring) in [("CPUID in ring 0", Ring::Zero), ("CPUID in ring 3", Ring::Three)] {
        let seen = always(effort.rounds(), || cpuid(host, ring));
        let means = "guests see the model, not the host";
        let holds = seen.is_ok();
        notes.needed(name, holds, seen.err().unwrap_or_else(|| "as in the model".to_owned()), means);
    }
    for (name, code) in RANDOM {
        let mut where_ = Vec::new();
        for (ring, word) in [(Ring::Zero, "ring 0"), (Ring::Three, "ring 3")] {
            match always(effort.rounds(), || hidden(host, name, code, ring)) {
                Ok(()) => {}
                Err(otherwise) => where_.push(format!("{otherwise} in {word}")),
            }
        }
        let holds = where_.is_empty();
        let detail = if holds { "raises #UD".to_owned() } else { where_.join(", ") };
        notes.needed(name, holds, detail, "no seed determines its random numbers");
    }
    let mut seen = Vec::new();
    let mut holds = true;
    for (ring, word) in [(Ring::Zero, "ring 0"), (Ring::Three, "ring 3")] {
        let mut aborts = false;
        match always(effort.rounds(), || transactions(host, ring, &mut aborts)) {
            Ok(()) if aborts => seen.push(format!("aborts at once in {word}")),
            Ok(()) => {}
            Err(otherwise) => {
                holds = false;
                seen.push(format!("{otherwise} in {word}"));
            }
        }
    }
    let detail = if seen.is_empty() { "raises #UD".to_owned() } else { seen.join(", ") };
    notes.needed("XBEGIN", holds, detail, "the host's interrupts and caches abort transactions");
    others(host, notes);
}

/// Describes the outcome of a guest's transactions. Returns `None` if the host cannot influence it: XBEGIN raises #UD,
/// or each transaction aborts with status 0, as on a processor where the feature is disabled. Sets `aborts` if the
/// guest executes XBEGIN and runs to its end.
fn transactions(host: &mut dyn Host, ring: Ring, aborts: &mut bool) -> Result<Option<String>, String> {
    let ran = host.run(&Guest { rcx: ATTEMPTS, ..Guest::new("XBEGIN", ring, &TRANSACTIONS) })?;
    if ran.raised(UD) {
        return Ok(None);
    }
    if !ran.to_its_end() {
        return Ok(Some(ran.how()));
    }
    let (committed, statuses) = (ran.gpr[3], ran.gpr[6]);
    *aborts = true;
    let begins = committed != 0 || statuses != 0;
    Ok(begins.then(|| format!("{committed} of {ATTEMPTS} transactions commit, aborts show {statuses:#x}")))
}

/// Returns a description of the first leaf that differs from the model. `None` if no leaf differs.
fn cpuid(host: &mut dyn Host, ring: Ring) -> Result<Option<String>, String> {
    let code = [0x0f, 0xa2];
    let mut wanted = leaves(CpuModel::default(), Msrs::default().apic_base);
    // Hypervisors identify themselves in leaves 40000000h and 40000001h. The model has no such leaves, and returns the
    // last basic leaf for both.
    if let Some(last) = wanted.iter().rev().find(|row| row.leaf < 0x8000_0000).copied() {
        wanted.push(everett_cpu::cpuid::Leaf { leaf: 0x4000_0000, ..last });
        wanted.push(everett_cpu::cpuid::Leaf { leaf: 0x4000_0001, ..last });
    }
    for row in wanted {
        let (rax, rcx) = (u64::from(row.leaf), u64::from(row.subleaf.unwrap_or(0)));
        let ran = host.run(&Guest { rax, rcx, ..Guest::new("CPUID", ring, &code) })?;
        if !ran.to_its_end() {
            return Err(ran.how());
        }
        let seen = [0, 3, 1, 2].map(|register| ran.gpr[register] as u32);
        if seen != row.registers {
            let what = format!("leaf {:#x} returns {seen:x?} instead of {:x?}", row.leaf, row.registers);
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// Returns what the instruction does. `None` if it raises #UD.
fn hidden(
    host: &mut dyn Host,
    name: &'static str,
    code: &[u8],
    ring: Ring,
) -> Result<Option<String>, String> {
    let ran = host.run(&Guest::new(name, ring, code))?;
    if ran.raised(UD) {
        return Ok(None);
    }
    let what = if ran.to_its_end() { "executes".to_owned() } else { ran.how() };
    Ok(Some(what))
}

fn others(host: &mut dyn Host, notes: &mut Notes) {
    let mut executed = Vec::new();
    for (name, code) in OTHERS {
        match hidden(host, name, code, Ring::Three) {
            Ok(None) => {}
            Ok(Some(_)) => executed.push(name),
            Err(why) => return notes.note("hidden instructions", format!("unknown: {why}"), ""),
        }
    }
    // The code is tzcnt rax, rdx.
    let code = [TZCNT.as_slice(), &[0xc2]].concat();
    match host.run(&Guest::new("TZCNT", Ring::Three, &code)) {
        Ok(ran) if ran.gpr[0] == TZCNT_OF_ZERO => executed.push("TZCNT"),
        Ok(_) => {}
        Err(why) => return notes.note("hidden instructions", format!("unknown: {why}"), ""),
    }
    let means = "only programs that do not check CPUID can notice; the soft engine executes none of these";
    if executed.is_empty() {
        notes.ok("hidden instructions", "raise #UD", means);
    } else {
        notes.note("hidden instructions", format!("{} execute", executed.join(", ")), means);
    }
}
