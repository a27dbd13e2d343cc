//! Probes for properties of the processor that a stock kernel needs at boot: bits of control registers, protection of
//! memory, and instructions that CPUID promises.
//!
//! If one of these properties is missing, a kernel starts to boot and then fails with an exception.

use super::{Effort, Notes, always};
use crate::doctor::kvm::guest::{CODE, DATA, FOR_PROGRAMS, Guest, HUGE, NO_EXECUTE, Ring};
use crate::doctor::kvm::host::{End, Host};

const GP: u8 = 13;
const PF: u8 = 14;
/// Bits of a page fault's error code: the page is present but a right is missing, and the access was an instruction
/// fetch.
const PRESENT: u64 = 1;
const FETCH: u64 = 1 << 4;
const CR4_UMIP: u64 = 1 << 11;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;
/// Numbers of the control registers in the encoding of MOV.
const CR0: u8 = 0;
const CR4: u8 = 4;

/// Bits of CR0 and CR4 that Everett's model of a CPU has. The guest inverts each bit, reads it back and inverts it
/// again. The list leaves out bits that long mode needs.
const BITS: [(u8, u8, &str); 15] = [
    (CR0, 1, "CR0.MP"),
    (CR0, 3, "CR0.TS"),
    (CR0, 16, "CR0.WP"),
    (CR0, 18, "CR0.AM"),
    (CR0, 30, "CR0.CD"),
    (CR4, 2, "CR4.TSD"),
    (CR4, 3, "CR4.DE"),
    (CR4, 4, "CR4.PSE"),
    (CR4, 7, "CR4.PGE"),
    (CR4, 8, "CR4.PCE"),
    (CR4, 9, "CR4.OSFXSR"),
    (CR4, 10, "CR4.OSXMMEXCPT"),
    (CR4, 11, "CR4.UMIP"),
    (CR4, 20, "CR4.SMEP"),
    (CR4, 21, "CR4.SMAP"),
];
/// MSRs that guests access without an exit, each with the number of the bit that the guest inverts.
const MSRS: [(u32, u8, &str); 5] = [
    (0xc000_0080, 0, "EFER.SCE"),
    (0xc000_0080, 11, "EFER.NXE"),
    (0xc000_0100, 12, "FS_BASE"),
    (0xc000_0101, 12, "GS_BASE"),
    (0xc000_0102, 12, "KERNEL_GS_BASE"),
];
/// Instructions that must raise #GP in ring 3 when CR4.UMIP is set. The operand is [DATA] or EAX.
const HIDDEN_BY_UMIP: [(&str, &[u8]); 4] = [
    ("SGDT", &[0x0f, 0x01, 0x04, 0x25, 0, 0, 2, 0]),
    ("SIDT", &[0x0f, 0x01, 0x0c, 0x25, 0, 0, 2, 0]),
    ("SLDT", &[0x0f, 0x00, 0xc0]),
    ("STR", &[0x0f, 0x00, 0xc8]),
];
/// SMSW with the operand EAX. CR4.UMIP hides SMSW, too. On Intel processors without UMIP, KVM emulates UMIP, but VMX
/// cannot intercept SMSW. This is harmless: if SMSW raised #GP, Linux would emulate it and return the same value. The
/// only difference is that the kernel's log lacks a warning.
const SMSW: [u8; 3] = [0x0f, 0x01, 0xe0];
/// Instructions that CPUID promises. If the processor raises #UD at one of them, the guest gets this exception:
/// Everett's own CPU does not execute the instruction instead. Memory operands are [DATA].
const PROMISED: [(&str, &[u8]); 12] = [
    ("RDTSCP", &[0x0f, 0x01, 0xf9]),
    ("LAHF", &[0x9f]),
    ("CMPXCHG16B", &[0x48, 0x0f, 0xc7, 0x0c, 0x25, 0, 0, 2, 0]),
    ("CLFLUSH", &[0x0f, 0xae, 0x3c, 0x25, 0, 0, 2, 0]),
    ("FXSAVE", &[0x0f, 0xae, 0x04, 0x25, 0, 0, 2, 0]),
    ("MMX", &[0x0f, 0x6f, 0xc1, 0x0f, 0x77]),
    ("SSE2", &[0x66, 0x0f, 0xef, 0xc1]),
    ("SSE3", &[0xf2, 0x0f, 0x12, 0xc1]),
    ("SSSE3", &[0x66, 0x0f, 0x38, 0x00, 0xc1]),
    ("SSE4.1", &[0x66, 0x0f, 0x38, 0x17, 0xc1]),
    ("SSE4.2", &[0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xc1]),
    ("POPCNT", &[0xf3, 0x48, 0x0f, 0xb8, 0xc1]),
];

type Check = fn(&mut dyn Host) -> Result<Option<String>, String>;

pub(super) fn probe(host: &mut dyn Host, effort: Effort, notes: &mut Notes) {
    let umip_hides = match smsw_executes(host) {
        Ok(true) => "hides system registers from ring 3, except SMSW's",
        _ => "hides system registers from ring 3",
    };
    let checks: [(&str, Check, &str, &str); 4] = [
        ("kernel registers", registers, "each bit can be set and cleared", "kernels set them at boot"),
        ("UMIP", umip, umip_hides, "kernels that find it in CPUID set it in CR4"),
        ("paging", paging, "1 GiB pages, NX, SMEP and SMAP work", "kernels use all four"),
        ("promised instructions", promised, "none raises #UD", "programs find them in CPUID"),
    ];
    for (name, check, right, means) in checks {
        let seen = always(effort.rounds(), || check(host));
        notes.needed(name, seen.is_ok(), seen.err().unwrap_or_else(|| right.to_owned()), means);
    }
}

/// Joins failures to one text. Returns `None` if there are no failures.
fn listed(failures: Vec<String>) -> Option<String> {
    (!failures.is_empty()).then(|| failures.join(", "))
}

fn registers(host: &mut dyn Host) -> Result<Option<String>, String> {
    let mut failures = Vec::new();
    for (register, bit, name) in BITS {
        let operand = 0xc0 | register << 3;
        let code = [
            &[0x0f, 0x20, operand, 0x48, 0x89, 0xc3][..], // mov rax, cr; mov rbx, rax
            &[0x48, 0x0f, 0xba, 0xf8, bit],               // btc rax, bit
            &[0x0f, 0x22, operand, 0x0f, 0x20, operand],  // mov cr, rax; mov rax, cr
            &[0x48, 0x31, 0xc3],                          // xor rbx, rax
            &[0x48, 0x0f, 0xba, 0xf8, bit, 0x0f, 0x22, operand], // btc rax, bit; mov cr, rax
        ]
        .concat();
        failures.extend(inverted(host, "control register", name, bit, &code)?);
    }
    for (msr, bit, name) in MSRS {
        // RDMSR and WRMSR use EDX:EAX. All tested bits are in EAX.
        let [a, b, c, d] = msr.to_le_bytes();
        let code = [
            &[0xb9, a, b, c, d, 0x0f, 0x32, 0x89, 0xc3][..], // mov ecx, msr; rdmsr; mov ebx, eax
            &[0x0f, 0xba, 0xf8, bit, 0x0f, 0x30],            // btc eax, bit; wrmsr
            &[0x0f, 0x32, 0x31, 0xc3],                       // rdmsr; xor ebx, eax
            &[0x0f, 0xba, 0xf8, bit, 0x0f, 0x30],            // btc eax, bit; wrmsr
        ]
        .concat();
        failures.extend(inverted(host, "passed MSR", name, bit, &code)?);
    }
    Ok(listed(failures))
}

/// Runs code that inverts a bit and puts the observed change into RBX. Returns a description of the failure, or `None`.
fn inverted(
    host: &mut dyn Host,
    guest: &'static str,
    name: &str,
    bit: u8,
    code: &[u8],
) -> Result<Option<String>, String> {
    let ran =
        host.run(&Guest { kernel_pages: true, rax: 1 << bit, ..Guest::new(guest, Ring::Zero, code) })?;
    Ok(match ran.to_its_end() {
        true if ran.gpr[3] == 1 << bit => None,
        true => Some(format!("{name} does not change")),
        false => Some(format!("{name}: {}", ran.how())),
    })
}

/// True if ring 3 can execute SMSW although CR4.UMIP is set.
fn smsw_executes(host: &mut dyn Host) -> Result<bool, String> {
    let ran = host.run(&Guest { cr4: CR4_UMIP, ..Guest::new("UMIP", Ring::Three, &SMSW) })?;
    Ok(ran.to_its_end())
}

fn umip(host: &mut dyn Host) -> Result<Option<String>, String> {
    let mut failures = Vec::new();
    for (name, code) in HIDDEN_BY_UMIP {
        let ran = host.run(&Guest { cr4: CR4_UMIP, ..Guest::new("UMIP", Ring::Three, code) })?;
        if !ran.raised(GP) {
            let how = if ran.to_its_end() { "executes".to_owned() } else { ran.how() };
            failures.push(format!("{name} in ring 3: {how}"));
        }
    }
    Ok(listed(failures))
}

fn paging(host: &mut dyn Host) -> Result<Option<String>, String> {
    let byte = |at: u64| (at as u32).to_le_bytes();
    let jump_to = |at: u64| [&[0xb8][..], &byte(at), &[0xff, 0xe0]].concat(); // mov eax, at; jmp rax
    // The code is mov byte [DATA], 0x5a; movzx ebx, byte [HUGE + DATA].
    let huge =
        [&[0xc6, 0x04, 0x25][..], &byte(DATA), &[0x5a, 0x0f, 0xb6, 0x1c, 0x25], &byte(HUGE + DATA)].concat();
    let mut failures = Vec::new();
    let ran = host.run(&Guest::new("1 GiB page", Ring::Zero, &huge))?;
    if !ran.to_its_end() || ran.gpr[3] != 0x5a {
        failures.push(format!("a 1 GiB page: {}", ran.how()));
    }
    let kernel =
        |name, cr4, code: &[u8]| Guest { cr4, kernel_pages: true, ..Guest::new(name, Ring::Zero, code) };
    let load = [&[0x8a, 0x04, 0x25][..], &byte(FOR_PROGRAMS + DATA)].concat(); // mov al, [FOR_PROGRAMS + DATA]
    let faults = [
        ("NX", kernel("NX", 0, &jump_to(NO_EXECUTE + CODE)), PRESENT | FETCH),
        ("SMEP", kernel("SMEP", CR4_SMEP, &jump_to(FOR_PROGRAMS + CODE)), PRESENT | FETCH),
        ("SMAP", kernel("SMAP", CR4_SMAP, &load), PRESENT),
    ];
    for (name, guest, error) in faults {
        let ran = host.run(&guest)?;
        if !ran.raised(PF) {
            failures.push(format!("{name} does not fault: {}", ran.how()));
        } else if ran.top != error {
            failures
                .push(format!("{name}: a page fault with error code {:#x} instead of {error:#x}", ran.top));
        }
    }
    Ok(listed(failures))
}

fn promised(host: &mut dyn Host) -> Result<Option<String>, String> {
    let mut failures = Vec::new();
    for (name, code) in PROMISED {
        for (ring, word) in [(Ring::Zero, "ring 0"), (Ring::Three, "ring 3")] {
            let ran = host.run(&Guest::new("promised", ring, code))?;
            // If the host's emulation cannot execute an instruction, Everett's own CPU executes it. This is not a
            // failure.
            if !ran.to_its_end() && ran.end != End::Failed {
                failures.push(format!("{name} in {word}: {}", ran.how()));
            }
        }
    }
    Ok(listed(failures))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use everett_cpu::CacheConfig;
    use everett_vmm::engine::soft::SoftEngine;
    use everett_vmm::engine::{Engine, Exit, Until};
    use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

    use super::*;
    use crate::doctor::kvm::guest::RAM_BYTES;
    use crate::doctor::kvm::host::Ran;

    /// A host whose processor is the CPU model itself.
    struct Model;

    impl Host for Model {
        fn capability(&mut self, _: u32) -> Result<u32, String> {
            Ok(0)
        }
        fn run(&mut self, guest: &Guest) -> Result<Ran, String> {
            let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), RAM_BYTES)]);
            let memory = Arc::new(memory.expect("memory"));
            memory.write_slice(&guest.memory(), GuestAddress(0)).expect("it is RAM");
            let mut soft = SoftEngine::new(Arc::clone(&memory), CacheConfig::default());
            soft.set_state(&guest.registers());
            let end = match soft.run(Until { icount: 10_000, ..Until::default() }) {
                Exit::Halt => End::Halted,
                Exit::Shutdown => End::Shutdown,
                other => End::Other(format!("{other:?}")),
            };
            let mut image = vec![0; RAM_BYTES];
            memory.read_slice(&mut image, GuestAddress(0)).expect("it is RAM");
            Ok(Ran {
                end,
                vector: Guest::vector(&image),
                gpr: soft.state().gpr,
                top: Guest::top(&image, soft.state().gpr[4]),
                exits: 1,
                msr_exits: 0,
                stale: 0,
                nanoseconds: 0,
                dirty: vec![],
                counted: None,
                moved: None,
            })
        }
    }

    #[test]
    fn the_model_has_all_that_a_kernel_needs() {
        for check in [registers, umip, paging, promised] {
            assert_eq!(check(&mut Model), Ok(None));
        }
        assert_eq!(smsw_executes(&mut Model), Ok(false));
    }
}
