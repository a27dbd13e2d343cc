//! Tests that CPU states which are loaded into a vCPU of KVM are read back unchanged.

use std::sync::Arc;

use everett_assembler::*;
use everett_cpu::CpuState;
use everett_cpu::state::{Msrs, Segment, TableRegister, seg};
use everett_vmm::kvm::{Host, Queued, Saved, Vcpu, Vm};
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use crate::ground::{CODE, DEVICE, Guest};
use crate::lockstep::memory;
use crate::trials::{Ran, trial};

fn vcpu(host: &Host) -> Vcpu {
    let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap();
    let vm = Arc::new(Vm::new(host, Arc::new(memory)).unwrap());
    Vcpu::new(&vm, Msrs::default().apic_base).unwrap()
}

/// Generator of the random numbers from which the states are made (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    fn address(&mut self) -> u64 {
        (self.next() as i64 >> 17) as u64
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// Returns a random state that a guest can have.
fn drawn(seed: u64) -> CpuState {
    let mut draw = Draw(seed);
    let d = &mut draw;
    let user = d.one_in(2);
    let mut s = CpuState { gpr: std::array::from_fn(|_| d.next()), rip: d.address(), ..CpuState::default() };
    s.rflags = 2 | d.next() & 0x24_0ed5;
    if user {
        s.seg[seg::CS] = Segment { selector: 0x33, base: 0, limit: u32::MAX, access: 0xa0fb };
        s.seg[seg::SS] = Segment { selector: 0x2b, base: 0, limit: u32::MAX, access: 0xc0f3 };
    }
    for which in [seg::DS, seg::ES, seg::FS, seg::GS] {
        if d.one_in(2) {
            let rpl = (d.next() & 3) as u16;
            s.seg[which] = Segment { selector: rpl, base: 0, limit: 0, access: rpl << 5 };
        }
    }
    if d.one_in(2) {
        s.ldtr = Segment { selector: 0, base: 0, limit: 0, access: 2 };
    }
    s.seg[seg::FS].base = d.address();
    s.seg[seg::GS].base = d.address();
    s.tr = Segment { selector: 0x40, base: d.address(), limit: 0x67, access: 0x8b };
    s.gdtr = TableRegister { base: d.address(), limit: d.next() as u16 };
    s.idtr = TableRegister { base: d.address(), limit: d.next() as u16 };
    s.cr0 ^= d.next() & 0x5_0008;
    s.cr2 = d.next();
    s.cr3 = d.next() & 0xf_f000;
    s.cr4 ^= d.next() & 0x30_0584;
    s.efer |= d.next() & 1;
    s.dr = std::array::from_fn(|_| d.address());
    s.dr6 |= d.next() & 0xe00f;
    s.dr7 |= d.next() & 0xffff_03ff & !0xcccc_0000;
    let m = &mut s.msrs;
    (m.lstar, m.cstar, m.sysenter_esp, m.sysenter_eip, m.kernel_gs_base) =
        (d.address(), d.address(), d.address(), d.address(), d.address());
    (m.star, m.fmask, m.sysenter_cs, m.tsc_aux) =
        (d.next(), d.next() & 0xffff_ffff, d.next() & 0xffff, d.next() & 0xfff);
    (m.pat, m.mtrr_def_type) = (0x0007_0406_0007_0406 ^ d.next() & 0x0100_0000_0000_0001, 0x806);
    m.mtrr_var[2 * (d.next() as usize % 8)] = d.next() & 0x7f_ffff_f000 | 6;
    m.mtrr_fixed[d.next() as usize % 11] = 0x0606_0606_0606_0606;
    m.bios_sign_id = d.next() << 32;
    let f = &mut s.fpu;
    f.r = std::array::from_fn(|_| (d.next(), d.next() as u16));
    (f.fcw, f.fsw, f.ftw) = (0x37f ^ (d.next() as u16 & 0xf3f), d.next() as u16 & 0x7f7f, d.next() as u8);
    (f.fop, f.fip, f.fdp) = (d.next() as u16 & 0x7ff, d.address(), d.address());
    f.mxcsr = d.next() as u32 & 0xffff;
    f.xmm = std::array::from_fn(|_| u128::from(d.next()) << 64 | u128::from(d.next()));
    s.shadow = d.one_in(4);
    s
}

fn what_goes_in_comes_out_and_nothing_of_before_stays() -> Ran {
    let host = crate::host()?;
    let mut vcpu = vcpu(&host);
    for seed in 0..500 {
        let state = drawn(seed);
        vcpu.load(&state).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let saved = vcpu.save().unwrap();
        assert_eq!(saved, Saved { state, queued: Queued::default() }, "seed {seed}");
    }
    Ok(())
}

fn a_queued_interrupt_is_seen_and_does_not_survive_another_state() -> Ran {
    let host = crate::host()?;
    let mut vcpu = vcpu(&host);
    let state = CpuState { rflags: 0x202, ..CpuState::default() };
    vcpu.load(&state).unwrap();
    vcpu.interrupt(0x41).unwrap();
    assert_eq!(vcpu.save().unwrap().queued.interrupt, Some(0x41));
    vcpu.load(&state).unwrap();
    assert_eq!(vcpu.save().unwrap(), Saved { state, queued: Queued::default() });
    Ok(())
}

fn registers_behind_an_exit_are_the_present_ones() -> Ran {
    let host = crate::host()?;
    let mut guest = Guest::new(false);
    guest.code(CODE, |a| {
        let again = a.create_label();
        a.mov(rdi, DEVICE)?;
        a.set_label(again)?;
        a.add(rax, 3)?;
        a.out(0x80, al)?;
        a.mov(dword_ptr(rdi), eax)?;
        a.jmp(again)
    });
    let memory = memory();
    memory.write_slice(&guest.ram, GuestAddress(0)).unwrap();
    let vm = Arc::new(Vm::new(&host, memory).unwrap());
    let mut vcpu = Vcpu::new(&vm, Msrs::default().apic_base).unwrap();
    vcpu.load(&guest.state).unwrap();
    let place = |s: &CpuState| {
        let tables = (s.gdtr, s.idtr, s.tr, s.ldtr);
        (s.rip, s.rflags, s.gpr, s.seg, (s.cr0, s.cr2, s.cr3, s.cr4, s.efer), tables)
    };
    for exit in 0..60 {
        assert!(vcpu.run().unwrap().is_unfinished());
        assert_eq!(vcpu.finish().unwrap(), None);
        let shown = vcpu.save_place().unwrap();
        let mut state = vcpu.save().unwrap().state;
        assert_eq!(place(&shown), place(&state), "after exit {exit}");
        match exit % 3 {
            0 => {}
            1 => vcpu.flush_translations().unwrap(),
            _ => {
                state.gpr[0] = exit << 32;
                state.cr2 = exit;
                vcpu.load(&state).unwrap();
            }
        }
        assert_eq!(
            place(&vcpu.save_place().unwrap()),
            place(&state),
            "exit {exit}: after a flush, or with other registers"
        );
    }
    Ok(())
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(what_goes_in_comes_out_and_nothing_of_before_stays),
        trial(registers_behind_an_exit_are_the_present_ones),
        trial(a_queued_interrupt_is_seen_and_does_not_survive_another_state),
    ]
}
