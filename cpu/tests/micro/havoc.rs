//! Guests that perform random ring-0 operations, mostly on themselves: their code, tables, stacks and registers.
//!
//! The tests have no expected results. The harness runs each guest in several ways, e.g. interpreted and translated.
//! All ways must have the same result, and none of them may panic.
//! `EVERETT_HAVOC_GUESTS=N` runs N guests instead of 200.

use everett_assembler::*;
use everett_cpu::state::seg;

use super::harness::{Draw, End, check, stale_translations_show};
use super::image::*;

/// Size of the code in bytes.
const LENGTH: u64 = 0xc00;
/// Address of a counter, which the handlers of exceptions and interrupts increment. The rest of its page is unused.
const COUNTER: u64 = 0x5_8000;

/// Emits one random instruction. Its operands point to data whose corruption has effects (see `guest`).
fn instruction(a: &mut Assembler, d: &mut Draw) -> Result<(), Error> {
    let offset = (d.next(0x200) * 8) as i32;
    let bytes = [d.next(256) as u8, d.next(256) as u8, d.next(256) as u8];
    match d.next(48) {
        0..=5 => a.db(&bytes[..1 + d.next(3) as usize]),
        6 => a.mov(qword_ptr(rdi + offset), rax),
        7 => a.xor(byte_ptr(rdi + offset), al),
        8 => a.mov(dword_ptr(rsi + offset), ecx),
        9 => a.mov(rax, qword_ptr(rdi + offset)),
        10 => a.add(rax, qword_ptr(rbx + offset)),
        11 => a.mov(qword_ptr(rbx + offset), rax),
        12 => a.xchg(rdi, rbx),
        13 => a.xchg(rsi, rdi),
        14 => {
            a.mov(ecx, d.next(600) as u32)?;
            a.rep().movsb()
        }
        15 => {
            a.mov(ecx, d.next(80) as u32)?;
            a.rep().stosq()
        }
        16 => a.push(rax),
        17 => a.pop(rax),
        18 => a.pushfq(),
        19 => a.popfq(),
        20 => a.sti(),
        21 => a.cli(),
        22 => a.iretq(),
        23 => a.db(&[0x48, 0xcb]),
        24 => a.syscall(),
        25 => sysretq(a),
        26 => a.int(i32::from(bytes[0])),
        27 => a.int3(),
        28 => a.mov(cr3, r12),
        29 => a.mov(rax, cr3),
        30 => {
            a.mov(rax, cr0)?;
            a.btc(rax, [16u32, 18, 3, 2][d.next(4) as usize])?;
            a.mov(cr0, rax)
        }
        31 => {
            a.mov(rax, cr4)?;
            a.btc(rax, [20u32, 21, 11, 2, 7][d.next(5) as usize])?;
            a.mov(cr4, rax)
        }
        32 => {
            a.mov(ecx, [0xc000_0080u32, 0xc000_0082, 0xc000_0100, 0x10, 0x277, 0x174][d.next(6) as usize])?;
            a.wrmsr()
        }
        33 => a.mov(ds, eax),
        34 => a.mov(ss, eax),
        35 => a.mov(fs, eax),
        36 => a.mov(eax, [0u32, 8, 0x10, 0x23, 0x2b, 0x40, 7][d.next(7) as usize]),
        37 => a.mov(rax, d.next(1 << 30) * 0x1_0001_0001),
        38 => a.rdtsc(),
        39 => a.swapgs(),
        40 => a.mov(rsp, r13),
        41 => a.invlpg(byte_ptr(rdi)),
        42 => a.in_(al, dx),
        43 => a.lgdt(tbyte_ptr(rsi)),
        44 => a.ltr(ax),
        45 => {
            // Enables a breakpoint or single-stepping.
            a.mov(dr0, rsi)?;
            a.mov(eax, [0u32, 1, 0x1_0001, 0xf_0001][d.next(4) as usize])?;
            a.mov(dr7, rax)
        }
        46 => a.inc(qword_ptr(r9 + offset)),
        _ => a.btc(qword_ptr(rdi + offset), d.next(8) as u32),
    }
}

fn guest(seed: u64) -> Guest {
    let mut g = Guest::new();
    let mut d = Draw(seed);
    g.instructions_max = 1500;
    // Fault handlers continue one byte further, so that each guest makes progress.
    for vector in 0..32 {
        let has_error = matches!(vector, 8 | 10..=14 | 17);
        let at = 0x7000 + u64::from(vector) * 32;
        let trap = matches!(vector, 1 | 3);
        g.code(at, |a| {
            if has_error {
                a.add(rsp, 8)?;
            }
            if !trap {
                a.inc(qword_ptr(rsp))?;
            }
            a.inc(qword_ptr(COUNTER))?;
            a.iretq()
        });
        g.gate(vector, at, [0x8e, 0xee, 0x8f][d.next(3) as usize], [0, 0, 1][d.next(3) as usize]);
    }
    for vector in 32..=254 {
        g.gate(vector, 0x7000 + 3 * 32, 0xee, 0);
    }
    // Second mappings of the code and of the tables, and mappings of a device, of read-only memory and of user memory.
    for page in 0..4 {
        g.map(ELSEWHERE + page * 0x1000, CODE + page * 0x1000, P | W);
        g.map(ELSEWHERE + 0x10_000 + page * 0x1000, PML4 + page * 0x1000, P | W);
    }
    g.map(ELSEWHERE + 0x20_000, 0xfec0_0000, P | W);
    g.map(ELSEWHERE + 0x21_000, DATA, P);
    g.map(ELSEWHERE + 0x22_000, DATA, P | W | U);
    let targets = [
        CODE,
        ELSEWHERE,
        ELSEWHERE + 0x800,
        PML4,
        ELSEWHERE + 0x11_000,
        g.entry(ELSEWHERE, 1),
        g.entry(CODE, 1),
        g.entry(CODE, 2),
        GDT,
        IDT,
        TSS,
        DATA,
        DATA + 0xffc,
        ELSEWHERE + 0x20_000,
        ELSEWHERE + 0x21_000,
        ELSEWHERE + 0x22_000,
        STACK - 0x800,
        USER,
        0x7000,
        0x8000_0000_0000,
    ];
    for register in [3, 6, 7, 9] {
        g.state.gpr[register] = targets[d.next(targets.len() as u64) as usize];
    }
    g.state.gpr[12] = PML4;
    g.state.gpr[13] = STACK;
    g.state.msrs.lstar = CODE + 0x100;
    g.state.seg[seg::GS].base = DATA;
    g.descriptor(FREE_SELECTOR, d.next(u64::MAX));
    g.put16(DATA, 0xfff);
    g.put(DATA + 2, GDT);
    // Ring 0 and ring 3 have different code. Handlers return to either ring.
    for start in [CODE, USER] {
        let mut at = start;
        while at < start + LENGTH {
            at = g.code(at, |a| instruction(a, &mut d));
        }
        g.code(at, |a| a.jmp(start));
    }
    if d.next(3) == 0 {
        g.start_in_ring_3(USER);
        g.state.rflags |= d.next(2) * 0x3000;
    }
    g.interrupts = (0..d.next(6)).map(|n| (100 + 130 * n, 0x30 + n as u8)).collect();
    g
}

#[test]
fn results_do_not_depend_on_the_caches() {
    let guests = std::env::var("EVERETT_HAVOC_GUESTS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut lived = 0;
    let mut faults = 0;
    for seed in 1..=guests {
        let g = guest(seed);
        let out = match std::panic::catch_unwind(|| check(&g)) {
            Ok(out) => out,
            Err(_) => panic!("seed {seed}"),
        };
        lived += u64::from(out.end == End::Count);
        faults += out.word(COUNTER).min(1500);
    }
    // Tests the comparison itself: it must detect a CPU with a planted defect, which keeps stale TLB entries.
    let caught = (1..=20).filter(|seed| stale_translations_show(&guest(*seed))).count();
    assert!(caught > 0, "a planted defect went unnoticed");
    println!("{guests} guests, {lived} ran to the limit, {faults} faults");
    assert!(
        lived > guests / 10 && faults > 10 * guests,
        "too many guests ended early: {lived} ran to the limit, {faults} faults"
    );
}
