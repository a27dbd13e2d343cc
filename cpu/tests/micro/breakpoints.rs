//! Tests of breakpoints that the operator sets: a run stops before each instruction at one of them. Tests of stops at
//! changes of the mode.

use super::harness::{ORDINARY, TINY, TRANSLATED, TRANSLATED_PLAIN, mode_changes, passes, stops};
use super::image::*;
use everett_assembler::*;

/// Number of iterations, so many that all blocks are translated.
const ROUNDS: u32 = 500;

/// Returns a guest with a loop that calls a function on another page.
fn looping() -> Guest {
    let mut g = Guest::in_ring_0(|a| {
        a.mov(ecx, ROUNDS)?; // 00
        a.inc(eax)?; // 05: loop
        a.call(CODE + 0x1000)?; // 07
        a.add(ebx, eax)?; // 0c
        a.dec(ecx)?; // 0e
        a.jnz(CODE + 5)?; // 10
        a.hlt() // 12
    });
    g.code(CODE + 0x1000, |a| {
        a.nop()?; // 1000
        a.inc(edx)?; // 1001
        a.ret() // 1003
    });
    g
}

#[test]
fn a_run_stops_at_each_pass_of_each_breakpoint() {
    let guest = looping();
    let sets: [&[u64]; 6] = [
        &[CODE],
        &[CODE + 0x0c],
        &[CODE + 0x1001],
        &[CODE + 0x05, CODE + 0x0e, CODE + 0x1003],
        // Within an instruction, behind all code, and on a page that is not mapped.
        &[CODE + 0x01, CODE + 0x13, 0xffff_8000_0000_0000],
        &[CODE + 0x12],
    ];
    for set in sets {
        let expected = passes(&guest, set);
        for caches in [ORDINARY, TINY, TRANSLATED, TRANSLATED_PLAIN] {
            assert_eq!(stops(&guest, caches, set), expected, "{set:x?} {caches:?}");
        }
    }
    assert_eq!(passes(&guest, &[CODE + 0x1001]).len(), ROUNDS as usize);
    assert_eq!(passes(&guest, &[CODE + 0x01]), []);
}

#[test]
fn each_iteration_of_a_repeated_instruction_is_a_pass() {
    let mut guest = Guest::in_ring_0(|a| {
        a.rep().stosb()?;
        a.hlt()
    });
    guest.state.gpr[1] = 3;
    guest.state.gpr[7] = DATA;
    let expected = [(0, CODE), (1, CODE), (2, CODE)];
    assert_eq!(passes(&guest, &[CODE]), expected);
    for caches in [ORDINARY, TRANSLATED] {
        assert_eq!(stops(&guest, caches, &[CODE]), expected, "{caches:?}");
    }
}

#[test]
fn a_run_stops_where_the_mode_changes() {
    let mut g = Guest::new();
    g.state.msrs.lstar = CODE;
    g.start_in_ring_3(USER);
    g.code(USER, |a| {
        a.mov(ebx, ROUNDS)?; // 00
        a.syscall()?; // 05
        a.dec(ebx)?; // 07
        a.jnz(USER + 5)?; // 09
        exit(a)
    });
    g.code(CODE, |a| {
        a.nop()?;
        sysretq(a)
    });
    for caches in [ORDINARY, TINY, TRANSLATED, TRANSLATED_PLAIN] {
        let changes = mode_changes(&g, caches);
        // A round has SYSCALL, NOP, SYSRET, DEC and JNZ.
        let expected = (0..u64::from(ROUNDS)).flat_map(|n| [(5 * n + 2, false), (5 * n + 4, true)]);
        assert!(changes.iter().copied().zip(expected).all(|(a, b)| a == b), "{changes:?}");
        // The guest ends in ring 0.
        assert_eq!(
            (changes.len(), changes.last().unwrap().1),
            (2 * ROUNDS as usize + 1, false),
            "{caches:?}"
        );
    }
}
