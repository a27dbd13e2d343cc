//! Segment registers and descriptors: allowed loads, results of LAR, LSL, VERR and VERW, LDT and TSS.

use everett_assembler::*;
use everett_cpu::state::seg;

use super::harness::check;
use super::image::*;

const DATA_READ_ONLY: u64 = USER_DATA_DESCRIPTOR & !(1 << 41);
const CODE_EXECUTE_ONLY: u64 = USER_CODE_DESCRIPTOR & !(1 << 41);
const ABSENT: u64 = !(1 << 47);
const LDT_SELECTOR: u16 = FREE_SELECTOR + 0x40;

/// Returns a guest that loads AX into a segment register, in the given ring.
fn load(ring: u8, selector: u16, mov: fn(&mut Assembler) -> Result<(), Error>) -> Guest {
    let mut g = Guest::in_ring(ring, |a| {
        a.mov(eax, i32::from(selector))?;
        mov(a)?;
        exit(a)
    });
    g.descriptor(FREE_SELECTOR, DATA_READ_ONLY);
    g.descriptor(FREE_SELECTOR + 8, CODE_EXECUTE_ONLY);
    g.descriptor(FREE_SELECTOR + 16, USER_DATA_DESCRIPTOR & ABSENT);
    g.descriptor(FREE_SELECTOR + 24, 0x0000_9f00_0000_ffff | 1 << 53); // conforming code, DPL 0
    g.descriptor(FREE_SELECTOR + 32, 0x0040_f250_4000_1234); // base 504000h, limit 1234h, not accessed
    g
}

#[test]
fn data_segment_registers_check_what_they_load() {
    let f = FREE_SELECTOR;
    let cases = [
        ("null", 3, 0, None),
        ("null with RPL 3", 3, 3, None),
        ("data", 3, USER_SS, None),
        ("read-only data", 3, f | 3, None),
        ("readable code", 3, USER_CS, None),
        ("execute-only code", 3, (f + 8) | 3, Some((13, f + 8))),
        ("data of an inner ring", 3, KERNEL_SS, Some((13, KERNEL_SS))),
        ("conforming code of an inner ring", 3, f + 24, None),
        ("absent", 3, (f + 16) | 3, Some((11, f + 16))),
        ("beyond the table", 3, 0x1003, Some((13, 0x1000))),
        ("no LDT", 3, 7, Some((13, 4))),
        ("a TSS", 0, TSS_SELECTOR, Some((13, TSS_SELECTOR))),
        ("RPL greater than DPL", 0, KERNEL_SS | 3, Some((13, KERNEL_SS))),
        ("data of an outer ring in ring 0", 0, USER_SS, None),
    ];
    for (name, ring, selector, fault) in cases {
        let out = check(&load(ring, selector, |a| a.mov(es, eax)));
        let expected: Vec<(u64, u64)> = fault.iter().map(|(v, e)| (*v, u64::from(*e))).collect();
        assert_eq!(out.vectors(), expected, "{name}");
        if fault.is_none() {
            assert_eq!(out.state.seg[seg::ES].selector, selector, "{name}");
        }
    }
}

#[test]
fn ss_takes_only_a_stack_segment_of_the_current_ring() {
    let f = FREE_SELECTOR;
    let cases = [
        ("null in ring 3", 3, 0, Some((13, 0))),
        ("null in ring 0", 0, 0, None),
        ("null in ring 0 with RPL 3", 0, 3, Some((13, 0))),
        ("data", 3, USER_SS, None),
        ("read-only", 3, f | 3, Some((13, f))),
        ("code", 3, USER_CS, Some((13, USER_CS & !3))),
        ("data of an outer ring", 0, USER_SS, Some((13, USER_SS & !3))),
        ("absent", 3, (f + 16) | 3, Some((12, f + 16))),
    ];
    for (name, ring, selector, fault) in cases {
        let out = check(&load(ring, selector, |a| a.mov(ss, eax)));
        let expected: Vec<(u64, u64)> = fault.iter().map(|(v, e)| (*v, u64::from(*e))).collect();
        assert_eq!(out.vectors(), expected, "{name}");
    }
}

#[test]
fn fs_takes_the_base_and_the_descriptor_is_marked_accessed() {
    let out = check(&load(3, (FREE_SELECTOR + 32) | 3, |a| a.mov(fs, eax)));
    let loaded = out.state.seg[seg::FS];
    assert_eq!((loaded.base, loaded.limit, loaded.access), (0x50_4000, 0x1234, 0x40f3));
    let at = GDT + u64::from(FREE_SELECTOR) + 32;
    assert_eq!(out.word(at), 0x0040_f350_4000_1234);
    // A null selector clears the base.
    let out = check(&load(3, (FREE_SELECTOR + 32) | 3, |a| {
        a.mov(fs, eax)?;
        a.xor(eax, eax)?;
        a.mov(fs, eax)
    }));
    assert_eq!(out.state.seg[seg::FS].base, 0);
}

#[test]
fn segment_registers_move_push_and_pop() {
    let g = Guest::in_ring_3(|a| {
        a.mov(rbx, u64::MAX)?;
        a.mov(ebx, ds)?;
        a.mov(r8, u64::MAX)?;
        a.mov(r8w, ds)?;
        a.mov(r9, u64::MAX)?;
        a.mov(r9, ds)?;
        a.push(fs)?;
        a.pop(r10)?;
        a.push(0)?;
        a.pop(gs)?;
        a.mov(r11d, gs)?;
        a.db(&[0x66, 0x0f, 0xa0])?; // 16-bit PUSH FS
        a.mov(r12, rsp)?;
        a.db(&[0x66, 0x0f, 0xa9])?; // 16-bit POP GS
        a.mov(r13d, gs)?;
        a.mov(r14, USER + 0x800)?;
        a.mov(word_ptr(r14), cs)?;
        exit(a)
    });
    let out = check(&g);
    let s = &out.state;
    let ss_ = u64::from(USER_SS);
    assert_eq!((s.gpr[3], s.gpr[8], s.gpr[9]), (ss_, !0xffff | ss_, ss_));
    assert_eq!((s.gpr[10], s.gpr[11]), (ss_, 0));
    assert_eq!((s.gpr[12], s.gpr[13]), (USER_STACK - 2, ss_));
    assert_eq!(out.word(USER + 0x800), u64::from(USER_CS), "two bytes only");
    assert_eq!(out.word(RING0_STACK - 16), USER_STACK);
}

#[test]
fn far_pointers_load_a_segment_and_a_register() {
    let mut g = Guest::new();
    g.start_in_ring_3(USER);
    g.put(USER + 0x800, 0x1122_3344_5566_7788);
    g.put16(USER + 0x808, USER_SS);
    g.put(USER + 0x810, 0x5566_7788 | u64::from(USER_SS) << 32);
    g.put(USER + 0x820, 0x1234 | u64::from(KERNEL_SS) << 16);
    g.code(USER, |a| {
        a.mov(rdi, USER + 0x800)?;
        a.db(&[0x48, 0x0f, 0xb4, 0x1f])?; // LFS RBX, m16:64
        a.mov(rcx, u64::MAX)?;
        a.db(&[0x0f, 0xb5, 0x4f, 0x10])?; // LGS ECX, m16:32
        a.db(&[0x66, 0x0f, 0xb2, 0x57, 0x20]) // LSS DX, m16:16
    });
    let out = check(&g);
    assert_eq!(out.state.seg[seg::FS].selector, USER_SS);
    assert_eq!(out.state.seg[seg::GS].selector, USER_SS);
    assert_eq!(out.state.gpr[1], 0x5566_7788);
    assert_eq!(out.vectors(), [(13, u64::from(KERNEL_SS))]);
}

#[test]
fn lar_lsl_verr_and_verw_do_not_fault() {
    let f = FREE_SELECTOR;
    /// Selector, result of LAR, result of LSL, VERR, VERW. `None` if ZF is clear.
    type Case = (u16, Option<u64>, Option<u64>, bool, bool);
    let cases: [Case; 8] = [
        (0, None, None, false, false),
        (USER_SS, Some(0xc0_f300), Some(0xffff_ffff), true, true),
        (USER_CS, Some(0xa0_fb00), Some(0xffff_ffff), true, false),
        (KERNEL_SS, None, None, false, false),
        (f | 3, Some(0xc0_f100), Some(0xffff_ffff), true, false),
        ((f + 8) | 3, Some(0xa0_f900), Some(0xffff_ffff), false, false),
        (f + 24, Some(0x20_9f00), Some(0xffff), true, false),
        (0x1003, None, None, false, false),
    ];
    for (selector, rights, limit, readable, writable) in cases {
        let mut g = load(3, selector, |a| {
            a.mov(rbx, u64::MAX)?;
            a.mov(rcx, u64::MAX)?;
            a.lar(ebx, eax)?;
            a.sete(r8b)?;
            a.lsl(rcx, rax)?;
            a.sete(r9b)?;
            a.verr(ax)?;
            a.sete(r10b)?;
            a.verw(ax)?;
            a.sete(r11b)
        });
        g.descriptor(FREE_SELECTOR, DATA_READ_ONLY);
        let out = check(&g);
        let s = &out.state;
        assert!(out.log().is_empty());
        assert_eq!((s.gpr[8] == 1).then_some(s.gpr[3]), rights, "LAR {selector:#x}");
        assert_eq!((s.gpr[9] == 1).then_some(s.gpr[1]), limit, "LSL {selector:#x}");
        assert_eq!((s.gpr[10] == 1, s.gpr[11] == 1), (readable, writable), "VERR, VERW {selector:#x}");
        if rights.is_none() {
            assert_eq!((s.gpr[3], s.gpr[1]), (u64::MAX, u64::MAX), "nothing was written");
        }
    }
}

#[test]
fn a_system_descriptor_shows_its_type() {
    let out = check(&load(0, TSS_SELECTOR, |a| {
        a.lar(ebx, eax)?;
        a.lsl(ecx, eax)
    }));
    assert_eq!((out.state.gpr[3], out.state.gpr[1]), (0x8b00, 0x67));
}

#[test]
fn ltr_marks_its_tss_busy_and_refuses_a_busy_one() {
    let mut g = Guest::new();
    let low = 0x67 | (TSS & 0xff_ffff) << 16 | 0x89 << 40;
    g.descriptor(FREE_SELECTOR, low);
    g.descriptor(FREE_SELECTOR + 8, 0xffff_8000);
    g.code(CODE, |a| {
        a.mov(eax, i32::from(FREE_SELECTOR))?;
        a.ltr(ax)?;
        a.str(r12d)?;
        a.hlt()
    });
    let out = check(&g);
    assert!(out.log().is_empty());
    assert_eq!(out.state.tr.base, 0xffff_8000_0000_0000 | TSS);
    assert_eq!((out.state.tr.limit, out.state.tr.access), (0x67, 0x8b));
    assert_eq!(out.word(GDT + u64::from(FREE_SELECTOR)), low | 2 << 40);
    assert_eq!(out.state.gpr[12], u64::from(FREE_SELECTOR));
    let cases = [
        (low | 2 << 40, 0xffff_8000, (13, FREE_SELECTOR)),
        (low & ABSENT, 0xffff_8000, (11, FREE_SELECTOR)),
        (low, 0xffff_8000 | 1 << 40, (13, FREE_SELECTOR)),
        (KERNEL_DATA_DESCRIPTOR, 0, (13, FREE_SELECTOR)),
    ];
    for (low, high, (vector, error)) in cases {
        g.descriptor(FREE_SELECTOR, low);
        g.descriptor(FREE_SELECTOR + 8, high);
        assert_eq!(check(&g).vectors(), [(vector, u64::from(error))], "{low:#x} {high:#x}");
    }
}

#[test]
fn an_ldt_holds_descriptors_too() {
    let mut g = Guest::new();
    g.descriptor(LDT_SELECTOR, 15 | (DATA & 0xff_ffff) << 16 | 0x82 << 40);
    g.descriptor(LDT_SELECTOR + 8, 0);
    g.put(DATA + 8, 0x00cf_9312_3456_ffff);
    g.code(CODE, |a| {
        a.mov(eax, i32::from(LDT_SELECTOR))?;
        a.lldt(ax)?;
        a.sldt(r12d)?;
        a.mov(eax, 8 | 4)?;
        a.mov(gs, eax)?;
        a.mov(eax, 16 | 4)?;
        a.mov(gs, eax)
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[12], out.state.ldtr.base), (u64::from(LDT_SELECTOR), DATA));
    assert_eq!(out.state.seg[seg::GS].base, 0x12_3456);
    assert_eq!(out.vectors(), [(13, 16 | 4)], "beyond the LDT's limit");
    // If the LDTR is null, every selector of the LDT is invalid.
    g.code(CODE, |a| {
        a.xor(eax, eax)?;
        a.lldt(ax)?;
        a.mov(eax, 8 | 4)?;
        a.mov(gs, eax)
    });
    assert_eq!(check(&g).vectors(), [(13, 8 | 4)]);
}

#[test]
fn a_descriptor_on_a_missing_page_is_a_supervisor_page_fault() {
    let mut g = Guest::in_ring_3(|a| {
        a.mov(eax, 0x1003)?;
        a.mov(ds, eax)
    });
    g.state.gdtr.limit = 0xffff;
    // The descriptor of selector 0x1003 lies on the second page of the GDT. At GDT's usual address the page after the
    // GDT is mapped, so the test sets GDTR's base to ELSEWHERE, where it maps only the first page of the GDT.
    let at = g.entry(GDT + 0x1000, 1);
    let handler_page = g.word(at);
    assert_ne!(handler_page, 0);
    g.state.gdtr.base = ELSEWHERE;
    g.map(ELSEWHERE, GDT, P | W);
    let out = check(&g);
    assert_eq!(out.vectors(), [(14, 0)], "not a user access");
    assert_eq!(out.log()[0].cr2, ELSEWHERE + 0x1000);
}
