//! Tests that the CPU counts retired conditional branches exactly.

use super::harness::check;
use super::image::*;

/// Returns the number of conditional branches that a guest retires. Checks that interpreted and translated code count
/// the same number.
fn counted(guest: &Guest) -> u64 {
    check(guest).branches.expect("branches are counted")
}

#[test]
fn conditional_branches_count_once_taken_or_not() {
    let g = Guest::in_ring_0(|a| {
        a.db(&[0xb9, 100, 0, 0, 0])?; // 00: mov ecx, 100
        a.db(&[0xff, 0xc9, 0x75, 0xfc])?; // 05: dec ecx; 07: jnz 05, a hundred times
        a.db(&[0x74, 0, 0x75, 0])?; // 09: jz 0b; 0b: jnz 0d
        a.db(&[0x0f, 0x84, 0, 0, 0, 0])?; // 0d: jz 13
        a.db(&[0xb1, 7, 0xe2, 0xfe])?; // 13: mov cl, 7; 15: loop 15, seven times
        a.db(&[0xb1, 3, 0x31, 0xc0, 0xe1, 0xfe])?; // 17: mov cl, 3; xor eax, eax; loope, three times
        a.db(&[0xb1, 3, 0xe0, 0xfe])?; // mov cl, 3; loopne, once
        a.db(&[0xe3, 0, 0x67, 0xe3, 0])?; // jrcxz, not taken; jecxz
        a.db(&[0x31, 0xc9, 0xe3, 0])?; // xor ecx, ecx; jrcxz, taken
        // None of the following instructions counts as a conditional branch.
        a.db(&[0xeb, 0, 0xe8, 0, 0, 0, 0])?; // jmp; call
        a.db(&[0x0f, 0x44, 0xc1, 0x0f, 0x94, 0xc0])?; // cmovz eax, ecx; setz al
        a.db(&[0xb1, 50, 0xbf, 0, 0, 6, 0, 0xf3, 0xaa])?; // mov cl, 50; mov edi, DATA; rep stosb
        a.db(&[0xf4]) // hlt
    });
    assert_eq!(counted(&g), 100 + 3 + 7 + 3 + 1 + 2 + 1);
}

/// Returns a guest with a branch at the end of the page before `page`. Both the branch's target and the next
/// instruction in memory are on `page`.
fn to_the_next_page(page: u64, mapped: bool, taken: bool) -> Guest {
    let mut g = Guest::new();
    let from = page.wrapping_sub(0x1000);
    g.map(from, DATA, P | W);
    if mapped {
        g.map(page, DATA + 0x1000, P | W);
    }
    let mut bytes = vec![0x45, 0x31, 0xc0, 0xe9]; // xor r8d, r8d; jmp to the last branch
    let last = 0x1000 - 6;
    bytes.extend((last - (bytes.len() as i32 + 4)).to_le_bytes());
    g.bytes(DATA, &bytes);
    // The last branch jumps (jz or jnz) to the next page, forty bytes in. The next instruction in memory is on that
    // page, too.
    let condition = if taken { 0x84 } else { 0x85 };
    g.bytes(DATA + last as u64, &[0x0f, condition, 40, 0, 0, 0]);
    g.bytes(DATA + 0x1000, &[0xf4]);
    g.bytes(DATA + 0x1000 + 40, &[0xf4]);
    g.state.rip = from;
    g
}

#[test]
fn a_branch_to_another_page_counts_unless_it_faults_itself() {
    // The fault handler executes conditional branches itself. This guest executes no other conditional branches, so its
    // count is the number of branches in the handler.
    let mut fault = Guest::new();
    fault.code(CODE, |a| a.ud2());
    let handler = counted(&fault);
    for taken in [false, true] {
        let there = to_the_next_page(0x90_0000, true, taken);
        let gone = to_the_next_page(0x90_0000, false, taken);
        let outside = to_the_next_page(0x8000_0000_0000, false, taken);
        assert_eq!(counted(&there), 1);
        assert_eq!(check(&gone).vectors().first().map(|v| v.0), Some(14));
        assert_eq!(counted(&gone), 1 + handler, "the branch retires, and the next fetch faults");
        assert_eq!(check(&outside).vectors().first().map(|v| v.0), Some(13));
        // If a taken branch leads to a non-canonical address, the branch itself faults and is not counted. If the
        // branch is not taken, it retires, and the fetch of the next instruction faults.
        let faults = u64::from(taken);
        assert_eq!(counted(&outside), 1 + handler - faults, "taken: {taken}");
    }
}
