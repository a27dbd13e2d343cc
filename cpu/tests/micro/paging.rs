//! 4-level paging: permissions in all combinations, error codes, CR2, accessed and dirty bits, large pages, reserved
//! bits (SDM vol. 3A, 4.5-4.8).

use super::harness::{check, once};
use super::image::*;
use everett_assembler::*;

const CR0_WP: u64 = 1 << 16;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;
const EFER_NXE: u64 = 1 << 11;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Fetch,
}

/// One access, and the paging bits and control bits that apply to it.
#[derive(Debug, Clone, Copy)]
struct Case {
    entry: u64,
    ring: u8,
    access: Access,
    wp: bool,
    smep: bool,
    smap: bool,
    ac: bool,
}

impl Case {
    /// Returns the page fault's error code by the rules of SDM vol. 3A, 4.6.1 and 4.7. `None` if the access is allowed.
    fn expected(self) -> Option<u64> {
        let has = |bit| self.entry & bit != 0;
        let allowed = match (self.ring, self.access) {
            (3, Access::Read) => has(U),
            (3, Access::Write) => has(U) && has(W),
            (3, Access::Fetch) => has(U) && !has(NX),
            (_, Access::Fetch) if has(U) && self.smep => false,
            (_, Access::Fetch) => !has(NX),
            (_, access) => {
                let smap_forbids = has(U) && self.smap && !self.ac;
                let read_only = access == Access::Write && !has(W) && self.wp;
                !smap_forbids && !read_only
            }
        };
        if has(P) && allowed {
            return None;
        }
        Some(
            u64::from(has(P))
                | if self.access == Access::Write { 2 } else { 0 }
                | if self.ring == 3 { 4 } else { 0 }
                | if self.access == Access::Fetch { 16 } else { 0 },
        )
    }
}

/// Returns a guest that makes one access to `ELSEWHERE` and halts. RBX is 1 if the access succeeded.
fn prepare(base: &Guest, case: Case) -> Guest {
    let mut g = base.clone();
    g.map(ELSEWHERE, DATA, case.entry);
    let code = if case.ring == 3 { USER } else { CODE };
    if case.ring == 3 {
        g.start_in_ring_3(code);
    }
    g.code(code, |a| {
        survive(a, |a| {
            a.mov(rax, ELSEWHERE)?;
            match case.access {
                Access::Read => a.mov(rcx, qword_ptr(rax))?,
                Access::Write => a.mov(qword_ptr(rax), rax)?,
                Access::Fetch => a.jmp(rax)?,
            }
            a.mov(ebx, 1)
        })?;
        exit(a)
    });
    g.code_for(DATA, ELSEWHERE, |a| {
        a.mov(ebx, 1)?;
        a.jmp(r15)
    });
    let set = |v: &mut u64, bit: u64, on: bool| *v = *v & !bit | if on { bit } else { 0 };
    set(&mut g.state.cr0, CR0_WP, case.wp);
    set(&mut g.state.cr4, CR4_SMEP, case.smep);
    set(&mut g.state.cr4, CR4_SMAP, case.smap);
    set(&mut g.state.rflags, AC, case.ac);
    g
}

#[test]
fn every_combination_of_permissions() {
    let base = Guest::new();
    let mut number = 0;
    for bits in 0..16u64 {
        let entry =
            [P, W, U, NX].iter().enumerate().map(|(i, f)| if bits >> i & 1 != 0 { *f } else { 0 }).sum();
        for rules in 0..32u64 {
            let on = |i: u64| rules >> i & 1 != 0;
            for access in [Access::Read, Access::Write, Access::Fetch] {
                let ring = if on(4) { 3 } else { 0 };
                let case = Case { entry, ring, access, wp: on(0), smep: on(1), smap: on(2), ac: on(3) };
                let g = prepare(&base, case);
                number += 1;
                let out = if number % 16 == 0 { check(&g) } else { once(&g) };
                match case.expected() {
                    None => assert_eq!((out.log().len(), out.state.gpr[3]), (0, 1), "{case:x?}"),
                    Some(error) => {
                        assert_eq!(out.vectors(), [(14, error)], "{case:x?}");
                        assert_eq!((out.log()[0].cr2, out.state.gpr[3]), (ELSEWHERE, 0), "{case:x?}");
                    }
                }
            }
        }
    }
}

#[test]
fn permissions_of_all_levels_combine() {
    let base = Guest::new();
    for level in 1..=4 {
        for (bit, access) in [(W, Access::Write), (U, Access::Read), (NX, Access::Fetch), (P, Access::Read)] {
            let case =
                Case { entry: P | W | U, ring: 3, access, wp: true, smep: false, smap: false, ac: false };
            let mut g = prepare(&base, case);
            let at = g.entry(ELSEWHERE, level);
            let entry = g.word(at) ^ bit;
            g.put(at, entry);
            let out = check(&g);
            let error = Case { entry: (P | W | U) ^ bit, ..case }.expected().expect("forbidden");
            assert_eq!(out.vectors(), [(14, error)], "level {level}, {access:?}");
        }
    }
}

#[test]
fn without_nxe_the_nx_bit_is_reserved_and_fetches_are_not_reported() {
    let base = Guest::new();
    let case = Case {
        entry: P | U | W | NX,
        ring: 3,
        access: Access::Fetch,
        wp: true,
        smep: false,
        smap: false,
        ac: false,
    };
    let mut g = prepare(&base, case);
    g.state.efer &= !EFER_NXE;
    assert_eq!(check(&g).vectors(), [(14, 8 | 4 | 1)]);
    // With SMEP, the CPU reports the fetch bit even without NXE.
    g.state.cr4 |= CR4_SMEP;
    assert_eq!(check(&g).vectors(), [(14, 16 | 8 | 4 | 1)]);
}

#[test]
fn reserved_bits_fault_at_every_level() {
    let base = Guest::new();
    let case =
        Case { entry: P | W, ring: 0, access: Access::Write, wp: true, smep: false, smap: false, ac: false };
    // Physical addresses have 39 bits, so bits 39-51 are reserved in all entries. Bit PS of a PML4 entry is reserved,
    // too.
    for (level, bit) in [(1, 39), (2, 39), (3, 45), (4, 51), (4, 7)] {
        let mut g = prepare(&base, case);
        let at = g.entry(ELSEWHERE, level);
        let entry = g.word(at) | 1 << bit;
        g.put(at, entry);
        assert_eq!(check(&g).vectors(), [(14, 8 | 2 | 1)], "level {level}, bit {bit}");
    }
    // A large page must be aligned. Bit 12 is PAT, and no part of the address.
    for (level, bit, fine) in [(2, 12, true), (2, 13, false), (2, 20, false), (3, 12, true), (3, 29, false)] {
        let mut g = prepare(&base, case);
        let at = g.entry(ELSEWHERE, level);
        g.put(at, P | W | LARGE | 1 << bit);
        let expected = fault_if(!fine, (14, 8 | 2 | 1));
        assert_eq!(check(&g).vectors(), expected, "level {level}, bit {bit}");
    }
}

#[test]
fn large_pages_map_their_whole_range() {
    for level in [2, 3] {
        let mut g = Guest::new();
        let at = g.entry(ELSEWHERE, level);
        g.put(at, P | W | LARGE);
        g.put(DATA + 0x128, 0x1234_5678);
        g.code(CODE, |a| {
            a.mov(rax, ELSEWHERE + DATA)?;
            a.mov(rbx, qword_ptr(rax + 0x128))?;
            a.mov(qword_ptr(rax + 0x130), rbx)?;
            a.hlt()
        });
        let out = check(&g);
        assert_eq!((out.state.gpr[3], out.word(DATA + 0x130)), (0x1234_5678, 0x1234_5678));
        assert_eq!(out.word(at), P | W | LARGE | A | D, "A and D are set in the entry of the large page");
    }
}

#[test]
fn accessed_and_dirty_bits_follow_the_access() {
    for (write, expected) in [(false, P | W | A), (true, P | W | A | D)] {
        let mut g = Guest::new();
        g.map(ELSEWHERE, DATA, P | W);
        g.code(CODE, |a| {
            a.mov(rax, ELSEWHERE)?;
            if write {
                a.mov(qword_ptr(rax), rbx)?
            } else {
                a.mov(rbx, qword_ptr(rax))?
            }
            a.hlt()
        });
        let entries: Vec<u64> = (1..=4).map(|level| g.entry(ELSEWHERE, level)).collect();
        let out = check(&g);
        assert_eq!(out.word(entries[0]) & 0xfff, expected);
        for at in &entries[1..] {
            assert_eq!(out.word(*at) & (A | D), A, "upper levels have no dirty bit");
        }
    }
}

#[test]
fn a_forbidden_write_does_not_set_the_dirty_bit() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P);
    g.code(CODE, |a| {
        a.mov(rax, ELSEWHERE)?;
        a.mov(qword_ptr(rax), rbx)
    });
    let at = g.entry(ELSEWHERE, 1);
    let out = check(&g);
    assert_eq!(out.vectors(), [(14, 3)]);
    assert_eq!(out.word(at) & D, 0);
}

#[test]
fn a_read_modify_write_faults_as_a_write() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P);
    g.code(CODE, |a| {
        a.mov(rax, ELSEWHERE)?;
        a.add(qword_ptr(rax), 1)
    });
    assert_eq!(check(&g).vectors(), [(14, 3)]);
}

#[test]
fn an_access_across_pages_names_the_page_that_is_missing() {
    for (first, second, address) in
        [(P | W, 0, ELSEWHERE + 0x1000), (0, P | W, ELSEWHERE + 0xffd), (0, 0, ELSEWHERE + 0xffd)]
    {
        let mut g = Guest::new();
        g.map(ELSEWHERE, DATA, first);
        g.map(ELSEWHERE + 0x1000, DATA + 0x1000, second);
        g.code(CODE, |a| {
            a.mov(rax, ELSEWHERE + 0xffd)?;
            a.mov(rbx, u64::MAX)?;
            a.mov(qword_ptr(rax), rbx)
        });
        let out = check(&g);
        assert_eq!((out.vectors(), out.log()[0].cr2), (vec![(14, 2)], address));
        assert_eq!((out.word(DATA + 0xff8), out.word(DATA + 0x1000)), (0, 0), "nothing was written");
    }
}

#[test]
fn an_access_can_span_pages_that_are_not_adjacent_in_ram() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA + 0x3000, P | W);
    g.map(ELSEWHERE + 0x1000, DATA, P | W);
    g.code(CODE, |a| {
        a.mov(rax, ELSEWHERE + 0xffd)?;
        a.mov(rbx, 0x1122_3344_5566_7788u64)?;
        a.mov(qword_ptr(rax), rbx)?;
        a.mov(rcx, qword_ptr(rax))?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!(out.state.gpr[1], 0x1122_3344_5566_7788);
    assert_eq!(out.ram[DATA as usize + 0x3ffd..][..3], [0x88, 0x77, 0x66]);
    assert_eq!(out.ram[DATA as usize..][..5], [0x55, 0x44, 0x33, 0x22, 0x11]);
}

#[test]
fn addresses_that_are_not_canonical_fault_by_segment() {
    for (stack, vector) in [(false, 13), (true, 12)] {
        let g = Guest::in_ring_0(|a| {
            a.mov(rax, 0x8000_0000_0000u64)?;
            a.mov(rbp, rax)?;
            if stack { a.mov(rbx, qword_ptr(rbp + 8)) } else { a.mov(rbx, qword_ptr(rax + 8)) }
        });
        assert_eq!(check(&g).vectors(), [(vector, 0)]);
    }
    let mut g = Guest::in_ring_0(|a| {
        a.mov(rax, 0xffff_7fff_ffff_fff8u64)?;
        a.mov(rsp, rax)?;
        a.push(rax)
    });
    // RSP is not canonical, so the handler of #SS gets another stack.
    g.on_ist1(12);
    assert_eq!(check(&g).vectors(), [(12, 0)]);
}

#[test]
fn descriptor_tables_are_read_with_supervisor_rights() {
    let mut g = Guest::in_ring_3(|a| {
        a.mov(eax, i32::from(USER_SS))?;
        a.mov(ds, eax)?;
        a.mov(fs, eax)?;
        exit(a)
    });
    g.state.cr4 |= CR4_SMAP;
    assert!(check(&g).log().is_empty());
}

#[test]
fn a_descriptor_table_on_a_user_page_is_out_of_reach_under_smap_regardless_of_ac() {
    let mut g = Guest::new();
    g.state.cr4 |= CR4_SMAP;
    g.state.rflags |= AC;
    g.map(ELSEWHERE, GDT, P | W | U);
    g.code(CODE, |a| {
        a.mov(rax, DATA)?;
        a.lgdt(tbyte_ptr(rax))?;
        a.mov(eax, i32::from(KERNEL_SS))?;
        a.mov(ds, eax)
    });
    g.put16(DATA, 0xfff);
    g.put(DATA + 2, ELSEWHERE);
    // The handler's code segment is in the same table, so the delivery faults, too. A double fault follows, and then a
    // triple fault.
    assert_eq!(check(&g).end, super::harness::End::Shutdown);
}

#[test]
fn stac_and_clac_suspend_smap() {
    let mut g = Guest::in_ring_0(|a| {
        a.mov(rax, USER_STACK - 8)?;
        a.stac()?;
        a.mov(rbx, qword_ptr(rax))?;
        a.clac()?;
        survive(a, |a| a.mov(rbx, qword_ptr(rax)))?;
        a.hlt()
    });
    g.state.cr4 |= CR4_SMAP;
    let out = check(&g);
    assert_eq!(out.vectors(), [(14, 1)]);
    assert_eq!(out.state.rflags & AC, 0);
}

#[test]
fn tables_outside_of_ram_read_as_ones() {
    let mut g = Guest::new();
    let at = g.entry(ELSEWHERE, 3);
    g.put(at, 0x4000_0000 | P | W);
    g.code(CODE, |a| {
        a.mov(rax, ELSEWHERE)?;
        a.mov(rbx, qword_ptr(rax))
    });
    assert_eq!(check(&g).vectors(), [(14, 9)]);
}

#[test]
fn alignment_is_checked_in_ring_3_under_am_and_ac() {
    for (am, ac, ring, faults) in
        [(true, true, 3, true), (false, true, 3, false), (true, false, 3, false), (true, true, 0, false)]
    {
        let mut g = Guest::in_ring(ring, |a| {
            survive(a, |a| {
                a.mov(rax, qword_ptr(rsp - 16))?;
                a.mov(rax, qword_ptr(rsp - 15))
            })?;
            exit(a)
        });
        g.state.cr0 = g.state.cr0 & !(1 << 18) | u64::from(am) << 18;
        g.state.rflags |= if ac { AC } else { 0 };
        let expected = fault_if(faults, (17, 0));
        assert_eq!(check(&g).vectors(), expected, "AM {am} AC {ac} ring {ring}");
    }
}
