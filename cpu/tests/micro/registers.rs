//! Control registers, MSRs, CPUID and the TSC: values that can be written, and values that a guest reads.

use everett_assembler::*;
use everett_cpu::state::seg;

use super::harness::{End, check};
use super::image::*;

/// Returns a guest that executes MOV CRn with `value` and then halts.
fn write_control(n: u32, value: u64) -> Guest {
    Guest::in_ring_0(|a| {
        a.mov(rax, value)?;
        match n {
            0 => a.mov(cr0, rax)?,
            3 => a.mov(cr3, rax)?,
            _ => a.mov(cr4, rax)?,
        }
        a.hlt()
    })
}

#[test]
fn control_registers_refuse_invalid_values() {
    let zero = 0x8005_0033u64;
    let four = 0x620u64;
    let cases = [
        ("CR0 unchanged", 0, zero, true),
        ("CR0.ET cleared, which is ignored", 0, zero & !0x10, true),
        ("CR0 bits above 31", 0, zero | 1 << 32, false),
        ("CR0.PG without PE", 0, zero & !1, false),
        ("CR0.PG cleared in 64-bit mode", 0, zero & !(1 << 31), false),
        ("CR0.NW without CD", 0, zero | 1 << 29, false),
        ("CR0.NW with CD", 0, zero | 3 << 29, true),
        ("CR3 unchanged", 3, PML4, true),
        ("CR3.PWT and PCD", 3, PML4 | 0x18, true),
        ("CR3 beyond the physical address", 3, PML4 | 1 << 39, false),
        ("CR3 bit 63 without PCID", 3, PML4 | 1 << 63, false),
        ("CR4 with all bits of the model", 4, four | 0x30_0994, true),
        ("CR4 without PAE", 4, four & !0x20, false),
        ("CR4.VME", 4, four | 1, false),
        ("CR4.MCE", 4, four | 1 << 6, false),
        ("CR4.LA57", 4, four | 1 << 12, false),
        ("CR4.VMXE", 4, four | 1 << 13, false),
        ("CR4.FSGSBASE", 4, four | 1 << 16, false),
        ("CR4.PCIDE", 4, four | 1 << 17, false),
        ("CR4.OSXSAVE", 4, four | 1 << 18, false),
        ("CR4 bit 40", 4, four | 1 << 40, false),
    ];
    for (name, n, value, fine) in cases {
        let out = check(&write_control(n, value));
        let expected = fault_if(!fine, (13, 0));
        assert_eq!(out.vectors(), expected, "{name}");
    }
    assert_eq!(check(&write_control(0, zero & !0x10)).state.cr0, zero);
}

#[test]
fn enabling_protection_affects_the_next_access() {
    for (bit, cr0_bit, user) in [(16, true, false), (21, false, true)] {
        let mut g = Guest::new();
        g.state.cr0 &= !(1 << 16);
        g.map(ELSEWHERE, DATA, P | if user { U | W } else { 0 });
        g.code(CODE, |a| {
            a.mov(rdi, ELSEWHERE)?;
            a.mov(qword_ptr(rdi), rdi)?;
            if cr0_bit {
                a.mov(rax, cr0)?
            } else {
                a.mov(rax, cr4)?
            }
            a.bts(rax, bit)?;
            if cr0_bit {
                a.mov(cr0, rax)?
            } else {
                a.mov(cr4, rax)?
            }
            a.mov(qword_ptr(rdi), rdi)
        });
        assert_eq!(check(&g).vectors(), [(14, 3)], "bit {bit}");
    }
}

#[test]
fn enabling_smep_affects_the_next_fetch() {
    let mut g = Guest::new();
    g.code(USER, |a| {
        a.mov(rax, cr4)?;
        a.bts(rax, 20)?;
        a.mov(cr4, rax)?;
        a.nop()
    });
    g.code(CODE, |a| {
        a.mov(rax, USER)?;
        a.jmp(rax)
    });
    assert_eq!(check(&g).vectors(), [(14, 17)]);
}

#[test]
fn smsw_and_lmsw_reach_the_low_half() {
    let g = Guest::in_ring_0(|a| {
        a.mov(rbx, u64::MAX)?;
        a.smsw(rbx)?;
        a.mov(r12, u64::MAX)?;
        a.smsw(r12w)?;
        a.mov(eax, 0x0e)?; // MP, EM, TS without PE
        a.lmsw(ax)?;
        a.mov(r13, cr0)?;
        a.clts()?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[3], out.state.gpr[12]), (0x8005_0033, 0xffff_ffff_ffff_0033));
    assert_eq!(out.state.gpr[13], 0x8005_003f, "PE stays");
    assert_eq!(out.state.cr0, 0x8005_0037);
}

#[test]
fn umip_hides_system_registers_from_ring_3() {
    type Op = fn(&mut Assembler) -> Result<(), Error>;
    let stores: [(&str, Op); 5] = [
        ("sgdt", |a| a.sgdt(tbyte_ptr(rdi))),
        ("sidt", |a| a.sidt(tbyte_ptr(rdi))),
        ("sldt", |a| a.sldt(word_ptr(rdi))),
        ("str", |a| a.str(eax)),
        ("smsw", |a| a.smsw(eax)),
    ];
    for (name, store) in stores {
        for umip in [false, true] {
            let mut g = Guest::in_ring_3(|a| {
                a.mov(rdi, USER + 0x800)?;
                store(a)?;
                exit(a)
            });
            g.state.cr4 |= u64::from(umip) << 11;
            let expected = fault_if(umip, (13, 0));
            assert_eq!(check(&g).vectors(), expected, "{name}");
        }
    }
}

#[test]
fn table_registers_load_and_store() {
    let mut g = Guest::new();
    g.put16(DATA, 0x7ff);
    g.put(DATA + 2, GDT);
    g.put16(DATA + 0x10, 0xabc);
    g.put(DATA + 0x12, 0x8000_0000_0000);
    g.code(CODE, |a| {
        a.mov(rdi, DATA)?;
        a.lgdt(tbyte_ptr(rdi))?;
        a.sgdt(tbyte_ptr(rdi + 0x20))?;
        a.sidt(tbyte_ptr(rdi + 0x30))?;
        a.lidt(tbyte_ptr(rdi + 0x10))
    });
    let out = check(&g);
    let at = DATA as usize;
    assert_eq!(out.ram[at..at + 10], out.ram[at + 0x20..at + 0x2a]);
    assert_eq!((out.word(DATA + 0x30) & 0xffff, out.word(DATA + 0x32)), (0xfff, IDT));
    assert_eq!(out.vectors(), [(13, 0)], "a base that is not canonical");
}

/// Returns a guest that writes `value` to an MSR, reads it back into R12, and halts.
fn msr(index: u32, value: u64) -> Guest {
    Guest::in_ring_0(|a| {
        a.mov(ecx, index as i32)?;
        a.mov(eax, value as u32)?;
        a.mov(edx, (value >> 32) as u32)?;
        a.wrmsr()?;
        a.rdmsr()?;
        a.shl(rdx, 32)?;
        a.lea(r12, qword_ptr(rax + rdx))?;
        a.hlt()
    })
}

#[test]
fn msrs_hold_valid_values_and_refuse_others() {
    let canonical = 0xffff_8000_1234_5678u64;
    let fine = [
        (0xc000_0080u32, 0xd00u64),
        (0xc000_0081, u64::MAX),
        (0xc000_0082, canonical),
        (0xc000_0083, canonical),
        (0xc000_0084, 0x4_7700),
        (0xc000_0100, canonical),
        (0xc000_0101, canonical),
        (0xc000_0102, canonical),
        (0xc000_0103, 0x1234_5678),
        (0x174, 0x10),
        (0x175, canonical),
        (0x176, canonical),
        (0x1b, 0xfee0_0900),
        (0x1b, 0xfee0_0100),
        (0x277, 0x0007_0406_0007_0106),
        (0x2ff, 0xc06),
        (0x200, 0x7f_ffff_f006),
        (0x20f, 0x7f_ffff_f800),
        (0x250, 0x0606_0606_0606_0606),
        (0x26f, 0x0501_0400_0606_0606),
        (0x8b, 0),
        (0x1d9, 0),
    ];
    for (index, value) in fine {
        let out = check(&msr(index, value));
        assert_eq!(out.vectors(), [], "{index:#x} {value:#x}");
        assert_eq!(out.state.gpr[12], value, "{index:#x}");
    }
    let wrong = [
        (0xc000_0080u32, 0x1d01u64),
        (0xc000_0080, 0xc01),
        (0xc000_0082, 0x8000_0000_0000),
        (0xc000_0084, 1 << 32),
        (0xc000_0101, 0x7fff_8000_0000_0000),
        (0xc000_0103, 1 << 32),
        (0x176, 0x8000_0000_0000),
        (0x1b, 0xfee0_0d00),
        (0x1b, 0xfee0_0800),
        (0x277, 2),
        (0x277, 8),
        (0x2ff, 0xc02),
        (0x200, 0x100),
        (0x201, 0x400),
        (0x200, 1 << 39),
        (0x250, 2),
        (0x1a0, 1 << 22),
        (0x1d9, 1),
        (0xfe, 0x508),
        (0x10a, 0),
    ];
    for (index, value) in wrong {
        assert_eq!(check(&msr(index, value)).vectors(), [(13, 0)], "{index:#x} {value:#x}");
    }
}

#[test]
fn missing_msrs_fault() {
    for index in [0u32, 0x3a, 0x3b, 0x48, 0x6e0, 0x802, 0x20_f000, 0x4000_0000, 0x251, 0xc001_0015, u32::MAX]
    {
        let g = Guest::in_ring_0(|a| {
            a.mov(ecx, index)?;
            a.rdmsr()
        });
        assert_eq!(check(&g).vectors(), [(13, 0)], "{index:#x}");
    }
}

#[test]
fn efer_lma_is_read_only() {
    assert_eq!(check(&msr(0xc000_0080, 0x900)).state.gpr[12], 0xd00);
}

#[test]
fn an_apic_elsewhere_ends_the_run() {
    let out = check(&msr(0x1b, 0xfed0_0900));
    assert_eq!(out.end, End::Unsupported("a local APIC at another address"));
}

#[test]
fn bases_written_as_msrs_take_effect_at_once() {
    let mut g = Guest::new();
    g.put(DATA + 8, 77);
    g.code(CODE, |a| {
        a.mov(ecx, 0xc000_0101u32)?;
        a.mov(eax, DATA as u32)?;
        a.xor(edx, edx)?;
        a.wrmsr()?;
        a.mov(rbx, qword_ptr(8).gs())?;
        a.hlt()
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[3], out.state.seg[seg::GS].base), (77, DATA));
}

#[test]
fn the_tsc_counts_instructions_and_can_be_set() {
    // The harness sets the TSC to 1000 + count * 3 / 2, where `count` is the number of retired instructions.
    let mut g = Guest::in_ring_0(|a| {
        a.nop()?;
        a.nop()?;
        a.rdtsc()?; // count 2
        a.mov(r12, rax)?;
        a.rdtscp()?; // count 4
        a.mov(r13, rax)?;
        a.mov(r14, rcx)?;
        a.mov(ecx, 0x10)?;
        a.xor(edx, edx)?;
        a.mov(eax, 5000)?;
        a.wrmsr()?; // count 10
        a.nop()?;
        a.rdtsc()?; // count 12
        a.hlt()
    });
    g.state.msrs.tsc_aux = 9;
    let out = check(&g);
    let s = &out.state;
    assert_eq!((s.gpr[12], s.gpr[13], s.gpr[14], s.gpr[0]), (1003, 1006, 9, 5003));
}

#[test]
fn tsd_keeps_the_tsc_from_ring_3() {
    for (tsd, ring) in [(false, 3), (true, 3), (true, 0)] {
        let mut g = Guest::in_ring(ring, |a| {
            a.rdtsc()?;
            a.rdtscp()?;
            exit(a)
        });
        g.state.cr4 |= u64::from(tsd) << 2;
        let expected = fault_if(tsd && ring == 3, (13, 0));
        assert_eq!(check(&g).vectors(), expected, "TSD {tsd} ring {ring}");
    }
}

#[test]
fn cpuid_is_the_models_in_every_ring() {
    for ring in [0, 3] {
        let g = Guest::in_ring(ring, |a| {
            a.mov(rax, 0xffff_ffff_0000_0015u64)?;
            a.mov(rbx, u64::MAX)?;
            a.mov(rdx, u64::MAX)?;
            a.cpuid()?;
            exit(a)
        });
        let s = check(&g).state;
        assert_eq!((s.gpr[0], s.gpr[3], s.gpr[1], s.gpr[2]), (1, 1, 1_000_000_000, 0), "ring {ring}");
    }
}
