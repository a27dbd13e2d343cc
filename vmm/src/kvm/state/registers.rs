//! General, control and debug registers.

use everett_cpu::CpuState;
use everett_cpu::state::{TableRegister, seg};
use kvm_bindings::{kvm_debugregs, kvm_dtable, kvm_regs, kvm_sregs};

use super::segments::{from_kvm, local_table, local_table_to_kvm, segment_or_null, to_kvm};

/// EFER.LMA: long mode is active.
const EFER_LMA: u64 = 1 << 10;

pub(super) fn general(state: &CpuState) -> kvm_regs {
    let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] = state.gpr;
    let (rip, rflags) = (state.rip, state.rflags);
    kvm_regs { rax, rbx, rcx, rdx, rsi, rdi, rsp, rbp, r8, r9, r10, r11, r12, r13, r14, r15, rip, rflags }
}

pub(super) fn read_general(state: &mut CpuState, r: &kvm_regs) {
    state.gpr = [
        r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
        r.r14, r.r15,
    ];
    state.rip = r.rip;
    state.rflags = r.rflags;
}

pub(super) fn system(state: &CpuState) -> kvm_sregs {
    let table = |t: TableRegister| kvm_dtable { base: t.base, limit: t.limit, padding: [0; 3] };
    kvm_sregs {
        cs: to_kvm(&state.seg[seg::CS]),
        ds: to_kvm(&state.seg[seg::DS]),
        es: to_kvm(&state.seg[seg::ES]),
        fs: to_kvm(&state.seg[seg::FS]),
        gs: to_kvm(&state.seg[seg::GS]),
        ss: to_kvm(&state.seg[seg::SS]),
        tr: to_kvm(&state.tr),
        ldt: local_table_to_kvm(&state.ldtr),
        gdt: table(state.gdtr),
        idt: table(state.idtr),
        cr0: state.cr0,
        cr2: state.cr2,
        cr3: state.cr3,
        cr4: state.cr4,
        // CR8 belongs to the local APIC, which the machine emulates.
        cr8: 0,
        efer: state.efer,
        apic_base: state.msrs.apic_base,
        interrupt_bitmap: [0; 4],
    }
}

pub(super) fn read_system(state: &mut CpuState, s: &kvm_sregs) {
    let table = |t: &kvm_dtable| TableRegister { base: t.base, limit: t.limit };
    let long_mode = s.efer & EFER_LMA != 0;
    state.seg[seg::CS] = from_kvm(&s.cs);
    for (which, segment) in
        [(seg::DS, &s.ds), (seg::ES, &s.es), (seg::FS, &s.fs), (seg::GS, &s.gs), (seg::SS, &s.ss)]
    {
        state.seg[which] = segment_or_null(segment, matches!(which, seg::FS | seg::GS), long_mode);
    }
    state.tr = from_kvm(&s.tr);
    state.ldtr = local_table(&s.ldt);
    state.gdtr = table(&s.gdt);
    state.idtr = table(&s.idt);
    state.cr0 = s.cr0;
    state.cr2 = s.cr2;
    state.cr3 = s.cr3;
    state.cr4 = s.cr4;
    state.efer = s.efer;
    state.msrs.apic_base = s.apic_base;
}

pub(super) fn debug(state: &CpuState) -> kvm_debugregs {
    kvm_debugregs { db: state.dr, dr6: state.dr6, dr7: state.dr7, ..Default::default() }
}

pub(super) fn read_debug(state: &mut CpuState, d: &kvm_debugregs) {
    state.dr = d.db;
    state.dr6 = d.dr6;
    state.dr7 = d.dr7;
}
