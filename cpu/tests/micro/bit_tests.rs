//! Bit tests and rotations, which change only CF, or only CF and OF. The guest reads all flags after each of them.

use super::arithmetic::check_forms;
use super::harness::{check, check_every_count};
use super::image::*;
use everett_assembler::*;

#[test]
fn bit_tests_keep_the_other_flags() {
    check_forms(&[
        // bt eax, ebx; bts rax, rbx; btr ax, bx; btc r11, rax; bts rdx, rdx; btr r11d, ecx.
        &[0x0f, 0xa3, 0xd8],
        &[0x48, 0x0f, 0xab, 0xd8],
        &[0x66, 0x0f, 0xb3, 0xd8],
        &[0x49, 0x0f, 0xbb, 0xc3],
        &[0x48, 0x0f, 0xab, 0xd2],
        &[0x41, 0x0f, 0xb3, 0xcb],
        // bt rax, 63; bts eax, 33; btr r11, 7; btc bx, 20; bt edx, 0.
        &[0x48, 0x0f, 0xba, 0xe0, 63],
        &[0x0f, 0xba, 0xe8, 33],
        &[0x49, 0x0f, 0xba, 0xf3, 7],
        &[0x66, 0x0f, 0xba, 0xfb, 20],
        &[0x0f, 0xba, 0xe2, 0],
        // bt dword [rsi], 7; bts qword [rsi], 63; lock btr dword [rsi+4], 40; btc word [rsi], 3.
        &[0x0f, 0xba, 0x26, 7],
        &[0x48, 0x0f, 0xba, 0x2e, 63],
        &[0xf0, 0x0f, 0xba, 0x76, 4, 40],
        &[0x66, 0x0f, 0xba, 0x3e, 3],
    ]);
    // A register selects bits before and after the operand in memory: movsx rbx, bl comes first.
    const EXTEND: [u8; 4] = [0x48, 0x0f, 0xbe, 0xdb];
    let near: [&[u8]; 6] = [
        // bt [rsi], ebx; bts [rsi], rbx; lock btr [rsi], ebx; btc [rsi+rbx], rbx; bt [rsi], bx; bts gs:[rsi], rbx.
        &[0x0f, 0xa3, 0x1e],
        &[0x48, 0x0f, 0xab, 0x1e],
        &[0xf0, 0x0f, 0xb3, 0x1e],
        &[0x48, 0x0f, 0xbb, 0x1c, 0x1e],
        &[0x66, 0x0f, 0xa3, 0x1e],
        &[0x65, 0x48, 0x0f, 0xab, 0x1e],
    ];
    let near = near.map(|form| [&EXTEND, form].concat());
    check_forms(&near.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

#[test]
fn rotations_keep_the_other_flags() {
    check_forms(&[
        // rol eax, 1; rol al, 3; ror bl, 8; rol ax, 8; ror dx, 16; rol rax, 63; ror r11d, 31.
        &[0xd1, 0xc0],
        &[0xc0, 0xc0, 3],
        &[0xc0, 0xcb, 8],
        &[0x66, 0xc1, 0xc0, 8],
        &[0x66, 0xc1, 0xca, 16],
        &[0x48, 0xc1, 0xc0, 63],
        &[0x41, 0xc1, 0xcb, 31],
        // ror rbx, 1; ror eax, 33; rol r11, 64; rol ah, 3; ror dword [rsi], 5.
        &[0x48, 0xd1, 0xcb],
        &[0xc1, 0xc8, 33],
        &[0x49, 0xc1, 0xc3, 64],
        &[0xc0, 0xc4, 3],
        &[0xc1, 0x0e, 5],
        // rol eax, cl; ror rbx, cl; rol dl, cl; ror ax, cl; rol ecx, cl; ror r11d, cl; rol bh, cl.
        &[0xd3, 0xc0],
        &[0x48, 0xd3, 0xcb],
        &[0xd2, 0xc2],
        &[0x66, 0xd3, 0xc8],
        &[0xd3, 0xc1],
        &[0x41, 0xd3, 0xcb],
        &[0xd2, 0xc7],
    ]);
}

/// The flags of several instructions meet: each keeps some that an earlier one has left.
#[test]
fn partial_changes_of_flags_follow_each_other() {
    check_forms(&[
        // rol eax, 3; bt ebx, 2. bt eax, 2; ror rbx, 5. bt eax, 1; bt ebx, 2. rol eax, 1; ror ebx, cl.
        &[0xc1, 0xc0, 3, 0x0f, 0xba, 0xe3, 2],
        &[0x0f, 0xba, 0xe0, 2, 0x48, 0xc1, 0xcb, 5],
        &[0x0f, 0xba, 0xe0, 1, 0x0f, 0xba, 0xe3, 2],
        &[0xd1, 0xc0, 0xd3, 0xcb],
        // bt eax, 2; inc ebx. rol eax, 3; dec rdx. bts eax, 4; adc rbx, rax. rol eax, 2; shl ebx, cl.
        &[0x0f, 0xba, 0xe0, 2, 0xff, 0xc3],
        &[0xc1, 0xc0, 3, 0x48, 0xff, 0xca],
        &[0x0f, 0xba, 0xe8, 4, 0x48, 0x11, 0xc3],
        &[0xc1, 0xc0, 2, 0xd3, 0xe3],
        // sub eax, ebx; rol edx, 7; setle al. test eax, ebx; bt edx, 3; setz al. imul eax, ebx; bt edx, 3; seto al.
        &[0x29, 0xd8, 0xc1, 0xc2, 7, 0x0f, 0x9e, 0xc0],
        &[0x85, 0xd8, 0x0f, 0xba, 0xe2, 3, 0x0f, 0x94, 0xc0],
        &[0x0f, 0xaf, 0xc3, 0x0f, 0xba, 0xe2, 3, 0x0f, 0x90, 0xc0],
        // bt edx, 3; mov rax, [rsi]; inc ebx. rol edx, 3; mov rax, [rsi]; adc eax, ebx. bt edx, 3; rcl eax, 1.
        &[0x0f, 0xba, 0xe2, 3, 0x48, 0x8b, 0x06, 0xff, 0xc3],
        &[0xc1, 0xc2, 3, 0x48, 0x8b, 0x06, 0x11, 0xd8],
        &[0x0f, 0xba, 0xe2, 3, 0xd1, 0xd0],
        // rol edx, 3; cmp eax, ebx. bt edx, 3; add eax, ebx.
        &[0xc1, 0xc2, 3, 0x39, 0xd8],
        &[0x0f, 0xba, 0xe2, 3, 0x01, 0xd8],
    ]);
}

/// BTS and BT select bits at all distances from the end of a page, and from an unmapped page. If they fault, the flags
/// are those of the operation before them.
#[test]
fn bit_tests_cross_pages_or_fault() {
    let mut g = Guest::new();
    // The two pages are adjacent in linear memory, but not in RAM. The third page is read-only.
    g.map(ELSEWHERE + 0x1000, DATA, P | W);
    g.map(ELSEWHERE + 0x2000, DATA + 0x3000, P | W);
    g.map(ELSEWHERE + 0x3000, DATA + 0x4000, P);
    g.state.cr0 |= 1 << 16;
    g.code(CODE, |a| {
        for end in [ELSEWHERE + 0x1000, ELSEWHERE + 0x2000, ELSEWHERE + 0x3000, ELSEWHERE + 0x4000] {
            a.mov(rdx, end)?;
            repeat(a, 40, |a| {
                // RAX is the number of a bit from 160 before the end to 160 after it.
                a.lea(rax, ptr(rcx * 8 - 160))?;
                survive(a, |a| {
                    a.cmp(rcx, 20)?;
                    a.bts(qword_ptr(rdx), rax)?;
                    a.adc(r10, rcx)
                })?;
                survive(a, |a| {
                    a.cmp(rcx, 20)?;
                    a.btr(dword_ptr(rdx - 4), 5)?;
                    a.adc(r10, rcx)
                })?;
                survive(a, |a| {
                    a.bt(dword_ptr(rdx - 3), eax)?;
                    a.rcl(r11, 1)
                })?;
                a.sete(bl)?;
                a.add(r12, rbx)
            })?;
        }
        a.hlt()
    });
    let done = check(&g);
    assert!(!done.vectors().is_empty());
    assert!(done.vectors().iter().all(|(vector, _)| *vector == 14));
    assert_ne!(done.state.gpr[10], 0);
}

/// The run can stop before and after every instruction.
#[test]
fn bit_tests_and_rotations_stop_anywhere() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rsi, DATA)?;
        repeat_at_random(a, 7, 20, |a| {
            a.add(rax, rcx)?;
            a.rol(rax, 9)?;
            a.adc(rbx, rax)?;
            a.bts(qword_ptr(rsi), rcx)?;
            a.setc(dl)?;
            a.ror(edx, cl)?;
            a.cmovl(r10, rax)?;
            a.btc(ebx, 11)?;
            a.rcl(r11, 1)?;
            a.xor(r12, r11)
        })?;
        a.hlt()
    });
    check(&g);
    check_every_count(&g);
}
