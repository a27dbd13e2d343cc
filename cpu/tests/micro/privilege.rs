//! Instructions that are forbidden in ring 3, instructions that the CPU model lacks, and the flags that POPF can
//! change.

use super::harness::check;
use super::image::*;
use everett_assembler::*;

#[test]
fn privileged_instructions_fault_in_ring_3() {
    type Op = fn(&mut Assembler) -> Result<(), Error>;
    let instructions: [(&str, Op); 29] = [
        ("hlt", |a| a.hlt()),
        ("cli", |a| a.cli()),
        ("sti", |a| a.sti()),
        ("clts", |a| a.clts()),
        ("mov cr0", |a| a.mov(cr0, rax)),
        ("mov from cr0", |a| a.mov(rax, cr0)),
        ("mov from cr2", |a| a.mov(rax, cr2)),
        ("mov cr3", |a| a.mov(cr3, rax)),
        ("mov cr4", |a| a.mov(cr4, rax)),
        ("mov cr8", |a| a.mov(cr8, rax)),
        ("mov from cr8", |a| a.mov(rax, cr8)),
        ("mov dr0", |a| a.mov(dr0, rax)),
        ("mov from dr7", |a| a.mov(rax, dr7)),
        ("rdmsr", |a| a.rdmsr()),
        ("wrmsr", |a| a.wrmsr()),
        ("swapgs", |a| a.swapgs()),
        ("lgdt", |a| a.lgdt(tbyte_ptr(rdi))),
        ("lidt", |a| a.lidt(tbyte_ptr(rdi))),
        ("lldt", |a| a.lldt(ax)),
        ("ltr", |a| a.ltr(ax)),
        ("lmsw", |a| a.lmsw(ax)),
        ("invlpg", |a| a.invlpg(byte_ptr(rdi))),
        ("invd", |a| a.invd()),
        ("wbinvd", |a| a.wbinvd()),
        ("in", |a| a.in_(al, dx)),
        ("out", |a| a.out(0x80, eax)),
        ("insb", |a| a.insb()),
        ("outsb", |a| a.outsb()),
        ("rdpmc", |a| a.rdpmc()),
    ];
    for (name, instruction) in instructions {
        let g = Guest::in_ring_3(|a| {
            a.mov(rdi, USER + 0x800)?;
            a.mov(rsi, USER + 0x800)?;
            instruction(a)
        });
        let before = g.state.clone();
        let out = check(&g);
        assert_eq!(out.vectors(), [(13, 0)], "{name}");
        assert_eq!((out.state.cr4, out.state.gdtr), (before.cr4, before.gdtr), "{name}");
    }
}

#[test]
fn what_the_model_lacks_is_undefined() {
    let encodings: [(&str, &[u8]); 17] = [
        ("ud0", &[0x0f, 0xff, 0xc0]),
        ("ud1", &[0x0f, 0xb9, 0xc0]),
        ("ud2", &[0x0f, 0x0b]),
        ("rsm", &[0x0f, 0xaa]),
        ("xgetbv", &[0x0f, 0x01, 0xd0]),
        ("vmcall", &[0x0f, 0x01, 0xc1]),
        ("monitor", &[0x0f, 0x01, 0xc8]),
        ("mwait", &[0x0f, 0x01, 0xc9]),
        ("rdfsbase", &[0xf3, 0x48, 0x0f, 0xae, 0xc0]),
        ("rdrand", &[0x48, 0x0f, 0xc7, 0xf0]),
        ("rdseed", &[0x48, 0x0f, 0xc7, 0xf8]),
        ("invpcid", &[0x66, 0x0f, 0x38, 0x82, 0x07]),
        ("xsave", &[0x0f, 0xae, 0x27]),
        ("rdpid", &[0xf3, 0x0f, 0xc7, 0xf8]),
        ("mov cr1", &[0x0f, 0x20, 0xc8]),
        ("mov cs", &[0x8e, 0xc8]),
        ("into", &[0xce]),
    ];
    for (name, bytes) in encodings {
        let g = Guest::in_ring_0(|a| a.db(bytes));
        assert_eq!(check(&g).vectors(), [(6, 0)], "{name}");
    }
}

#[test]
fn hints_of_absent_features_do_nothing() {
    let g = Guest::in_ring_0(|a| {
        a.endbr64()?;
        a.mov(rax, 0x55u64)?;
        a.db(&[0xf3, 0x48, 0x0f, 0x1e, 0xc8])?; // RDSSPQ RAX
        a.db(&[0x0f, 0x1f, 0x40, 0x00])?;
        a.hlt()
    });
    let out = check(&g);
    assert!(out.log().is_empty());
    assert_eq!((out.state.gpr[0], out.state.icount), (0x55, 5));
}

#[test]
fn popf_changes_what_the_ring_may_change() {
    for (ring, iopl, may_if, may_iopl) in [(0, 0, true, true), (3, 0, false, false), (3, 3, true, false)] {
        let mut g = Guest::in_ring(ring, |a| {
            a.push((IF | 0x1000 | 1 << 21 | RF | 0x8d5) as i32)?;
            a.popfq()?;
            flags_to_rbx(a)?;
            exit(a)
        });
        g.state.rflags |= iopl << 12;
        let got = check(&g).state.gpr[3];
        assert_eq!(got & IF != 0, may_if, "ring {ring} IOPL {iopl}");
        let expected_iopl = if may_iopl { 1 } else { iopl };
        assert_eq!(got >> 12 & 3, expected_iopl, "ring {ring} IOPL {iopl}");
        assert_eq!(got & (1 << 21 | RF | 0x8d5), 1 << 21 | 0x8d5);
    }
}

#[test]
fn popf_of_16_bits_leaves_the_rest() {
    let mut g = Guest::in_ring_0(|a| {
        a.push(0x8d5)?;
        a.db(&[0x66, 0x9d])?;
        a.hlt()
    });
    g.state.rflags |= 1 << 21;
    let out = check(&g);
    assert_eq!((out.state.rflags, out.state.gpr[4]), (1 << 21 | 0x8d7, STACK - 6));
}

#[test]
fn stac_and_clac_are_undefined_in_ring_3() {
    for bytes in [[0x0f, 0x01, 0xcb], [0x0f, 0x01, 0xca]] {
        let g = Guest::in_ring_3(|a| a.db(&bytes));
        assert_eq!(check(&g).vectors(), [(6, 0)]);
    }
}
