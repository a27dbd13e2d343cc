//! Page table roots with equal upper halves, as all processes of a kernel have them. TLB entries of the upper half may
//! survive a change of CR3, but the guest must not notice this.
//!
//! The CPU has a TLB table for each access mode. Entries survive only in the table of ordinary kernel mode, and only if
//! this table has no entries of the lower half. The guests therefore run in the upper half, as kernels do, and access
//! the lower half with RFLAGS.AC set. Accesses with AC set use a TLB table of their own.

use super::harness::{Outcome, check};
use super::image::*;
use everett_assembler::*;

/// First address of the upper half.
const ABOVE: u64 = 0xffff_8000_0000_0000;
/// Offset of the entry for `ABOVE` in a root table.
const ENTRY: u64 = 256 * 8;
/// Linear address of a second mapping of all RAM.
const KERNEL: u64 = 0xffff_ffff_8000_0000;
/// Guest-physical address of the code that runs in the upper half.
const BODY: u64 = CODE + 0x1000;

/// Returns a guest, and the address of a copy of its PML4 (the root of the page tables). DATA, which holds 0x1111, is
/// mapped at ABOVE and at ELSEWHERE. Both roots have accessed bits set.
fn guest() -> (Guest, u64) {
    let mut g = Guest::new();
    g.map(ABOVE, DATA, P | W);
    g.map(ELSEWHERE, DATA, P | W);
    for at in (0..RAM_BYTES as u64).step_by(4096) {
        g.map(KERNEL + at, at, P | W);
    }
    g.put(DATA, 0x1111);
    g.put(DATA + 0x1000, 0x2222);
    let other = g.table();
    for at in (0..4096).step_by(8) {
        let entry = g.word(PML4 + at) | if g.word(PML4 + at) & P != 0 { A } else { 0 };
        g.put(PML4 + at, entry);
        g.put(other + at, entry);
    }
    (g, other)
}

/// Runs code in the upper half. RDX holds the other root's physical address, for CR3, and RDI its linear address, for
/// writes.
fn above(mut g: Guest, other: u64, code: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Outcome {
    g.code(CODE, |a| {
        a.mov(rax, KERNEL + BODY)?;
        a.jmp(rax)
    });
    let third = g.table();
    g.ram.copy_within(PML4 as usize..PML4 as usize + 4096, third as usize);
    g.code_for(BODY, KERNEL + BODY, |a| {
        a.mov(rdx, other)?;
        a.mov(rdi, KERNEL + other)?;
        // Switches to a third root and back, which drops the TLB entries of the lower half. `other` cannot serve
        // as the third root, because `code` tests the first switch to `other`.
        a.mov(rcx, cr3)?;
        a.mov(rax, third)?;
        a.mov(cr3, rax)?;
        a.mov(cr3, rcx)?;
        code(a)?;
        a.hlt()
    });
    check(&g)
}

/// Returns the value at ABOVE under the first root, and the value at ABOVE after `then`.
fn run(g: Guest, other: u64, then: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> (u64, u64) {
    let done = above(g, other, |a| {
        a.mov(rsi, ABOVE)?;
        a.mov(rax, qword_ptr(rsi))?;
        then(a)?;
        a.mov(rbx, qword_ptr(rsi))
    });
    (done.state.gpr[0], done.state.gpr[3])
}

#[test]
fn roots_with_equal_upper_halves_show_the_same_pages() {
    let (g, other) = guest();
    assert_eq!(run(g, other, |a| a.mov(cr3, rdx)), (0x1111, 0x1111));
}

#[test]
fn a_root_with_another_upper_half_shows_its_own_pages() {
    let (mut g, other) = guest();
    let pdpt = g.tables_of(DATA + 0x1000);
    g.put(other + ENTRY, pdpt | P | W | A);
    assert_eq!(run(g, other, |a| a.mov(cr3, rdx)), (0x1111, 0x2222));
}

#[test]
fn the_accessed_bit_of_a_new_root_is_set() {
    let (mut g, other) = guest();
    let entry = g.word(other + ENTRY);
    g.put(other + ENTRY, entry & !A);
    // Makes RSI point to the entry for ABOVE in the new root. `run` then reads this entry instead of the value at
    // ABOVE.
    let seen = run(g, other, |a| {
        a.mov(cr3, rdx)?;
        a.mov(rcx, qword_ptr(rsi))?;
        a.lea(rsi, ptr(rdi + ENTRY as i32))
    });
    assert_eq!(seen.1, entry);
}

#[test]
fn a_store_to_the_new_root_takes_effect() {
    let (mut g, other) = guest();
    let table = g.word(other + ENTRY);
    let pdpt = g.tables_of(DATA + 0x1000);
    let seen = run(g, other, |a| {
        // First stores to the page of the new root, while this page is still ordinary data.
        a.mov(dword_ptr(rdi + 8), 0)?;
        a.mov(cr3, rdx)?;
        a.mov(rcx, pdpt | (table & 0xfff))?;
        a.mov(qword_ptr(rdi + ENTRY as i32), rcx)
    });
    assert_eq!(seen, (0x1111, 0x2222));
}

#[test]
fn a_store_to_a_table_takes_effect_under_the_new_root() {
    let (mut g, other) = guest();
    let at = g.entry(ABOVE, 1);
    let seen = run(g, other, |a| {
        a.mov(cr3, rdx)?;
        a.mov(rdi, KERNEL + at)?;
        a.add(qword_ptr(rdi), 0x1000)
    });
    assert_eq!(seen, (0x1111, 0x2222));
}

/// The same lowest-level page table maps an address in the upper half and an address in the lower half.
#[test]
fn a_table_of_both_halves_remains_marked_for_the_upper_half() {
    let (mut g, other) = guest();
    let (table, at) = (g.entry(ABOVE, 2), g.entry(ELSEWHERE, 2));
    g.put(at, g.word(table));
    let leaf = g.entry(ABOVE, 1);
    let seen = run(g, other, |a| {
        a.stac()?;
        a.mov(rdi, ELSEWHERE)?;
        a.mov(rcx, qword_ptr(rdi))?;
        a.clac()?;
        a.mov(cr3, rdx)?;
        a.mov(rdi, KERNEL + leaf)?;
        a.add(qword_ptr(rdi), 0x1000)
    });
    assert_eq!(seen, (0x1111, 0x2222));
}

/// After a switch of roots, the guest no longer uses a table of the lower half, and writes to it as data. After the
/// switch back, page walks use the table again.
#[test]
fn a_lower_half_table_written_under_another_root_takes_effect_on_return() {
    let (mut g, other) = guest();
    // The other root has no mapping at ELSEWHERE.
    g.put(other + (ELSEWHERE >> 39 & 0x1ff) * 8, 0);
    let leaf = g.entry(ELSEWHERE, 1);
    let seen = run(g, other, |a| {
        a.mov(r8, ELSEWHERE)?;
        a.mov(r9, cr3)?;
        a.mov(rdi, KERNEL + leaf)?;
        a.stac()?;
        a.mov(rcx, qword_ptr(r8))?;
        a.clac()?;
        a.mov(cr3, rdx)?;
        // There are two stores, because the first one may take the slow path and fill a TLB entry for the second.
        a.add(qword_ptr(rdi), 0x800)?;
        a.add(qword_ptr(rdi), 0x800)?;
        a.mov(cr3, r9)?;
        a.stac()?;
        a.mov(rcx, qword_ptr(r8))?;
        a.add(qword_ptr(rdi), -0x1000)?;
        a.mov(rcx, qword_ptr(r8))?;
        a.add(qword_ptr(rdi), 0x1000)?;
        a.mov(rsi, r8)
    });
    assert_eq!(seen, (0x1111, 0x2222));
}

/// Emits code that sets RAX to the offset of one of eight pages. Bits `shift` to `shift + 2` of ECX are the number of
/// the page.
fn page_to_rax(a: &mut Assembler, shift: i32) -> Result<(), Error> {
    bits_of_ecx(a, eax, shift, 7)?;
    a.shl(eax, 12)
}

/// Emits code that adds the first word of a page to RBX, and stores RBX in the page at offset `at`. RAX is the offset
/// of the page from `base`, which goes to R10.
fn add_and_store(a: &mut Assembler, base: u64, at: i32) -> Result<(), Error> {
    a.mov(r10, base)?;
    a.add(rbx, qword_ptr(r10 + rax))?;
    a.mov(qword_ptr(r10 + rax + at), rbx)
}

/// Random switches between processes, with a kernel that sometimes changes its own mappings. The test only checks
/// that the guest runs the same in all ways, e.g. interpreted and translated.
#[test]
fn random_switches_are_the_same_whatever_the_caches() {
    for seed in 1..=8u64 {
        let (mut g, other) = guest();
        for page in 0..8 {
            for half in [ABOVE, ELSEWHERE] {
                g.map(half + page * 0x1000, DATA + page * 0x1000, P | W);
            }
            g.put(DATA + page * 0x1000, seed << 32 | page);
        }
        let (upper, lower) = (KERNEL + g.entry(ABOVE, 1), KERNEL + g.entry(ELSEWHERE, 1));
        above(g, other, |a| {
            let (kept, unchanged, same) = (a.create_label(), a.create_label(), a.create_label());
            a.mov(r12, cr3)?;
            a.mov(r13, rdx)?;
            a.mov(r14, KERNEL)?;
            repeat_at_random(a, seed, 700, |a| {
                // Sometimes switches to the other process.
                a.test(cl, 0x60)?;
                a.jnz(kept)?;
                a.xchg(r12, r13)?;
                a.mov(cr3, r12)?;
                a.set_label(kept)?;
                // In 1 of 8 iterations, changes an entry of the table that maps ABOVE or of the table that maps
                // ELSEWHERE.
                a.mov(r9, upper)?;
                a.mov(rax, lower)?;
                a.test(ch, 1)?;
                a.cmovz(r9, rax)?;
                a.test(cl, 0x1c)?;
                a.jnz(unchanged)?;
                bits_of_ecx(a, eax, 0, 7)?;
                a.xor(qword_ptr(r9 + rax * 8), 0x1000)?;
                a.set_label(unchanged)?;
                // In 1 of 64 iterations, changes an entry of the current root, which then differs from the other root.
                a.test(ecx, 0x3f00)?;
                a.jnz(same)?;
                a.xor(qword_ptr(r12 + r14 + ENTRY as i32), 1 << 9)?;
                a.set_label(same)?;
                page_to_rax(a, 10)?;
                add_and_store(a, ABOVE, 8)?;
                a.stac()?;
                add_and_store(a, ELSEWHERE, 16)?;
                a.clac()
            })
        });
    }
}

/// Guest-physical address of the first of `MANY` groups of tables: a root, and the tables below it that map ELSEWHERE.
const GROUPS: u64 = 0x8_0000;
/// Length of a group in bytes.
const GROUP: u64 = 0x4000;
/// Number of address spaces. There are more than the CPU keeps entries of.
const MANY: u64 = 12;

/// Writes the tables of group `n`: a root with the upper half of `other`, and one table at each level below, which also
/// have the bits `flags`. Returns the address of the lowest table, which maps the pages at ELSEWHERE.
fn group(g: &mut Guest, other: u64, n: u64, flags: u64) -> u64 {
    let root = GROUPS + n * GROUP;
    g.ram.copy_within(other as usize..other as usize + 4096, root as usize);
    g.put(root + (ELSEWHERE >> 39 & 0x1ff) * 8, (root + 0x1000) | P | W | flags);
    g.put(root + 0x1000, (root + 0x2000) | P | W | flags);
    g.put(root + 0x2000, (root + 0x3000) | P | W | flags);
    root + 0x3000
}

/// Returns a guest with `MANY` roots. Each has tables of its own for the lower half.
fn crowd(seed: u64) -> (Guest, u64) {
    let (mut g, other) = guest();
    for page in 0..8 {
        g.map(ABOVE + page * 0x1000, DATA + page * 0x1000, P | W);
    }
    for page in 0..16 {
        g.put(DATA + page * 0x1000, seed << 32 | page);
    }
    for n in 0..MANY {
        let table = group(&mut g, other, n, 0);
        for page in 0..8 {
            g.put(table + page * 8, (DATA + (n + page) % 16 * 0x1000) | P | W);
        }
    }
    (g, other)
}

/// Random switches between many processes. The kernel changes tables of the current and of other processes at each
/// level, so that two processes share tables at times.
#[test]
fn random_switches_between_many_processes_are_the_same_whatever_the_caches() {
    for seed in 1..=3u64 {
        let (mut g, other) = crowd(seed);
        let upper = KERNEL + g.entry(ABOVE, 1);
        let done = above(g, other, |a| {
            repeat_at_random(a, seed, 1_500, |a| {
                // In 12 of 16 iterations, enters a process.
                let stays = a.create_label();
                bits_of_ecx(a, eax, 0, 15)?;
                a.cmp(eax, MANY as i32)?;
                a.jae(stays)?;
                a.shl(eax, GROUP.trailing_zeros() as i32)?;
                a.add(eax, GROUPS as i32)?;
                a.mov(cr3, rax)?;
                a.set_label(stays)?;
                // In 5 of 16 iterations, changes an entry of a table of any process, or of the kernel's table for
                // ABOVE.
                bits_of_ecx(a, eax, 4, 7)?;
                a.shl(eax, GROUP.trailing_zeros() as i32)?;
                a.mov(r9, KERNEL + GROUPS)?;
                a.add(r9, rax)?;
                a.mov(r10, upper)?;
                bits_of_ecx(a, edx, 11, 7)?;
                bits_of_ecx(a, eax, 7, 15)?;
                let changed = a.create_label();
                for kind in 0..5 {
                    let next = a.create_label();
                    a.cmp(eax, kind)?;
                    a.jne(next)?;
                    match kind {
                        // Exchanges a table with that of the process with which this one makes a pair.
                        0 => a.xor(qword_ptr(r9 + (ELSEWHERE >> 39 & 0x1ff) as i32 * 8), GROUP as i32)?,
                        1 => a.xor(qword_ptr(r9 + 0x1000), GROUP as i32)?,
                        2 => a.xor(qword_ptr(r9 + 0x2000), GROUP as i32)?,
                        3 => a.xor(qword_ptr(r9 + rdx * 8 + 0x3000), 0x1000)?,
                        _ => a.xor(qword_ptr(r10 + rdx * 8), 0x1000)?,
                    }
                    a.jmp(changed)?;
                    a.set_label(next)?;
                }
                a.set_label(changed)?;
                page_to_rax(a, 14)?;
                add_and_store(a, ABOVE, 8)?;
                a.stac()?;
                // Pages of ABOVE and ELSEWHERE compete for entries, so ABOVE is read in 1 of 8 iterations only.
                let below = a.create_label();
                a.test(ecx, 0xe_0000)?;
                a.jnz(below)?;
                a.sub(rbx, qword_ptr(r10 + rax))?;
                a.set_label(below)?;
                add_and_store(a, ELSEWHERE, 0)?;
                a.clac()
            })
        });
        assert_eq!(done.state.gpr[11], 0, "the guest did not run to its end");
    }
}

/// Three processes execute a program in ring 3, which calls a function on another page. Each process has its own
/// function at that address. While another process is current, the kernel maps a process's function to another page, or
/// changes its bytes. The process must then execute the new function.
#[test]
fn code_changed_from_another_address_space_executes_on_return() {
    /// Address of the function in each process.
    const FUNCTION: u64 = ELSEWHERE + 0x1000;
    const STACK_TOP: u64 = ELSEWHERE + 0x3000;
    /// Address of the kernel's code for SYSCALL.
    const ENTRY_POINT: u64 = CODE + 0x3000;
    /// Guest-physical addresses of the program, of the functions, and of the processes' stacks.
    const PROGRAM: u64 = DATA;
    const FUNCTIONS: u64 = DATA + 0x4000;
    const STACKS: u64 = DATA + 0x8000;
    const ROUNDS: u64 = 10;
    // A function returns one of these numbers, so the sum of all results counts the calls of each function.
    let result = |function: u64| 1u64 << (6 * function);
    let (mut g, other) = guest();
    let leaf = |process: u64| GROUPS + process * GROUP + 0x3000 + 8;
    for process in 0..3 {
        let table = group(&mut g, other, process, U);
        g.put(table, PROGRAM | P | U);
        g.put(leaf(process), (FUNCTIONS + process * 0x1000) | P | U);
        g.put(table + 16, (STACKS + process * 0x1000) | P | W | U);
    }
    for function in 0..4 {
        // MOV's immediate operand is at offset 1.
        g.code_for(FUNCTIONS + function * 0x1000, FUNCTION, |a| {
            a.mov(eax, result(function) as u32)?;
            a.ret()
        });
    }
    g.code_for(PROGRAM, ELSEWHERE, |a| {
        a.call(FUNCTION)?;
        a.add(rbx, rax)?;
        a.mov(rdx, FUNCTION)?;
        a.call(rdx)?;
        a.add(rbx, rax)?;
        a.syscall()
    });
    g.code_for(ENTRY_POINT, KERNEL + ENTRY_POINT, |a| a.jmp(rbp));
    g.state.msrs.lstar = KERNEL + ENTRY_POINT;
    let enter = |a: &mut Assembler, process: u64| {
        a.mov(rax, GROUPS + process * GROUP)?;
        a.mov(cr3, rax)
    };
    // Executes the program in the current process.
    let execute = |a: &mut Assembler| {
        let back = a.create_label();
        a.lea(rbp, ptr(back))?;
        a.mov(rsp, STACK_TOP)?;
        a.mov(rcx, ELSEWHERE)?;
        a.mov(r11d, 2)?;
        sysretq(a)?;
        a.set_label(back)
    };
    // Exchanges the function of process 0 for function 3, or back.
    let remap = |a: &mut Assembler| {
        a.mov(rdi, KERNEL + leaf(0))?;
        a.xor(qword_ptr(rdi), 0x3000)
    };
    // Exchanges the result of function 1 for result 4, or back.
    let patch = |a: &mut Assembler| {
        a.mov(rdi, KERNEL + FUNCTIONS + 0x1000 + 1)?;
        a.xor(dword_ptr(rdi), (result(1) ^ result(4)) as i32)
    };
    let done = above(g, other, |a| {
        let again = a.create_label();
        a.xor(ebx, ebx)?;
        a.mov(r13d, ROUNDS as u32)?;
        a.set_label(again)?;
        enter(a, 2)?;
        execute(a)?;
        enter(a, 0)?;
        execute(a)?;
        // Process 1 executes nothing here, because its jumps would replace the remembered jumps of process 0.
        enter(a, 1)?;
        remap(a)?;
        enter(a, 0)?;
        execute(a)?;
        remap(a)?;
        execute(a)?;
        enter(a, 1)?;
        execute(a)?;
        enter(a, 2)?;
        patch(a)?;
        enter(a, 1)?;
        execute(a)?;
        patch(a)?;
        a.dec(r13d)?;
        a.jnz(again)
    });
    // In each round, the program runs twice with function 0, and once with each other result. It calls twice.
    let calls = [2, 1, 1, 1, 1].map(|runs| runs * 2 * ROUNDS);
    let counted = [0, 1, 2, 3, 4].map(|function| done.state.gpr[3] >> (6 * function) & 63);
    assert_eq!(counted, calls);
}
