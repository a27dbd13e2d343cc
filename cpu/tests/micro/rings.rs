//! Transitions between rings: SYSCALL, SYSRET, SYSENTER, SYSEXIT, IRETQ, far calls and returns, call gates.

use everett_assembler::*;
use everett_cpu::state::seg;

use super::harness::{End, check};
use super::image::*;

#[test]
fn syscall_and_sysret_do_what_the_msrs_say() {
    let mut g = Guest::new();
    g.state.msrs.lstar = CODE;
    g.state.msrs.fmask = IF | 0x400;
    g.start_in_ring_3(USER);
    g.state.rflags |= IF;
    let mut after = 0;
    g.code(USER, |a| {
        a.std()?;
        a.stc()?;
        a.syscall()?;
        exit(a)
    });
    after += USER + 4;
    // SYSCALL leaves RSP unchanged, so PUSHFQ writes to the stack of ring 3.
    g.code(CODE, |a| {
        flags_to_rbx(a)?;
        a.mov(r8, rcx)?;
        a.mov(r9, r11)?;
        a.mov(r10d, cs)?;
        a.mov(r12d, ss)?;
        sysretq(a)
    });
    let out = check(&g);
    let s = &out.state;
    assert!(out.log().is_empty());
    assert_eq!((s.gpr[8], s.gpr[10], s.gpr[12]), (after, u64::from(KERNEL_CS), u64::from(KERNEL_SS)));
    assert_eq!(s.gpr[9] & 0x0001_0601, IF | 0x401);
    assert_eq!(s.gpr[3] & 0x0001_0601, 1);
    // Ring 3 entered the gate that ends the guest, so the gate pushed the selectors of ring 3.
    assert_eq!(out.word(RING0_STACK - 8), u64::from(USER_SS));
    assert_eq!(out.word(RING0_STACK - 32), u64::from(USER_CS));
    assert_eq!(out.word(RING0_STACK - 24) & 0x0001_0601, IF | 0x401, "SYSRET restores RFLAGS from R11");
}

#[test]
fn syscall_needs_sce_and_sysret_ring_0() {
    let mut g = Guest::in_ring_0(|a| {
        survive(a, |a| a.syscall())?;
        a.xor(r15, r15)?;
        sysretq(a)
    });
    g.state.efer &= !1;
    assert_eq!(check(&g).vectors(), [(6, 0), (6, 0)]);
    let g = Guest::in_ring_3(sysretq);
    assert_eq!(check(&g).vectors(), [(13, 0)]);
}

#[test]
fn sysret_checks_rcx_in_ring_0() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rcx, 0x8000_0000_0000u64)?;
        sysretq(a)
    });
    let out = check(&g);
    assert_eq!(out.vectors(), [(13, 0)]);
    assert_eq!(out.log()[0].cs, u64::from(KERNEL_CS));
}

#[test]
fn ways_into_32_bit_code_end_the_run() {
    type Way = fn(&mut Assembler) -> Result<(), Error>;
    let ways: [(&str, Way); 4] = [
        ("sysret", |a| a.db(&[0x0f, 0x07])),
        ("iretq", |a| {
            a.push(i32::from(USER_SS))?;
            a.push(0x1000)?;
            a.push(2)?;
            a.push(i32::from(USER_CS_32))?;
            a.push(0x1000)?;
            a.iretq()
        }),
        ("retf", |a| {
            a.push(i32::from(USER_SS))?;
            a.push(0x1000)?;
            a.push(i32::from(USER_CS_32))?;
            a.push(0x1000)?;
            a.db(&[0x48, 0xcb])
        }),
        ("jmp far", |a| {
            a.mov(rax, DATA)?;
            a.db(&[0xff, 0x28])
        }),
    ];
    for (name, way) in ways {
        let mut g = Guest::new();
        g.put(DATA, 0x1000 | u64::from(FREE_SELECTOR) << 32);
        g.descriptor(FREE_SELECTOR, 0x00cf_9b00_0000_ffff);
        g.code(CODE, way);
        assert_eq!(check(&g).end, End::Unsupported("32-bit code"), "{name}");
    }
}

#[test]
fn sysenter_and_sysexit_do_what_the_msrs_say() {
    let mut g = Guest::new();
    // SYSEXIT sets CS and SS to SYSENTER_CS plus 32 and plus 40. It does not read the descriptors, so SS need not be a
    // stack segment.
    g.state.msrs.sysenter_cs = u64::from(KERNEL_CS);
    g.state.msrs.sysenter_esp = STACK;
    g.state.msrs.sysenter_eip = CODE;
    g.start_in_ring_3(USER);
    g.state.rflags |= IF;
    g.code(USER, |a| {
        a.lea(r8, qword_ptr(USER + 0x100))?;
        a.sysenter()
    });
    g.code(USER + 0x100, |a| {
        a.mov(r10d, cs)?;
        a.mov(r12d, ss)?;
        exit(a)
    });
    g.code(CODE, |a| {
        a.mov(rbx, rsp)?;
        a.pushfq()?;
        a.pop(rax)?;
        a.mov(rdx, r8)?;
        a.mov(rcx, USER_STACK - 64)?;
        a.db(&[0x48, 0x0f, 0x35])
    });
    let out = check(&g);
    assert!(out.log().is_empty());
    assert_eq!((out.state.gpr[3], out.state.gpr[0] & IF), (STACK, 0));
    let base = u64::from(KERNEL_CS);
    assert_eq!((out.state.gpr[10], out.state.gpr[12]), ((base + 32) | 3, (base + 40) | 3));
    assert_eq!(out.word(RING0_STACK - 16), USER_STACK - 64);
}

#[test]
fn sysenter_without_a_segment_faults() {
    let g = Guest::in_ring_0(|a| a.sysenter());
    assert_eq!(check(&g).vectors(), [(13, 0)]);
}

/// Emits code that pushes the words of a frame. Uses RAX.
fn push_all(a: &mut Assembler, frame: [u64; 5]) -> Result<(), Error> {
    for word in frame {
        a.mov(rax, word)?;
        a.push(rax)?;
    }
    Ok(())
}

/// Returns a guest that pushes a frame and executes IRETQ. The frame's words, from the highest address down, are SS,
/// RSP, RFLAGS, CS and RIP.
fn iretq(frame: [u64; 5]) -> Guest {
    let mut g = Guest::in_ring_0(|a| {
        push_all(a, frame)?;
        a.iretq()
    });
    g.code(USER, |a| {
        flags_to_rbx(a)?;
        exit(a)
    });
    g.code(CODE + 0x800, |a| {
        flags_to_rbx(a)?;
        a.hlt()
    });
    g
}

const INNER: u64 = CODE + 0x800;

#[test]
fn iretq_to_ring_3_loads_all_and_clears_segments_of_inner_rings() {
    let mut g = iretq([u64::from(USER_SS), USER_STACK, IF | AC | 0x3001, u64::from(USER_CS), USER]);
    g.state.seg[seg::FS].base = 0x1234_5000;
    let out = check(&g);
    let s = &out.state;
    assert_eq!(s.gpr[3] & (IF | AC | 0x3001), IF | AC | 0x3001);
    for which in [seg::DS, seg::ES, seg::FS, seg::GS] {
        assert_eq!(s.seg[which].selector, 0);
        assert!(!s.seg[which].present());
    }
    assert_eq!(s.seg[seg::FS].base, 0x1234_5000, "a cleared segment keeps its base");
    assert_eq!(out.word(RING0_STACK - 16), USER_STACK);
}

#[test]
fn iretq_in_ring_0_pops_the_stack_and_may_leave_ss_null() {
    let out = check(&iretq([0, STACK - 0x403, 2, u64::from(KERNEL_CS), INNER]));
    assert_eq!((out.end.clone(), out.state.gpr[4]), (End::Halt, STACK - 0x403));
    assert!(out.log().is_empty());
    assert_eq!(out.state.seg[seg::SS].selector, 0);
}

#[test]
fn iretq_checks_what_it_pops() {
    let (kcs, kss) = (u64::from(KERNEL_CS), u64::from(KERNEL_SS));
    let (ucs, uss) = (u64::from(USER_CS), u64::from(USER_SS));
    let free = u64::from(FREE_SELECTOR);
    let cases = [
        ("null CS", [kss, STACK, 2, 0, INNER], (13, 0)),
        ("CS beyond the table", [kss, STACK, 2, 0xfff8, INNER], (13, 0xfff8)),
        ("CS is data", [kss, STACK, 2, kss, INNER], (13, kss)),
        ("DPL is not RPL", [uss, STACK, 2, kcs | 3, INNER], (13, kcs)),
        ("absent CS", [kss, STACK, 2, free, INNER], (11, free)),
        ("CS with L and D", [kss, STACK, 2, free + 8, INNER], (13, free + 8)),
        ("null SS for ring 3", [0, STACK, 2, ucs, USER], (13, 0)),
        ("SS of another ring", [kss, STACK, 2, ucs, USER], (13, kss)),
        ("SS is read-only", [free + 16, STACK, 2, kcs, INNER], (13, free + 16)),
        ("absent SS", [free + 24, STACK, 2, kcs, INNER], (12, free + 24)),
        ("RIP is not canonical", [uss, STACK, 2, ucs, 0x8000_0000_0000], (13, 0)),
    ];
    for (name, frame, expected) in cases {
        let mut g = iretq(frame);
        g.descriptor(FREE_SELECTOR, KERNEL_CODE_DESCRIPTOR & !(1 << 47));
        g.descriptor(FREE_SELECTOR + 8, KERNEL_CODE_DESCRIPTOR | 1 << 54);
        g.descriptor(FREE_SELECTOR + 16, KERNEL_DATA_DESCRIPTOR & !(1 << 41));
        g.descriptor(FREE_SELECTOR + 24, KERNEL_DATA_DESCRIPTOR & !(1 << 47));
        let out = check(&g);
        assert_eq!(out.vectors(), [expected], "{name}");
        assert_eq!(out.log()[0].rsp, STACK - 40, "{name}: RSP is unchanged");
    }
}

#[test]
fn iretq_to_an_inner_ring_or_with_nt_faults() {
    let g = Guest::in_ring_3(|a| {
        push_all(a, [KERNEL_SS.into(), USER_STACK, 2, KERNEL_CS.into(), USER])?;
        a.iretq()
    });
    assert_eq!(check(&g).vectors(), [(13, u64::from(KERNEL_CS))]);
    let mut g = iretq([u64::from(KERNEL_SS), STACK, 2, u64::from(KERNEL_CS), INNER]);
    g.state.rflags |= 1 << 14;
    assert_eq!(check(&g).vectors(), [(13, 0)]);
}

#[test]
fn iretq_in_ring_3_keeps_if_and_iopl() {
    let mut g = Guest::in_ring_3(|a| {
        push_all(a, [USER_SS.into(), USER_STACK, IF | 0x3002 | 1, USER_CS.into(), USER + 0x100])?;
        a.iretq()
    });
    g.code(USER + 0x100, |a| {
        flags_to_rbx(a)?;
        exit(a)
    });
    assert_eq!(check(&g).state.gpr[3] & (IF | 0x3001), 1);
}

#[test]
fn iretd_and_iretw_pop_narrow_frames() {
    for (size, opcode) in [(4u64, &[0xcf][..]), (2, &[0x66, 0xcf][..])] {
        let mut g = Guest::new();
        // A 16-bit RIP only reaches the first 64 KiB.
        let target = 0x7e00;
        g.code(target, |a| a.hlt());
        let frame = [target, u64::from(KERNEL_CS), 0x0003, 0x7000, u64::from(KERNEL_SS)];
        for (i, word) in frame.iter().enumerate() {
            g.bytes(STACK + size * i as u64, &word.to_le_bytes()[..size as usize]);
        }
        g.code(CODE, |a| a.db(opcode));
        let out = check(&g);
        assert_eq!((out.end.clone(), out.state.rip), (End::Halt, target + 1), "size {size}");
        assert_eq!((out.state.gpr[4], out.state.rflags), (0x7000, 3));
    }
}

#[test]
fn far_returns_go_to_the_same_ring_or_outward() {
    let mut g = Guest::in_ring_0(|a| {
        let same = a.create_label();
        a.push(i32::from(KERNEL_CS))?;
        a.lea(rax, ptr(same))?;
        a.push(rax)?;
        a.db(&[0x48, 0xcb])?; // RETFQ
        a.set_label(same)?;
        a.mov(rbx, rsp)?;
        // Returns to ring 3, and releases 16 bytes on both stacks.
        a.push(i32::from(USER_SS))?;
        a.mov(rax, USER_STACK - 0x100)?;
        a.push(rax)?;
        a.sub(rsp, 16)?;
        a.push(i32::from(USER_CS))?;
        a.mov(rax, USER)?;
        a.push(rax)?;
        a.db(&[0x48, 0xca, 16, 0]) // RETFQ 16
    });
    g.code(USER, |a| {
        a.mov(rcx, rsp)?;
        exit(a)
    });
    let out = check(&g);
    assert!(out.log().is_empty());
    assert_eq!((out.state.gpr[3], out.state.gpr[1]), (STACK, USER_STACK - 0x100 + 16));
}

#[test]
fn far_calls_and_jumps_stay_in_their_ring() {
    let mut g = Guest::new();
    g.put(DATA, CODE + 0x800);
    g.put16(DATA + 8, KERNEL_CS);
    g.put(DATA + 0x10, CODE + 0x900);
    g.put16(DATA + 0x18, KERNEL_CS);
    g.put(DATA + 0x20, CODE);
    g.put16(DATA + 0x28, USER_CS);
    g.code(CODE, |a| {
        a.mov(rdi, DATA)?;
        a.db(&[0x48, 0xff, 0x1f])?; // CALL m16:64 [rdi]
        a.db(&[0x48, 0xff, 0x6f, 0x10]) // JMP m16:64 [rdi+10h]
    });
    g.code(CODE + 0x800, |a| {
        a.mov(r8, qword_ptr(rsp))?;
        a.mov(r9, qword_ptr(rsp + 8))?;
        a.db(&[0x48, 0xcb])
    });
    g.code(CODE + 0x900, |a| a.db(&[0x48, 0xff, 0x6f, 0x20]));
    let out = check(&g);
    let returned = g.ram[CODE as usize..].windows(3).position(|w| w == [0x48, 0xff, 0x1f]);
    let after_call = CODE + returned.expect("the code has the call") as u64 + 3;
    assert_eq!((out.state.gpr[8], out.state.gpr[9]), (after_call, u64::from(KERNEL_CS)));
    assert_eq!(out.vectors(), [(13, u64::from(USER_CS & !3))], "a jump outward is refused");
}

#[test]
fn a_call_gate_leads_to_an_inner_ring_on_rsp0_and_back() {
    let mut g = Guest::new();
    let target = CODE;
    let gate = FREE_SELECTOR;
    g.descriptor(
        gate,
        target & 0xffff | u64::from(KERNEL_CS) << 16 | 0xec << 40 | (target >> 16 & 0xffff) << 48,
    );
    g.descriptor(gate + 8, target >> 32);
    g.put16(USER + 0x808, gate | 3);
    g.start_in_ring_3(USER);
    g.code(USER, |a| {
        a.mov(rdi, USER + 0x800)?;
        a.db(&[0x48, 0xff, 0x1f])?;
        a.mov(r10d, cs)?;
        a.mov(r11, rsp)?;
        exit(a)
    });
    g.code(CODE, |a| {
        a.mov(rbx, rsp)?;
        a.mov(ecx, cs)?;
        a.db(&[0x48, 0xcb])
    });
    let out = check(&g);
    let s = &out.state;
    assert!(out.log().is_empty());
    assert_eq!((s.gpr[3], s.gpr[1]), (RING0_STACK - 32, u64::from(KERNEL_CS)));
    assert_eq!((s.gpr[10], s.gpr[11]), (u64::from(USER_CS), USER_STACK));
    // Ring 3 may not use a gate with DPL 0.
    g.descriptor(gate, g.word(GDT + u64::from(gate)) & !(3 << 45));
    assert_eq!(check(&g).vectors(), [(13, u64::from(gate))]);
}

#[test]
fn swapgs_exchanges_the_bases() {
    let mut g = Guest::new();
    g.state.seg[seg::GS].base = DATA;
    g.state.msrs.kernel_gs_base = DATA + 0x100;
    g.put(DATA, 1);
    g.put(DATA + 0x100, 2);
    g.code(CODE, |a| {
        a.mov(rax, qword_ptr(0).gs())?;
        a.swapgs()?;
        a.mov(rbx, qword_ptr(0).gs())?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[0], out.state.gpr[3]), (1, 2));
    assert_eq!((out.state.seg[seg::GS].base, out.state.msrs.kernel_gs_base), (DATA + 0x100, DATA));
}
