//! Probes for memory, MSRs, interrupts, and instructions that the host's KVM cannot execute.

use super::{Effort, Notes, always};
use crate::doctor::kvm::guest::{DATA, Guest, INTERRUPT_VECTOR, Ring};
use crate::doctor::kvm::host::{End, Host, Ran};

const PAGE: u64 = 4096;
/// The value 3 in RFLAGS.IOPL, which allows ring 3 to access ports.
const IOPL_3: u64 = 3 << 12;

/// Instructions that a kernel executes and that an emulator may lack. Memory operands are [DATA].
const IN_RING_0: [(&str, &[u8]); 22] = [
    // The code is lock cmpxchg16b [DATA].
    ("lock cmpxchg16b", &[0xf0, 0x48, 0x0f, 0xc7, 0x0c, 0x25, 0, 0, 2, 0]),
    ("lock cmpxchg", &[0xf0, 0x48, 0x0f, 0xb1, 0x0c, 0x25, 0, 0, 2, 0]),
    ("lock xadd", &[0xf0, 0x48, 0x0f, 0xc1, 0x0c, 0x25, 0, 0, 2, 0]),
    ("lock bts", &[0xf0, 0x48, 0x0f, 0xba, 0x2c, 0x25, 0, 0, 2, 0, 3]),
    ("xchg", &[0x48, 0x87, 0x0c, 0x25, 0, 0, 2, 0]),
    ("rep movsq", &[0xbe, 0, 0, 2, 0, 0xbf, 0, 8, 2, 0, 0xb9, 8, 0, 0, 0, 0xf3, 0x48, 0xa5]),
    ("fxsave64", &[0x48, 0x0f, 0xae, 0x04, 0x25, 0, 0, 2, 0]),
    ("fxrstor64", &[0x48, 0x0f, 0xae, 0x04, 0x25, 0, 0, 2, 0, 0x48, 0x0f, 0xae, 0x0c, 0x25, 0, 0, 2, 0]),
    ("x87", &[0xd9, 0xe8, 0xd8, 0xc0, 0xdd, 0x1c, 0x25, 0, 0, 2, 0]),
    ("SSE2 arithmetic", &[0xf2, 0x0f, 0x58, 0xc1]),
    ("SSE2 moves", &[0x66, 0x0f, 0x7f, 0x04, 0x25, 0, 0, 2, 0]),
    ("SSSE3 pshufb", &[0x66, 0x0f, 0x38, 0x00, 0xc1]),
    ("SSE4.2 crc32", &[0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xc1]),
    ("popcnt", &[0xf3, 0x48, 0x0f, 0xb8, 0xc1]),
    ("swapgs", &[0x0f, 0x01, 0xf8, 0x0f, 0x01, 0xf8]),
    ("invlpg", &[0x0f, 0x01, 0x3c, 0x25, 0, 0, 2, 0]),
    ("wbinvd", &[0x0f, 0x09]),
    ("mov from cr0", &[0x0f, 0x20, 0xc0]),
    ("mov to cr3", &[0x0f, 0x20, 0xd8, 0x0f, 0x22, 0xd8]),
    ("mov to dr7", &[0x0f, 0x21, 0xf8, 0x0f, 0x23, 0xf8]),
    ("mov from cr8", &[0x44, 0x0f, 0x20, 0xc0]),
    ("sgdt", &[0x0f, 0x01, 0x04, 0x25, 0, 0, 2, 0]),
];
/// Instructions that raise an exception, each with the vector of the exception.
const EXCEPTIONS: [(&str, Ring, &[u8], u8); 8] = [
    ("int3", Ring::Zero, &[0xcc], 3),
    ("int3 in ring 3", Ring::Three, &[0xcc], 3),
    ("int in ring 0", Ring::Zero, &[0xcd, 0x30], 0x30),
    ("int in ring 3", Ring::Three, &[0xcd, 0x30], 0x30),
    ("ud2", Ring::Zero, &[0x0f, 0x0b], 6),
    ("divide by zero", Ring::Zero, &[0x31, 0xc9, 0x48, 0xf7, 0xf1], 0),
    // The code is mov rax, 1 << 40 | 0x80050033; mov cr0, rax.
    ("upper half of CR0", Ring::Zero, &[0x48, 0xb8, 0x33, 0, 5, 0x80, 0, 1, 0, 0, 0x0f, 0x22, 0xc0], 13),
    // The CPU that Everett shows to guests has no XSAVE, so XRSTOR must raise #UD.
    ("xrstor64", Ring::Zero, &[0x48, 0x0f, 0xae, 0x2c, 0x25, 0, 0, 2, 0], 6),
];

pub(super) fn probe(host: &mut dyn Host, effort: Effort, notes: &mut Notes) {
    let rounds = effort.rounds();
    let mut spare = false;
    let seen = always(rounds, || dirty(host, &mut spare));
    let holds = seen.is_ok();
    let detail = seen.err().unwrap_or_else(|| {
        let others = if spare { "; also some that it only read" } else { ", and no others" };
        format!("has the pages that a guest wrote{others}")
    });
    notes.needed("dirty log", holds, detail, "to store only the written pages with a moment");

    let seen = always(rounds, || replaced(host));
    notes.coherent = seen.is_ok();
    match seen {
        Ok(()) => notes.ok("replaced memory", "is seen after a flush of cached translations", ""),
        Err(why) => {
            notes.note("replaced memory", why, "KVM's memory is removed and added again for each restore");
        }
    }

    let seen = always(rounds, || filter(host));
    let holds = seen.is_ok();
    let detail = seen.err().unwrap_or_else(|| "each access exits to Everett".to_owned());
    notes.needed("MSR filter", holds, detail, "guests see the model's MSRs");

    let seen = always(rounds, || interrupt(host));
    let holds = seen.is_ok();
    let detail = seen.err().unwrap_or_else(|| "come when the guest enables them".to_owned());
    notes.needed("interrupts", holds, detail, "delivered by Everett, without the host's timers");

    let seen = always(rounds, || system_call(host));
    let holds = seen.is_ok();
    let detail = seen.err().unwrap_or_else(|| "enter ring 0 and return".to_owned());
    notes.needed("system calls", holds, detail, "programs need them");

    // The code is out 0x80, al; pushfq; pop rbx; out 0x80, al.
    let code = [0xe6, 0x80, 0x9c, 0x5b, 0xe6, 0x80];
    let guest = Guest { rflags: IOPL_3, ..Guest::new("ports in ring 3", Ring::Three, &code) };
    match host.run(&guest) {
        Ok(ran) if ran.to_its_end() && ran.exits == 3 && ran.gpr[3] & IOPL_3 == IOPL_3 => {
            notes.ok("ports in ring 3", "allowed with IOPL 3", "");
        }
        Ok(ran) => {
            let (exits, shown) = (ran.exits.saturating_sub(1), (ran.gpr[3] & IOPL_3) >> 12);
            let detail = format!("{exits} of 2 accesses exit with IOPL 3; the guest reads IOPL {shown}");
            notes.note("ports in ring 3", detail, "few programs access ports");
        }
        Err(why) => notes.note("ports in ring 3", format!("unknown: {why}"), ""),
    }

    match host.run(&Guest::new("ring 3 selectors", Ring::ThreeOtherwise, &[0x90])) {
        Ok(ran) if ran.to_its_end() => notes.ok("ring 3 selectors", "any", ""),
        Ok(ran) => {
            let detail = format!("only those of Linux work; with others, {}", ran.how());
            notes.note("ring 3 selectors", detail, "programs cannot use segments of their own");
        }
        Err(why) => notes.note("ring 3 selectors", format!("unknown: {why}"), ""),
    }

    match gaps(host) {
        Ok(gaps) if gaps.is_empty() => {
            notes.ok("emulation gaps", "none of the instructions that were tried", "")
        }
        Ok(gaps) => notes.note(
            "emulation gaps",
            gaps.join(", "),
            "the soft CPU executes these, except those with a reason in parentheses",
        ),
        Err(why) => notes.note("emulation gaps", format!("unknown: {why}"), ""),
    }
}

fn unless_ended(ran: &Ran) -> Option<String> {
    (!ran.to_its_end()).then(|| ran.how())
}

/// Checks that the dirty log has all written pages. In each ring, a guest writes two pages, one of them twice, and
/// reads a third page. Additional pages in the log only cost time.
fn dirty(host: &mut dyn Host, spare: &mut bool) -> Result<Option<String>, String> {
    const WRITTEN: [u64; 2] = [DATA / PAGE, DATA / PAGE + 3];
    let code = [
        0x88, 0x04, 0x25, 0x00, 0x00, 0x02, 0x00, // mov [DATA], al
        0x88, 0x04, 0x25, 0x08, 0x00, 0x02, 0x00, // mov [DATA + 8], al
        0x88, 0x04, 0x25, 0x00, 0x30, 0x02, 0x00, // mov [DATA + 0x3000], al
        0x8a, 0x04, 0x25, 0x00, 0x10, 0x02, 0x00, // mov al, [DATA + 0x1000]
    ];
    for ring in [Ring::Zero, Ring::Three] {
        let ran = host.run(&Guest::new("dirty log", ring, &code))?;
        if let Some(why) = unless_ended(&ran) {
            return Ok(Some(why));
        }
        if let Some(page) = WRITTEN.into_iter().find(|page| !ran.dirty.contains(page)) {
            return Ok(Some(format!("lacks page {page:#x}, which a guest wrote")));
        }
        *spare |=
            (WRITTEN[0]..WRITTEN[0] + 16).any(|page| ran.dirty.contains(&page) && !WRITTEN.contains(&page));
    }
    Ok(None)
}

/// Checks that a guest sees memory that Everett has replaced. The guest reads a guest-virtual address again and again.
/// Between two reads, Everett writes a new value to another page, writes that page's address to the guest's page table,
/// and flushes the translations that the processor has cached. A KVM that shadows the guest's page tables may not
/// notice the change of the page table. The guest then continues to see the earlier page. The probe tests both rings,
/// because a software KVM may shadow page tables only for ring 3.
fn replaced(host: &mut dyn Host) -> Result<Option<String>, String> {
    const TIMES: u64 = 100;
    let code = [
        0xbb, 0x00, 0x00, 0x60, 0x00, // mov ebx, SWAPPED
        0xba, 0x00, 0x00, 0x80, 0x00, // mov edx, DEVICE
        0x8a, 0x03, // back: mov al, [rbx]
        0x88, 0x02, // mov [rdx], al
        0x48, 0xff, 0xc9, // dec rcx
        0x75, 0xf7, // jnz back
    ];
    for ring in [Ring::Zero, Ring::Three] {
        let guest = Guest { rcx: TIMES, swaps: true, ..Guest::new("replaced memory", ring, &code) };
        let ran = host.run(&guest)?;
        let stale =
            || (ran.stale > 0).then(|| format!("{} of {TIMES} times an earlier page was seen", ran.stale));
        if let Some(why) = unless_ended(&ran).or_else(stale) {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

fn system_call(host: &mut dyn Host) -> Result<Option<String>, String> {
    let code = [
        0x31, 0xdb, // xor ebx, ebx
        0x0f, 0x05, // syscall, whose handler copies CS to EBX
        0x8c, 0xce, // mov esi, cs
    ];
    let ran = host.run(&Guest::new("system calls", Ring::Three, &code))?;
    let (inside, outside) = (ran.gpr[3], ran.gpr[6]);
    Ok(unless_ended(&ran).or_else(|| {
        let right = inside != 0 && inside & 3 == 0 && outside & 3 == 3;
        (!right).then(|| format!("handled in ring {}", inside & 3))
    }))
}

fn filter(host: &mut dyn Host) -> Result<Option<String>, String> {
    let code = [
        0xb9, 0xa0, 0x01, 0x00, 0x00, // mov ecx, 0x1a0
        0x0f, 0x32, // rdmsr
        0x0f, 0x30, // wrmsr
    ];
    let ran = host.run(&Guest { filter_msrs: true, ..Guest::new("MSR filter", Ring::Zero, &code) })?;
    Ok(unless_ended(&ran)
        .or_else(|| (ran.msr_exits != 2).then(|| format!("only {} of 2 accesses exit", ran.msr_exits))))
}

fn interrupt(host: &mut dyn Host) -> Result<Option<String>, String> {
    // The guest starts with interrupts disabled and enables them. If no interrupt arrives, the guest loops until its
    // time limit.
    let code = [
        0x90, 0x90, // nop, nop
        0x48, 0xff, 0xc0, // inc rax
        0xfb, // sti
        0x48, 0xff, 0xc0, // inc rax: no interrupt between STI and this instruction
        0x48, 0xff, 0xc3, // again: inc rbx
        0xeb, 0xfb, // jmp again
    ];
    let ran = host.run(&Guest { interrupt: true, ..Guest::new("interrupts", Ring::Zero, &code) })?;
    if !ran.raised(INTERRUPT_VECTOR) {
        return Ok(Some(ran.how()));
    }
    let (before, after) = (ran.gpr[0], ran.gpr[3]);
    Ok(match (before, after) {
        (2, 0) => None,
        (2, _) => Some(format!("delivered {} instructions too late", 2 * after)),
        _ => Some("delivered before the guest enables them".to_owned()),
    })
}

fn gaps(host: &mut dyn Host) -> Result<Vec<String>, String> {
    let mut gaps = Vec::new();
    let usual = IN_RING_0.iter().map(|&(name, code)| (name, Ring::Zero, code, None));
    let exceptions = EXCEPTIONS.iter().map(|&(name, ring, code, vector)| (name, ring, code, Some(vector)));
    for (name, ring, code, vector) in usual.chain(exceptions) {
        let ran = host.run(&Guest::new(name, ring, code))?;
        let right = vector.map_or_else(|| ran.to_its_end(), |vector| ran.raised(vector));
        match (&ran.end, right) {
            (_, true) => {}
            (End::Failed, _) => gaps.push(name.to_owned()),
            _ if ran.to_its_end() => gaps.push(format!("{name} (raises nothing)")),
            _ => gaps.push(format!("{name} ({})", ran.how())),
        }
    }
    Ok(gaps)
}
