//! Probe for control of the guest's TSC: it must show the value that Everett sets, and stand still during a slice,
//! which is one run of the guest between two returns to Everett.

use everett_vmm::kvm::host::{KVM_CAP_TSC_CONTROL, KVM_CAP_VCPU_ATTRIBUTES};

use super::{Effort, Notes, always};
use crate::doctor::kvm::guest::{Guest, HELD_TSC, Ring, Tsc};
use crate::doctor::kvm::host::Host;

const GP: u8 = 13;
const CR4_TSD: u64 = 1 << 2;
/// Number of slices of a probe with [`Effort::Look`], the quick check of a host.
const SLICES: u32 = 100;
/// Number of reads in a slice. 100 slices make a million reads.
const READS: u64 = 10_000;
/// Numbers of reads in a slice on slower hosts, where [`READS`] reads would take longer than a tick of the TSC.
const READS_IF_SLOW: [u64; 2] = [1000, 100];
/// Duration of a tick of a TSC that is slowed down as far as possible, in nanoseconds.
const TICK_NS: u64 = 1_000_000;

pub(super) fn probe(host: &mut dyn Host, effort: Effort, notes: &mut Notes) {
    let yes = |host: &mut dyn Host, number| host.capability(number).is_ok_and(|answer| answer > 0);
    let attributes = yes(host, KVM_CAP_VCPU_ATTRIBUTES);
    let what = if attributes { "yes" } else { "no" };
    notes.needed("vCPU attributes", attributes, what, "to set the TSC's offset at each entry");
    if yes(host, KVM_CAP_TSC_CONTROL) {
        let held = held(host, effort);
        let holds = held.is_ok();
        let detail = held.unwrap_or_else(|why| format!("offered, but {why}"));
        notes.needed("TSC control", holds, detail, "to hold the guest's TSC still inside a slice");
    } else {
        let detail = match free(host) {
            Ok(changes) => format!("none: {changes} of {READS} RDTSC differ from the one before"),
            Err(why) => format!("none; RDTSC was not measured: {why}"),
        };
        let detail = host.tsc_control_lacks().map_or(detail.clone(), |lacks| format!("{detail}; {lacks}"));
        notes.needed("TSC control", false, detail, "guests read the host's clock");
    }
    // The code is rdtsc.
    let guest = Guest { cr4: CR4_TSD, ..Guest::new("CR4.TSD", Ring::Three, &[0x0f, 0x31]) };
    let seen = always(effort.rounds(), || {
        let ran = host.run(&guest)?;
        let how = || if ran.to_its_end() { "RDTSC in ring 3 executes anyway".to_owned() } else { ran.how() };
        Ok((!ran.raised(GP)).then(how))
    });
    let holds = seen.is_ok();
    let detail = seen.err().unwrap_or_else(|| "RDTSC in ring 3 raises #GP".to_owned());
    notes.needed("CR4.TSD", holds, detail, "for kernels that hide the TSC from programs");
}

/// Returns a guest that executes RDTSC repeatedly. R8 counts the reads that differ from the read before.
fn reading(name: &'static str, tsc: Tsc, reads: u64) -> Guest {
    let code = [
        0x0f, 0x31, // rdtsc
        0x48, 0xc1, 0xe2, 0x20, // shl rdx, 32
        0x48, 0x09, 0xd0, // or rax, rdx
        0x48, 0x89, 0xc3, // mov rbx, rax
        0x48, 0x89, 0xc6, // mov rsi, rax
        0x45, 0x31, 0xc0, // xor r8d, r8d
        0x0f, 0x31, // again: rdtsc
        0x48, 0xc1, 0xe2, 0x20, // shl rdx, 32
        0x48, 0x09, 0xd0, // or rax, rdx
        0x31, 0xff, // xor edi, edi
        0x48, 0x39, 0xf0, // cmp rax, rsi
        0x40, 0x0f, 0x95, 0xc7, // setne dil
        0x49, 0x01, 0xf8, // add r8, rdi
        0x48, 0x89, 0xc6, // mov rsi, rax
        0x48, 0xff, 0xc9, // dec rcx
        0x75, 0xe3, // jnz again
    ];
    Guest { rcx: reads, tsc, ..Guest::new(name, Ring::Three, &code) }
}

fn free(host: &mut dyn Host) -> Result<u64, String> {
    let ran = host.run(&reading("TSC", Tsc::Free, READS))?;
    if ran.to_its_end() { Ok(ran.gpr[8]) } else { Err(ran.how()) }
}

/// Describes the slices in words. Fails if fewer than half of the slices showed only the value at which the TSC was
/// held.
fn held(host: &mut dyn Host, effort: Effort) -> Result<String, String> {
    let mut seen = slices(host, effort, READS)?;
    for reads in READS_IF_SLOW {
        if seen.enough_held() {
            break;
        }
        seen = slices(host, effort, reads)?;
    }
    let Slices { reads, held, crossed, of } = seen;
    if !seen.enough_held() {
        return Err(format!(
            "only {held} of {of} slices of {reads} reads showed the value at which it was held"
        ));
    }
    Ok(format!("RDTSC stood still in slices of {reads} reads, except in {crossed} that a tick crossed"))
}

/// Result of slices with the same number of reads.
struct Slices {
    reads: u64,
    of: u32,
    /// Number of slices in which the TSC showed only the value at which it was held.
    held: u32,
    /// Number of all other slices. The TSC may have ticked during each of them.
    crossed: u32,
}

impl Slices {
    fn enough_held(&self) -> bool {
        self.held >= self.of.div_ceil(2)
    }
}

/// Runs slices. Each must see only the value at which the TSC is held, unless the host reports that the TSC moved.
fn slices(host: &mut dyn Host, effort: Effort, reads: u64) -> Result<Slices, String> {
    let of = effort.rounds().div_ceil(10) * SLICES;
    let mut held = 0;
    always(of, || {
        let ran = host.run(&reading("TSC held", Tsc::Slow, reads))?;
        if !ran.to_its_end() {
            return Ok(Some(ran.how()));
        }
        let (changes, ticks) = (ran.gpr[8], ran.gpr[6].wrapping_sub(ran.gpr[3]));
        held += u32::from(ran.moved == Some(false) && changes == 0);
        // A slice that a tick crosses sees one change for each tick, and the slice's duration bounds the number of
        // ticks. If the host reports that the TSC has not moved, the slice must have seen only the held value.
        let told = ran.moved != Some(false) || (ran.gpr[3] == HELD_TSC && changes == 0);
        let right = changes == ticks && ticks <= ran.nanoseconds / TICK_NS + 1 && told;
        Ok((!right)
            .then(|| format!("RDTSC changed {changes} times by {ticks} ticks in {} ns", ran.nanoseconds)))
    })?;
    Ok(Slices { reads, of, held, crossed: of - held })
}
