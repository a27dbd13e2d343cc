//! Single-stepping, breakpoints and debug registers (SDM vol. 3B, chapter 18).

use super::harness::check;
use super::image::*;
use everett_assembler::*;

const BS: u64 = 1 << 14;
const BD: u64 = 1 << 13;

/// Runs the guest. Returns the addresses that the handler of #DB recorded.
fn traps(g: &Guest) -> Vec<u64> {
    let out = check(g);
    assert!(out.log().iter().all(|r| r.vector == 1), "{:?}", out.vectors());
    out.log().iter().map(|r| r.rip).collect()
}

#[test]
fn tf_traps_after_each_instruction() {
    let g = Guest::in_ring_0(|a| {
        a.push(TF as i32 | 2)?; // 5 bytes
        a.popfq()?; // sets TF: the next instruction is the first to trap
        a.nop()?;
        a.inc(eax)?; // 2 bytes
        a.push(2)?; // 2 bytes
        a.popfq()?; // began with TF set, so it traps too
        a.nop()?;
        a.hlt()
    });
    assert_eq!(traps(&g), [CODE + 7, CODE + 9, CODE + 11, CODE + 12]);
    let out = check(&g);
    assert_eq!(out.state.dr6 & 0xffff, 0x0ff0 | BS);
    assert!(out.log()[..3].iter().all(|r| r.rflags & (TF | RF) == TF));
    assert_eq!(out.log()[3].rflags & TF, 0);
}

#[test]
fn each_iteration_of_a_repeated_instruction_traps() {
    let mut g = Guest::in_ring_0(|a| {
        a.rep().stosb()?;
        a.hlt()
    });
    g.state.gpr[1] = 3;
    g.state.gpr[7] = DATA;
    g.state.rflags |= TF;
    // REP STOSB makes three iterations, then HLT halts. The trap after HLT wakes the CPU, so the guest continues here.
    g.code(CODE + 3, |a| {
        a.mov(rax, rax)?;
        a.and(qword_ptr(rsp - 24), !(TF as i32))?;
        a.hlt()
    });
    let out = check(&g);
    let rips: Vec<u64> = out.log().iter().take(4).map(|r| r.rip).collect();
    assert_eq!(rips, [CODE, CODE, CODE + 2, CODE + 3]);
}

#[test]
fn mov_ss_holds_the_trap_off_and_sti_does_not() {
    let mut g = Guest::in_ring_0(|a| {
        a.mov(ss, eax)?; // 2 bytes, no trap
        a.nop()?;
        a.sti()?;
        a.cli()?;
        a.push(2)?;
        a.popfq()?;
        a.hlt()
    });
    g.state.rflags |= TF;
    g.state.gpr[0] = u64::from(KERNEL_SS);
    assert_eq!(traps(&g), [CODE + 3, CODE + 4, CODE + 5, CODE + 7, CODE + 8]);
}

#[test]
fn entering_a_handler_ends_the_step() {
    let mut g = Guest::in_ring_0(|a| {
        a.int(0x40)?; // its handler runs without TF, and IRETQ brings TF back for the next instruction
        a.nop()?;
        a.push(2)?;
        a.popfq()?;
        a.hlt()
    });
    g.state.rflags |= TF;
    let out = check(&g);
    let seen: Vec<(u64, u64)> = out.log().iter().map(|r| (r.vector, r.rip)).collect();
    assert_eq!(seen, [(0x40, CODE + 2), (1, CODE + 3), (1, CODE + 5), (1, CODE + 6)]);
}

#[test]
fn syscall_traps_only_if_the_mask_lets_tf_through() {
    for (fmask, first) in [(TF, USER + 3), (0, CODE)] {
        let mut g = Guest::in_ring_3(|a| {
            a.syscall()?;
            a.nop()?;
            exit(a)
        });
        g.state.msrs.lstar = CODE;
        g.state.msrs.fmask = fmask;
        g.state.rflags |= TF;
        g.code(CODE, sysretq);
        assert_eq!(traps(&g)[0], first);
    }
}

#[test]
fn int1_is_a_trap_without_conditions() {
    let g = Guest::in_ring_3(|a| {
        a.int1()?;
        exit(a)
    });
    let out = check(&g);
    assert_eq!(out.log().len(), 1);
    assert_eq!((out.log()[0].vector, out.log()[0].rip), (1, USER + 1));
    assert_eq!(out.state.dr6, 0xffff_0ff0);
}

#[test]
fn an_instruction_breakpoint_faults_before_and_rf_gets_past_it() {
    let g = Guest::in_ring_0(|a| {
        let here = a.create_label();
        a.lea(rax, ptr(here))?;
        a.mov(dr2, rax)?;
        a.mov(eax, 1 << 4)?;
        a.mov(dr7, rax)?;
        repeat(a, 3, |a| {
            a.nop()?;
            a.set_label(here)?;
            a.inc(ebx)
        })?;
        a.mov(r12, dr6)?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!(out.vectors(), [(1, 0); 3], "one for each execution");
    assert!(out.log().iter().all(|r| r.rflags & RF == 0));
    assert_eq!((out.state.gpr[3], out.state.gpr[12]), (3, 0xffff_0ff4));
}

#[test]
fn general_detect_guards_the_debug_registers() {
    let g = Guest::in_ring_0(|a| {
        a.mov(eax, BD as i32)?;
        a.mov(dr7, rax)?;
        a.mov(rbx, dr0)?;
        a.mov(r12, dr7)?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!(out.vectors(), [(1, 0)]);
    assert_eq!(out.state.dr6, 0xffff_0ff0 | BD);
    assert_eq!(out.state.gpr[12], 0x400, "delivery clears GD");
}

#[test]
fn dr4_and_dr5_are_aliases_unless_de_is_set() {
    let mut g = Guest::in_ring_0(|a| {
        a.mov(rax, dr4)?;
        a.mov(rbx, dr5)?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[0], out.state.gpr[3]), (0xffff_0ff0, 0x400));
    g.state.cr4 |= 1 << 3;
    assert_eq!(check(&g).vectors(), [(6, 0)]);
}

#[test]
fn upper_halves_of_dr6_and_dr7_must_be_zero() {
    for register in [6, 7] {
        let g = Guest::in_ring_0(|a| {
            a.mov(rax, 1u64 << 32)?;
            if register == 6 { a.mov(dr6, rax) } else { a.mov(dr7, rax) }
        });
        assert_eq!(check(&g).vectors(), [(13, 0)]);
    }
}

#[test]
fn a_data_breakpoint_traps_after_the_access() {
    let mut g = Guest::new();
    g.state.dr[1] = DATA + 8;
    g.state.dr[2] = DATA + 0x20;
    // DR1 watches stores to four bytes. DR2 watches loads and stores of one byte.
    g.state.dr7 = 0x400 | 2 << 2 | 2 << 4 | 0b1101 << 20 | 0b0011 << 24;
    g.state.gpr[3] = DATA;
    g.code(CODE, |a| {
        a.mov(eax, dword_ptr(rbx + 8))?; // 3 bytes: a load, which DR1 ignores
        a.mov(byte_ptr(rbx + 7), al)?; // 3: a store to the byte before DR1's range
        a.mov(word_ptr(rbx + 7), ax)?; // 4: a store that overlaps DR1's first byte
        a.inc(dword_ptr(rbx + 0x1e))?; // 3: a load and a store that span DR2's byte
        a.mov(al, byte_ptr(rbx + 0x20))?; // 3: a load
        a.mov(byte_ptr(rbx + 12), al)?; // 3: a store after DR1's last byte
        a.hlt()
    });
    assert_eq!(traps(&g), [CODE + 10, CODE + 13, CODE + 16]);
    assert_eq!(check(&g).state.dr6 & 0xf, 1 << 2);
}

/// Returns the records of a guest that enables breakpoint 1 on `DATA + 8` with the given R/W and LEN, and then executes
/// `access` with RDI pointing to `DATA + 8`.
fn watched(
    kind: u64,
    len: u64,
    access: fn(&mut Assembler) -> Result<(), Error>,
) -> Vec<super::image::Record> {
    let g = Guest::in_ring_0(|a| {
        a.mov(rdi, DATA + 8)?;
        a.mov(dr1, rdi)?;
        a.mov(eax, (1 << 2 | kind << 20 | len << 22) as i32)?;
        a.mov(dr7, rax)?;
        access(a)?;
        a.nop()?;
        a.hlt()
    });
    check(&g).log()
}

#[test]
fn data_breakpoints_trap_on_accesses_to_their_range() {
    const WRITES: u64 = 1;
    const ALL: u64 = 3;
    type Access = fn(&mut Assembler) -> Result<(), Error>;
    let cases: [(&str, u64, u64, Access, usize); 10] = [
        ("a write of the byte", WRITES, 0, |a| a.mov(byte_ptr(rdi), al), 1),
        ("a read, writes watched", WRITES, 0, |a| a.mov(al, byte_ptr(rdi)), 0),
        ("a read, all watched", ALL, 0, |a| a.mov(al, byte_ptr(rdi)), 1),
        ("the next byte", ALL, 0, |a| a.mov(al, byte_ptr(rdi + 1)), 0),
        ("the last of four bytes", ALL, 3, |a| a.mov(al, byte_ptr(rdi + 3)), 1),
        ("the byte after four bytes", ALL, 3, |a| a.mov(al, byte_ptr(rdi + 4)), 0),
        ("the last of eight bytes", ALL, 2, |a| a.mov(al, byte_ptr(rdi + 7)), 1),
        ("a wide write that overlaps the byte", WRITES, 0, |a| a.mov(qword_ptr(rdi - 7), rax), 1),
        ("a read-modify-write", WRITES, 1, |a| a.inc(dword_ptr(rdi)), 1),
        (
            "two of four iterations",
            WRITES,
            1,
            |a| {
                a.sub(rdi, 1)?;
                a.mov(ecx, 4)?;
                a.rep().stosb()
            },
            2,
        ),
    ];
    for (name, kind, len, access, times) in cases {
        let log = watched(kind, len, access);
        assert_eq!(log.len(), times, "{name}");
        assert!(log.iter().all(|r| r.vector == 1), "{name}");
    }
}

#[test]
fn dr6_shows_which_data_breakpoint_was_hit() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rdi, DATA)?;
        a.mov(dr0, rdi)?;
        a.mov(dr3, rdi)?;
        a.mov(eax, 0x3003_0041)?; // DR0 and DR3, all accesses
        a.mov(dr7, rax)?;
        a.push(qword_ptr(rdi))?;
        a.nop()?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!((out.vectors(), out.state.dr6), (vec![(1, 0)], 0xffff_0ff9));
}

#[test]
fn a_step_and_a_data_breakpoint_are_one_exception() {
    let mut g = Guest::in_ring_0(|a| {
        a.mov(byte_ptr(DATA), al)?;
        a.hlt()
    });
    g.state.dr = [DATA, 0, 0, 0];
    g.state.dr7 = 0x401 | 1 << 16;
    g.state.rflags |= TF;
    let out = check(&g);
    assert_eq!(out.log()[0].rip, out.log()[1].rip - 1, "one for the store, one for HLT");
    assert_eq!(out.state.dr6 & 0xffff, 0x0ff0 | BS | 1);
}
