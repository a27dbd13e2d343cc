//! Page tables that change under a running guest, without INVLPG. The results must be the same as on a CPU without a
//! TLB.

use super::harness::{check, stale_translations_show};
use super::image::*;
use everett_assembler::*;

/// Returns a guest with a page at `ELSEWHERE` that holds 0x1111. The next page in RAM holds 0x2222.
fn two_pages() -> Guest {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P | W);
    g.put(DATA, 0x1111);
    g.put(DATA + 0x1000, 0x2222);
    g
}

/// Returns a guest that accesses `ELSEWHERE`, changes its paging entry at `level` from `before` to `after`, and
/// accesses it again. Also returns the address of the entry.
fn change(
    level: u32,
    before: u64,
    after: u64,
    touch: fn(&mut Assembler) -> Result<(), Error>,
) -> (Guest, u64) {
    let mut g = two_pages();
    let at = g.entry(ELSEWHERE, level);
    g.put(at, before);
    g.code(CODE, |a| {
        let first = a.create_label();
        let second = a.create_label();
        a.mov(rsi, ELSEWHERE)?;
        a.mov(rdi, at)?;
        a.mov(rdx, after)?;
        a.lea(r15, ptr(first))?;
        touch(a)?;
        a.set_label(first)?;
        a.mov(r9, rbx)?;
        a.mov(qword_ptr(rdi), rdx)?;
        a.lea(r15, ptr(second))?;
        touch(a)?;
        a.set_label(second)?;
        a.hlt()
    });
    (g, at)
}

fn read(a: &mut Assembler) -> Result<(), Error> {
    a.mov(rbx, qword_ptr(rsi))
}
fn write(a: &mut Assembler) -> Result<(), Error> {
    a.mov(qword_ptr(rsi), rbx)
}

#[test]
fn a_page_that_moves_shows_its_new_place() {
    let (g, _) = change(1, DATA | P | W, (DATA + 0x1000) | P | W, read);
    let out = check(&g);
    assert_eq!((out.state.gpr[9], out.state.gpr[3]), (0x1111, 0x2222));
}

#[test]
fn a_page_that_goes_away_faults() {
    let (g, _) = change(1, DATA | P | W, DATA | W, read);
    assert_eq!(check(&g).vectors(), [(14, 0)]);
}

#[test]
fn a_page_that_appears_does_not_fault_again() {
    let (g, _) = change(1, DATA | W, DATA | P | W, read);
    let out = check(&g);
    assert_eq!((out.vectors(), out.state.gpr[3]), (vec![(14, 0)], 0x1111));
}

#[test]
fn revoked_and_granted_write_access_takes_effect_at_once() {
    let (g, _) = change(1, DATA | P | W, DATA | P, write);
    assert_eq!(check(&g).vectors(), [(14, 3)]);
    let (g, _) = change(1, DATA | P, DATA | P | W, write);
    assert_eq!(check(&g).vectors(), [(14, 3)], "only the first write faults");
}

#[test]
fn changes_of_upper_levels_take_effect() {
    for level in 2..=4 {
        let (mut g, at) = change(level, 0, 0, read);
        g.map(ELSEWHERE, DATA, P | W);
        // The entry is present at first. The guest's store clears it.
        assert_ne!(g.word(at), 0);
        assert_eq!(check(&g).vectors(), [(14, 0)], "level {level}");
    }
}

#[test]
fn a_cleared_accessed_bit_is_set_again() {
    let (g, at) = change(1, DATA | P | W | A | D, DATA | P | W | D, read);
    let out = check(&g);
    assert_eq!(out.word(at), DATA | P | W | A | D);
}

#[test]
fn a_cleared_dirty_bit_is_set_again() {
    let (g, at) = change(1, DATA | P | W | A | D, DATA | P | W | A, write);
    let out = check(&g);
    assert_eq!(out.word(at), DATA | P | W | A | D);
    let (g, at) = change(1, DATA | P | W | A | D, DATA | P | W | A, read);
    assert_eq!(check(&g).word(at), DATA | P | W | A, "a read does not set D");
}

#[test]
fn a_stale_translation_would_be_noticed() {
    let (g, _) = change(1, DATA | P | W, (DATA + 0x1000) | P | W, read);
    assert!(stale_translations_show(&g));
    let (g, _) = change(1, DATA | P | W, DATA | P, write);
    assert!(stale_translations_show(&g));
    let (g, _) = change(1, DATA | P | W | A, DATA | P | W, read);
    assert!(stale_translations_show(&g), "a cleared accessed bit");
}

/// Stores of all kinds change the entry. After each store, the page must be unmapped.
#[test]
fn every_kind_of_store_to_an_entry_takes_effect() {
    type Store = fn(&mut Assembler) -> Result<(), Error>;
    // RDI has the entry's address. RDX has its new value, which is not present.
    let stores: [(&str, Store); 12] = [
        ("byte", |a| a.mov(byte_ptr(rdi), dl)),
        ("word", |a| a.mov(word_ptr(rdi), dx)),
        ("dword", |a| a.mov(dword_ptr(rdi), edx)),
        ("xchg", |a| a.xchg(qword_ptr(rdi), rdx)),
        ("and", |a| a.and(qword_ptr(rdi), -2)),
        ("locked btr", |a| a.lock().btr(qword_ptr(rdi), 0)),
        ("cmpxchg", |a| {
            a.mov(rax, qword_ptr(rdi))?;
            a.lock().cmpxchg(qword_ptr(rdi), rdx)
        }),
        ("8 bytes that begin in the entry before", |a| {
            a.mov(rax, qword_ptr(rdi - 4))?;
            a.mov(rcx, 0xffff_fffe_ffff_ffffu64)?;
            a.and(rax, rcx)?;
            a.mov(qword_ptr(rdi - 4), rax)
        }),
        ("rep stosb", |a| {
            a.mov(eax, edx)?;
            a.mov(ecx, 1)?;
            a.rep().stosb()
        }),
        ("rep movsq", |a| {
            a.mov(rax, DATA + 0x2000)?;
            a.mov(qword_ptr(rax), rdx)?;
            a.mov(r10, rsi)?;
            a.mov(rsi, rax)?;
            a.mov(ecx, 1)?;
            a.rep().movsq()?;
            a.mov(rsi, r10)
        }),
        ("push", |a| {
            a.mov(r10, rsp)?;
            a.lea(rsp, qword_ptr(rdi + 8))?;
            a.push(rdx)?;
            a.mov(rsp, r10)
        }),
        ("16 bytes", |a| {
            a.movq(xmm0, rdx)?;
            a.movdqa(xmmword_ptr(rdi), xmm0)
        }),
    ];
    for (name, store) in stores {
        let mut g = Guest::new();
        g.map(ELSEWHERE, DATA, P | W);
        let at = g.entry(ELSEWHERE, 1);
        g.code(CODE, |a| {
            a.mov(rsi, ELSEWHERE)?;
            a.mov(rdi, at)?;
            a.mov(rdx, qword_ptr(rdi))?;
            a.mov(rbx, qword_ptr(rsi))?;
            a.and(edx, -2)?;
            store(a)?;
            survive(a, |a| a.mov(rbx, qword_ptr(rsi)))?;
            a.hlt()
        });
        assert_eq!(check(&g).vectors(), [(14, 0)], "{name}");
    }
}

#[test]
fn a_table_that_is_used_twice_drops_both_uses() {
    let mut g = two_pages();
    // The same lowest-level table also serves the next 2 MiB.
    let shared = g.entry(ELSEWHERE, 2);
    let entry = g.word(shared);
    g.put(shared + 8, entry);
    let at = g.entry(ELSEWHERE, 1);
    g.code(CODE, |a| {
        a.mov(rsi, ELSEWHERE)?;
        a.mov(rdi, at)?;
        a.mov(rax, qword_ptr(rsi))?;
        a.mov(rbx, qword_ptr(rsi + 0x20_0000))?;
        a.add(qword_ptr(rdi), 0x1000)?;
        a.mov(rcx, qword_ptr(rsi))?;
        a.mov(rdx, qword_ptr(rsi + 0x20_0000))?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!(out.state.gpr[..4], [0x1111, 0x2222, 0x2222, 0x1111]);
}

#[test]
fn a_table_that_maps_itself_can_be_edited_through_itself() {
    let mut g = two_pages();
    let table = g.entry(ELSEWHERE, 1) & !0xfff;
    g.map(ELSEWHERE + 0x3000, table, P | W);
    g.code(CODE, |a| {
        a.mov(rsi, ELSEWHERE)?;
        a.mov(rax, qword_ptr(rsi))?;
        a.add(qword_ptr(rsi + 0x3000), 0x1000)?;
        a.mov(rbx, qword_ptr(rsi))?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[0], out.state.gpr[3]), (0x1111, 0x2222));
}

#[test]
fn the_page_that_executes_can_move() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P);
    let at = g.entry(ELSEWHERE, 1);
    // Both pages begin with a store that maps ELSEWHERE, the page of the store itself, to the second page. The code
    // after the store differs.
    for (gpa, value) in [(DATA, 1), (DATA + 0x1000, 2)] {
        g.code_for(gpa, ELSEWHERE, |a| {
            a.add(qword_ptr(rdi), 0x1000)?;
            a.mov(ebx, value)?;
            a.hlt()
        });
    }
    g.code(CODE, |a| {
        a.mov(rdi, at)?;
        a.mov(rax, ELSEWHERE)?;
        a.jmp(rax)
    });
    assert_eq!(check(&g).state.gpr[3], 2);
}

#[test]
fn another_cr3_is_another_address_space() {
    let mut g = two_pages();
    // A second PML4, identical except for the entry that leads to ELSEWHERE.
    let other = g.table();
    for i in 0..512 {
        let v = g.word(PML4 + 8 * i);
        g.put(other + 8 * i, v);
    }
    let pdpt = g.tables_of(DATA + 0x1000);
    g.put(other + (ELSEWHERE >> 39 & 0x1ff) * 8, pdpt | P | W);
    g.code(CODE, |a| {
        a.mov(rsi, ELSEWHERE)?;
        a.mov(rax, qword_ptr(rsi))?;
        a.mov(rdx, other)?;
        a.mov(rdi, cr3)?;
        a.mov(cr3, rdx)?;
        a.mov(rbx, qword_ptr(rsi))?;
        a.mov(cr3, rdi)?;
        a.mov(rcx, qword_ptr(rsi))?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[0], out.state.gpr[3], out.state.gpr[1]), (0x1111, 0x2222, 0x1111));
}

/// A guest that changes page tables at random, as kernels do, and accesses pages all the time. The test has no expected
/// result. [`check`] runs the guest several times, with ordinary, tiny and flushed caches, and compares the results.
/// With tiny or flushed caches the CPU acts almost like one without a TLB.
#[test]
fn random_remapping_is_the_same_whatever_the_caches() {
    for seed in 1..=12u64 {
        let mut g = Guest::new();
        for page in 0..8 {
            g.map(ELSEWHERE + page * 0x1000, DATA + page * 0x1000, P | W);
            for word in 0..512 {
                g.put(DATA + page * 0x1000 + word * 8, seed << 32 | page << 16 | word);
            }
        }
        let table = g.entry(ELSEWHERE, 1);
        g.code(CODE, |a| {
            let next = a.create_label();
            a.mov(r9, table)?;
            a.mov(r10, ELSEWHERE)?;
            a.lea(r15, ptr(next))?;
            repeat_at_random(a, seed, 3000, |a| {
                // In 7 of 16 iterations, flips P, W, A, D or an address bit of one of eight entries.
                bits_of_ecx(a, edx, 0, 7)?;
                a.lea(rdi, qword_ptr(r9 + rdx * 8))?;
                bits_of_ecx(a, eax, 3, 15)?;
                a.mov(rsi, DATA + 0x10000)?;
                a.mov(rax, qword_ptr(rsi + rax * 8))?;
                a.xor(qword_ptr(rdi), rax)?;
                // Reads a word of one of the eight pages, folds it into the random number, and adds ECX to another
                // word.
                bits_of_ecx(a, edx, 7, 0x7ff8)?;
                a.xor(r8, qword_ptr(r10 + rdx))?;
                bits_of_ecx(a, edx, 9, 0x7ff8)?;
                a.add(qword_ptr(r10 + rdx), ecx)?;
                a.set_label(next)
            })?;
            a.hlt()
        });
        for (i, flip) in [P, W, A, D, 0x1000, 0x2000, 0x4000].into_iter().enumerate() {
            g.put(DATA + 0x10000 + 8 * i as u64, flip);
        }
        // The harness's log of exceptions has no room for so many page faults. This handler therefore records none of
        // them, and adds CR2 to R8 instead.
        g.code(0x7800, |a| {
            a.add(rsp, 8)?;
            a.push(rax)?;
            a.mov(rax, cr2)?;
            a.add(r8, rax)?;
            a.pop(rax)?;
            a.mov(qword_ptr(rsp), r15)?;
            a.iretq()
        });
        g.gate(14, 0x7800, 0x8e, 0);
        let out = check(&g);
        assert_eq!(out.end, super::harness::End::Halt);
        assert_ne!(out.state.gpr[8], 0);
    }
}
