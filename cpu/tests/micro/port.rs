//! Accesses to ports and to memory that is not RAM. The CPU makes each request exactly once, and uses its answer
//! correctly.

use everett_assembler::*;
use everett_cpu::Request::{self, MmioRead, MmioWrite, PioRead, PioWrite};

use super::harness::{check, check_every_count};
use super::image::*;

/// A guest-physical address outside of RAM.
const DEVICE: u64 = 0xfec0_0000;

/// Returns the harness's answer to request `n`, counted from one.
fn answer(n: usize) -> u64 {
    Guest::new().answer(n)
}

#[test]
fn in_merges_by_width_and_out_truncates() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rax, u64::MAX)?;
        a.in_(al, 0x60)?;
        a.mov(r8, rax)?;
        a.mov(edx, 0x3f8)?;
        a.mov(rax, u64::MAX)?;
        a.in_(ax, dx)?;
        a.mov(r9, rax)?;
        a.mov(rax, u64::MAX)?;
        a.in_(eax, dx)?;
        a.mov(r10, rax)?;
        a.mov(rax, 0x1234_5678_9abc_def0u64)?;
        a.out(0x80, al)?;
        a.out(dx, ax)?;
        a.out(dx, eax)?;
        a.hlt()
    });
    let out = check(&g);
    let s = &out.state;
    assert_eq!(s.gpr[8], u64::MAX << 8 | answer(1) & 0xff);
    assert_eq!(s.gpr[9], u64::MAX << 16 | answer(2) & 0xffff);
    assert_eq!(s.gpr[10], answer(3) & 0xffff_ffff);
    assert_eq!(
        out.requests,
        [
            PioRead { port: 0x60, size: 1 },
            PioRead { port: 0x3f8, size: 2 },
            PioRead { port: 0x3f8, size: 4 },
            PioWrite { port: 0x80, size: 1, value: 0xf0 },
            PioWrite { port: 0x3f8, size: 2, value: 0xdef0 },
            PioWrite { port: 0x3f8, size: 4, value: 0x9abc_def0 },
        ]
    );
}

#[test]
fn the_io_bitmap_and_iopl_decide_in_ring_3() {
    // Ring 3 may access ports 0x70-0x73. The I/O permission map starts after the TSS.
    let cases = [
        ("byte inside", 0x70, 1, 0, 0x200, true),
        ("dword inside", 0x70, 4, 0, 0x200, true),
        ("dword partly outside", 0x71, 4, 0, 0x200, false),
        ("outside", 0x74, 1, 0, 0x200, false),
        ("IOPL 3", 0x74, 1, 3, 0x200, true),
        ("map beyond the limit", 0x70, 1, 0, 0x68 + 0x0e, false),
        ("just inside the limit", 0x70, 1, 0, 0x68 + 0x0f, true),
    ];
    for (name, port, size, iopl, limit, allowed) in cases {
        let mut g = Guest::new();
        g.start_in_ring_3(USER);
        g.state.rflags |= iopl << 12;
        g.state.tr.limit = limit;
        for byte in 0..0x80 {
            g.bytes(TSS + 0x68 + byte, &[0xff]);
        }
        g.bytes(TSS + 0x68 + 0x0e, &[0xf0]);
        g.code(USER, |a| {
            a.mov(edx, port)?;
            if size == 1 {
                a.in_(al, dx)?
            } else {
                a.in_(eax, dx)?
            }
            exit(a)
        });
        let out = check(&g);
        let expected = fault_if(!allowed, (13, 0));
        assert_eq!(out.vectors(), expected, "{name}");
        assert_eq!(out.requests.len(), usize::from(allowed), "{name}");
    }
}

#[test]
fn ins_and_outs_repeat_and_move_their_index() {
    let mut g = Guest::new();
    g.bytes(DATA, b"0123456789");
    g.code(CODE, |a| {
        a.mov(edx, 0x1f0)?;
        a.mov(rsi, DATA)?;
        a.mov(ecx, 3)?;
        a.rep().outsw()?;
        a.mov(rdi, DATA + 0x100)?;
        a.mov(ecx, 2)?;
        a.rep().insd()?;
        a.std()?;
        a.insb()?;
        a.xor(ecx, ecx)?;
        a.rep().insb()?;
        a.hlt()
    });
    let out = check(&g);
    let w = |text: &[u8; 2]| u32::from(u16::from_le_bytes(*text));
    assert_eq!(
        out.requests,
        [
            PioWrite { port: 0x1f0, size: 2, value: w(b"01") },
            PioWrite { port: 0x1f0, size: 2, value: w(b"23") },
            PioWrite { port: 0x1f0, size: 2, value: w(b"45") },
            PioRead { port: 0x1f0, size: 4 },
            PioRead { port: 0x1f0, size: 4 },
            PioRead { port: 0x1f0, size: 1 },
        ]
    );
    assert_eq!(out.word(DATA + 0x100) & 0xffff_ffff, answer(4) & 0xffff_ffff);
    assert_eq!(out.word(DATA + 0x100) >> 32, answer(5) & 0xffff_ffff);
    assert_eq!(out.word(DATA + 0x108), answer(6) & 0xff);
    assert_eq!((out.state.gpr[6], out.state.gpr[7]), (DATA + 6, DATA + 0x107));
    assert_eq!(out.state.icount, 3 + 3 + 2 + 2 + 1 + 1 + 1 + 1 + 1, "each iteration counts");
}

#[test]
fn ins_checks_memory_before_it_reads_the_port() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rdi, ELSEWHERE)?;
        a.insb()
    });
    let out = check(&g);
    assert_eq!((out.vectors(), out.requests), (vec![(14, 2)], vec![]));
}

#[test]
fn instructions_with_device_operands_run_once() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DEVICE, P | W);
    g.put(DATA, 0x1111_2222_3333_4444);
    g.code(CODE, |a| {
        a.mov(rdi, ELSEWHERE)?;
        a.mov(rsi, DATA)?;
        a.mov(ebx, dword_ptr(rdi))?;
        a.mov(dword_ptr(rdi + 4), ebx)?;
        a.add(dword_ptr(rdi + 8), 1)?; // reads and writes
        a.inc(ecx)?;
        a.movsq()?; // from RAM
        a.push(qword_ptr(rdi))?;
        a.hlt()
    });
    let out = check(&g);
    let low = |v: u64| v & 0xffff_ffff;
    assert_eq!(
        out.requests,
        [
            MmioRead { gpa: DEVICE, size: 4 },
            MmioWrite { gpa: DEVICE + 4, size: 4, value: low(answer(1)) },
            MmioRead { gpa: DEVICE + 8, size: 4 },
            MmioWrite { gpa: DEVICE + 8, size: 4, value: low(answer(3).wrapping_add(1)) },
            MmioWrite { gpa: DEVICE, size: 8, value: 0x1111_2222_3333_4444 },
            MmioRead { gpa: DEVICE + 8, size: 8 },
        ]
    );
    assert_eq!((out.state.gpr[1], out.state.icount), (1, 9));
    assert_eq!(out.word(STACK - 8), answer(6));
}

#[test]
fn repeated_string_instructions_reach_devices_one_by_one() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DEVICE, P | W);
    g.bytes(DATA, b"abcd");
    g.code(CODE, |a| {
        a.mov(rdi, ELSEWHERE)?;
        a.mov(rsi, DATA)?;
        a.mov(ecx, 4)?;
        a.rep().movsb()?;
        a.hlt()
    });
    let out = check(&g);
    let expected: Vec<Request> = (0..4)
        .map(|i| MmioWrite { gpa: DEVICE + i, size: 1, value: u64::from(b"abcd"[i as usize]) })
        .collect();
    assert_eq!((out.requests, out.state.icount), (expected, 3 + 4 + 1));
}

#[test]
fn an_access_can_be_half_in_ram_and_half_in_a_device() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P | W);
    g.map(ELSEWHERE + 0x1000, DEVICE, P | W);
    g.put(DATA + 0xff8, 0x8877_6655_4433_2211);
    g.code(CODE, |a| {
        a.mov(rdi, ELSEWHERE + 0xffc)?;
        a.mov(rbx, qword_ptr(rdi))?;
        a.mov(qword_ptr(rdi), rbx)?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!(out.state.gpr[3], 0x8877_6655 | answer(1) << 32);
    assert_eq!(out.requests[1], MmioWrite { gpa: DEVICE, size: 4, value: answer(1) & 0xffff_ffff });
}

#[test]
fn cr8_is_the_apics_task_priority() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rbx, cr8)?;
        a.mov(eax, 9)?;
        a.mov(cr8, rax)?;
        a.mov(eax, 16)?;
        a.mov(cr8, rax)
    });
    let out = check(&g);
    assert_eq!(
        out.requests,
        [MmioRead { gpa: 0xfee0_0080, size: 4 }, MmioWrite { gpa: 0xfee0_0080, size: 4, value: 0x90 }]
    );
    assert_eq!(out.vectors(), [(13, 0)]);
}

#[test]
fn delivery_through_a_device_ends_the_run() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DEVICE, P | W);
    g.handler_stack(6, ELSEWHERE + 0x1000);
    g.code(CODE, |a| a.ud2());
    let out = check(&g);
    assert!(matches!(out.end, super::harness::End::Unsupported(reason) if reason.contains("not RAM")));
}

#[test]
fn execution_from_a_device_ends_the_run() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DEVICE, P);
    g.code(CODE, |a| {
        a.mov(rax, ELSEWHERE)?;
        a.jmp(rax)
    });
    assert!(matches!(check(&g).end, super::harness::End::Unsupported(_)));
}

#[test]
fn stops_around_repeated_instructions_are_exact() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rdi, DATA)?;
        a.mov(ecx, 40)?;
        a.rep().stosq()?;
        a.mov(rdi, DATA)?;
        a.mov(ecx, 40)?;
        a.mov(eax, 1)?;
        a.repne().scasb()?;
        a.hlt()
    });
    check_every_count(&g);
}
