//! Delivery of exceptions and interrupts: gates, stacks, flags, error codes, double and triple faults.

use super::harness::{End, after_exception, check, check_every_count};
use super::image::*;
use everett_assembler::*;

#[test]
fn a_fault_in_ring_0_pushes_an_aligned_frame_with_rf() {
    let g = Guest::in_ring_0(|a| {
        survive(a, |a| {
            a.sub(rsp, 3)?;
            a.ud2()
        })?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!(out.end, End::Halt);
    let r = out.log()[0];
    assert_eq!((r.vector, r.error, r.cs, r.ss), (6, 0, u64::from(KERNEL_CS), u64::from(KERNEL_SS)));
    assert_eq!(r.rsp, STACK - 3);
    // The frame has five words: SS, RSP, RFLAGS, CS, RIP.
    assert_eq!(r.frame, ((STACK - 3) & !15) - 40);
    assert_eq!(r.rflags & RF, RF);
    assert_eq!(out.state.gpr[4], STACK - 3, "IRETQ restores RSP");
}

#[test]
fn a_fault_in_ring_3_changes_to_rsp0_and_a_null_ss() {
    let g = Guest::in_ring_3(|a| {
        a.xor(r15d, r15d)?;
        a.cli()
    });
    let out = check(&g);
    let r = out.log()[0];
    assert_eq!((r.vector, r.error, r.cs, r.ss), (13, 0, u64::from(USER_CS), u64::from(USER_SS)));
    assert_eq!((r.rip, r.rsp), (USER + 3, USER_STACK));
    assert_eq!(r.frame, RING0_STACK - 48 + 8);
    assert_eq!(out.state.seg[everett_cpu::state::seg::SS].selector, 0);
    assert_eq!(out.state.seg[everett_cpu::state::seg::CS].selector, KERNEL_CS);
}

#[test]
fn ist_replaces_the_stack_even_in_ring_0() {
    let mut g = Guest::new();
    g.on_ist1(6);
    g.code(CODE, |a| a.ud2());
    let out = check(&g);
    assert_eq!(out.log()[0].frame, IST1 - 40);
    assert_eq!(out.log()[0].rsp, STACK);
}

#[test]
fn interrupt_gates_clear_if_and_trap_gates_do_not() {
    for (access, stays) in [(0x8e, false), (0x8f, true)] {
        let mut g = Guest::new();
        g.gate(0x80, DATA, access, 0);
        g.code(DATA, |a| {
            flags_to_rbx(a)?;
            a.hlt()
        });
        g.code(CODE, |a| {
            a.push((IF | 1 << 14) as i32)?;
            a.popfq()?;
            a.int(0x80)
        });
        let out = check(&g);
        assert_eq!(out.state.gpr[3] & IF != 0, stays);
        assert_eq!(out.state.gpr[3] & (1 << 14), 0, "NT is cleared");
    }
}

#[test]
fn software_interrupts_need_the_gates_privilege() {
    let mut g = Guest::new();
    g.gate(0x80, stub(0x80), 0xee, 0);
    g.start_in_ring_3(USER);
    let mut after = 0;
    g.code(USER, |a| {
        a.int(0x80)?;
        survive(a, |a| a.int(0x81))?;
        a.int3()?;
        a.nop()
    });
    after += USER + 2;
    let out = check(&g);
    let log = out.log();
    assert_eq!(
        (log[0].vector, log[0].rip),
        (0x80, after),
        "the return address of INT n is that of the next instruction"
    );
    assert_eq!((log[1].vector, log[1].error), (13, 0x81 << 3 | 2));
    assert_eq!(log[1].rflags & RF, RF);
    assert_eq!((log[2].vector, log[2].error), (13, 3 << 3 | 2), "INT3 checks the gate too");
}

#[test]
fn faults_of_a_gate_carry_its_vector() {
    type Case = (&'static str, fn(&mut Guest), (u64, u64));
    let cases: [Case; 8] = [
        ("absent gate", |g| g.gate(0x40, stub(0), 0x0e, 0), (11, 0x40 << 3 | 2)),
        ("call gate", |g| g.gate(0x40, stub(0), 0x8c, 0), (13, 0x40 << 3 | 2)),
        ("limit", |g| g.state.idtr.limit = 0x40 * 16 + 14, (13, 0x40 << 3 | 2)),
        ("null selector", |g| g.gate_with(0x40, 3, stub(0), 0x8e, 0), (13, 0)),
        ("data", |g| g.gate_with(0x40, KERNEL_SS, stub(0), 0x8e, 0), (13, u64::from(KERNEL_SS))),
        (
            "absent code",
            |g| {
                g.descriptor(FREE_SELECTOR, KERNEL_CODE_DESCRIPTOR & !(1 << 47));
                g.gate_with(0x40, FREE_SELECTOR, stub(0), 0x8e, 0);
            },
            (11, FREE_SELECTOR as u64),
        ),
        (
            "32-bit code",
            |g| {
                g.descriptor(FREE_SELECTOR, 0x00cf_9b00_0000_ffff);
                g.gate_with(0x40, FREE_SELECTOR, stub(0), 0x8e, 0);
            },
            (13, FREE_SELECTOR as u64),
        ),
        ("not canonical", |g| g.gate(0x40, 0x8000_0000_0000, 0x8e, 0), (13, 0)),
    ];
    for (name, change, expected) in cases {
        for (external, ext) in [(false, 0), (true, 1)] {
            let mut g = Guest::new();
            change(&mut g);
            g.code(CODE, |a| {
                if external {
                    a.sti()?;
                    a.nop()?;
                    a.hlt()
                } else {
                    a.int(0x40)
                }
            });
            if external {
                g.interrupts.push((2, 0x40));
            }
            let out = check(&g);
            let (vector, error) = expected;
            assert_eq!(out.vectors(), [(vector, error | ext)], "{name}, EXT {ext}");
        }
    }
}

#[test]
fn an_outer_code_segment_cannot_be_entered() {
    let mut g = Guest::new();
    g.gate_with(0x40, USER_CS, USER, 0x8e, 0);
    g.code(CODE, |a| a.int(0x40));
    assert_eq!(check(&g).vectors(), [(13, u64::from(USER_CS & !3))]);
}

#[test]
fn a_stack_that_is_not_canonical_is_a_stack_fault() {
    let mut g = Guest::new();
    g.handler_stack(6, 0x9000_0000_0000);
    g.code(CODE, |a| a.ud2());
    // The delivery of #UD raises #SS. Because #UD is a benign exception, #SS replaces it and there is no double fault.
    // Bit EXT of the error code says that the fault occurred during a delivery.
    assert_eq!(check(&g).vectors(), [(12, 1)]);
}

#[test]
fn a_tss_that_is_too_short_is_an_invalid_tss() {
    let mut g = Guest::new();
    g.state.tr.limit = 0x2a;
    g.on_ist1(6);
    g.code(CODE, |a| a.ud2());
    assert_eq!(check(&g).vectors(), [(10, u64::from(TSS_SELECTOR) | 1)]);
}

#[test]
fn a_page_fault_during_a_page_fault_is_a_double_fault() {
    let mut g = Guest::new();
    g.handler_stack(14, ELSEWHERE + 0x1000);
    g.code(CODE, |a| {
        a.mov(rax, 0x7000_0000_0000u64)?;
        a.mov(qword_ptr(rax), rbx)
    });
    let out = check(&g);
    let r = out.log()[0];
    assert_eq!((r.vector, r.error), (8, 0));
    assert_eq!(r.cr2, ELSEWHERE + 0xff8, "CR2 has the second fault's address");
    assert_eq!(r.rip, CODE + 10, "RIP of the first faulting instruction");
}

#[test]
fn a_page_fault_during_the_delivery_of_an_exception_is_delivered_instead() {
    let mut g = Guest::new();
    g.handler_stack(13, ELSEWHERE + 0x1000);
    g.code(CODE, |a| {
        a.mov(rax, 0x8000_0000_0000u64)?;
        a.mov(qword_ptr(rax), rbx)
    });
    let out = check(&g);
    assert_eq!(out.vectors(), [(14, 2)]);
}

#[test]
fn contributory_exceptions_add_up_to_a_double_fault() {
    let mut g = Guest::new();
    g.gate(13, stub(0), 0x0e, 0);
    g.code(CODE, |a| {
        a.mov(rax, 0x8000_0000_0000u64)?;
        a.mov(qword_ptr(rax), rbx)
    });
    assert_eq!(check(&g).vectors(), [(8, 0)]);
}

#[test]
fn a_fault_of_the_double_fault_shuts_the_cpu_down() {
    let mut g = Guest::new();
    g.gate(13, stub(0), 0x0e, 0);
    g.gate(8, stub(0), 0x0e, 0);
    g.code(CODE, |a| {
        a.nop()?;
        a.mov(rax, 0x8000_0000_0000u64)?;
        a.mov(qword_ptr(rax), rbx)
    });
    let out = check(&g);
    assert_eq!(out.end, End::Shutdown);
    assert_eq!((out.state.icount, out.state.rip), (2, CODE + 11));
}

#[test]
fn no_idt_at_all_shuts_the_cpu_down() {
    let mut g = Guest::new();
    g.state.idtr.limit = 0;
    g.code(CODE, |a| a.ud2());
    assert_eq!(check(&g).end, End::Shutdown);
}

#[test]
fn a_handler_whose_first_instruction_faults_ends_the_run() {
    let mut g = Guest::new();
    g.gate(6, CODE, 0x8e, 1);
    g.code(CODE, |a| a.ud2());
    assert!(
        matches!(check(&g).end, End::Unsupported(reason) if reason.starts_with("exceptions without end"))
    );
}

#[test]
fn sti_holds_interrupts_off_for_one_instruction() {
    let mut g = Guest::in_ring_0(|a| {
        a.sti()?;
        a.nop()?;
        a.nop()?;
        a.cli()?;
        a.hlt()
    });
    g.interrupts.push((0, 0x50));
    let out = check(&g);
    assert_eq!(out.log()[0].rip, CODE + 2);
    assert_eq!(out.log()[0].rflags & (IF | RF), IF);
    assert_eq!(out.log().len(), 1);
}

#[test]
fn no_interrupt_is_delivered_between_sti_and_cli() {
    let mut g = Guest::in_ring_0(|a| {
        a.sti()?;
        a.cli()?;
        a.nop()?;
        a.hlt()
    });
    g.interrupts.push((0, 0x50));
    assert!(check(&g).log().is_empty());
}

#[test]
fn mov_ss_holds_interrupts_off_for_one_instruction() {
    let mut g = Guest::in_ring_0(|a| {
        a.sti()?;
        a.mov(eax, i32::from(KERNEL_SS))?;
        a.mov(ss, eax)?;
        a.nop()?;
        a.cli()?;
        a.hlt()
    });
    g.interrupts.push((3, 0x50));
    let out = check(&g);
    assert_eq!(out.log()[0].rip, CODE + 9);
}

#[test]
fn after_hlt_an_interrupt_returns_to_the_next_instruction() {
    let mut g = Guest::in_ring_0(|a| {
        a.sti()?;
        a.hlt()?;
        a.mov(ebx, 7)?;
        a.cli()?;
        a.hlt()
    });
    g.interrupts.push((1000, 0x50));
    let out = check(&g);
    assert_eq!(out.log()[0].rip, CODE + 2);
    assert_eq!(out.state.gpr[3], 7);
    assert!(out.state.halted);
}

#[test]
fn an_interrupt_comes_between_two_iterations_of_a_repeated_instruction() {
    let mut g = Guest::in_ring_0(|a| {
        a.sti()?;
        a.mov(rdi, DATA)?;
        a.mov(ecx, 100)?;
        a.mov(eax, 0x41)?;
        a.rep().stosb()?;
        a.cli()?;
        a.hlt()
    });
    g.interrupts.push((40, 0x50));
    let out = check(&g);
    let r = out.log()[0];
    assert_eq!(r.vector, 0x50);
    assert_eq!(
        &g.ram[r.rip as usize..r.rip as usize + 2],
        [0xf3, 0xaa],
        "RIP still points at the instruction"
    );
    assert!(out.ram[DATA as usize..DATA as usize + 100].iter().all(|b| *b == 0x41));
    assert_eq!(out.ram[DATA as usize + 100], 0);
    g.interrupts.clear();
    check_every_count(&g);
}

#[test]
fn an_exception_from_outside_is_delivered_as_the_cpu_s_own() {
    let mut g = Guest::new();
    g.start_in_ring_3(USER);
    g.state.cr2 = 0x1234_5678;
    let out = after_exception(&g, 14, Some(6));
    let r = out.log()[0];
    assert_eq!((r.vector, r.error, r.rip, r.cr2), (14, 6, USER, 0x1234_5678));
    assert_eq!((r.cs, r.rflags & RF), (u64::from(USER_CS), RF));
    assert_eq!(after_exception(&g, 6, None).log()[0].vector, 6);
}
