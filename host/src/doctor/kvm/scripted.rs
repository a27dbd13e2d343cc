//! Scripted hosts, with which tests imitate hardware that the test's host may lack.

use everett_cpu::CpuModel;
use everett_cpu::cpuid::leaves;
use everett_cpu::state::Msrs;

use super::ProbeReport;
use super::guest::{END_MARK, END_VECTOR, Guest, HELD_TSC, INTERRUPT_VECTOR, Ring, Tsc};
use super::host::{End, Host, Ran};
use super::probes::{Effort, all, approximations, flags};

/// A host on which every probe succeeds. `leak` can change the result of a guest's run.
struct Scripted<F: FnMut(&Guest, &mut Ran)> {
    capabilities: u32,
    leak: F,
}

fn sound(guest: &Guest) -> Ran {
    let mut ran = Ran {
        end: End::Halted,
        vector: (guest.ring != Ring::Zero).then_some(END_VECTOR),
        gpr: [0; 16],
        top: 0,
        exits: 1,
        msr_exits: 0,
        stale: 0,
        nanoseconds: 30_000_000,
        dirty: vec![],
        counted: guest.event.map(|_| 3 * guest.rcx),
        moved: (guest.tsc == Tsc::Slow).then_some(false),
    };
    ran.gpr[15] = END_MARK;
    match guest.name {
        "ring 0 speed" | "ring 3 speed" => ran.nanoseconds = guest.rcx / 2,
        "exits" => ran.exits = guest.rcx,
        "CPUID" => {
            let rows = leaves(CpuModel::default(), Msrs::default().apic_base);
            let (leaf, subleaf) = (guest.rax as u32, guest.rcx as u32);
            let row = rows.iter().find(|r| r.leaf == leaf && r.subleaf.is_none_or(|s| s == subleaf));
            let last = rows.iter().rev().find(|row| row.leaf < 0x8000_0000);
            let registers = row.or(last).map_or([0; 4], |row| row.registers);
            for (register, value) in [0, 3, 1, 2].into_iter().zip(registers) {
                ran.gpr[register] = u64::from(value);
            }
        }
        "RDRAND" | "RDSEED" | "XBEGIN" | "AESENC" | "SHA1NEXTE" | "PCLMULQDQ" | "ADX" | "RDPID"
        | "VMCALL" | "VMMCALL" | "ud2" | "xrstor64" => raise(&mut ran, 6),
        "control register" | "passed MSR" => ran.gpr[3] = guest.rax,
        "UMIP" => raise(&mut ran, 13),
        "1 GiB page" => ran.gpr[3] = 0x5a,
        "NX" | "SMEP" | "SMAP" => {
            raise(&mut ran, 14);
            ran.top = if guest.name == "SMAP" { 0x01 } else { 0x11 };
        }
        "TSC held" => (ran.gpr[3], ran.gpr[6]) = (HELD_TSC, HELD_TSC),
        "CR4.TSD" | "upper half of CR0" => raise(&mut ran, 13),
        "dirty log" => ran.dirty = vec![3, 0x20, 0x23],
        "MSR filter" => ran.msr_exits = 2,
        "system calls" => (ran.gpr[3], ran.gpr[6]) = (0x10, 0x33),
        "ports in ring 3" => (ran.exits, ran.gpr[3]) = (3, 0x3202),
        "interrupts" => {
            raise(&mut ran, INTERRUPT_VECTOR);
            ran.gpr[0] = 2;
        }
        flags::NAME | approximations::NAME => {
            if let Ok(gpr) = flags::on_the_model(guest) {
                ran.gpr[..15].copy_from_slice(&gpr[..15]);
            }
        }
        "int3" | "int3 in ring 3" => raise(&mut ran, 3),
        "int in ring 0" | "int in ring 3" => raise(&mut ran, 0x30),
        "divide by zero" => raise(&mut ran, 0),
        "skid" => {
            (ran.end, ran.gpr[15]) = (End::Overflow, 0);
            ran.gpr[1] = guest.rcx - 100_000 - 345;
            ran.counted = Some(100_345);
        }
        _ => {}
    }
    ran
}

pub(super) fn raise(ran: &mut Ran, vector: u8) {
    (ran.vector, ran.gpr[15]) = (Some(vector), 0);
}

impl<F: FnMut(&Guest, &mut Ran)> Host for Scripted<F> {
    fn capability(&mut self, _: u32) -> Result<u32, String> {
        Ok(self.capabilities)
    }
    fn run(&mut self, guest: &Guest) -> Result<Ran, String> {
        let mut ran = sound(guest);
        (self.leak)(guest, &mut ran);
        Ok(ran)
    }
}

/// Returns the report of a scripted host on which every probe succeeds, with the results that `leak` changes.
pub fn report(effort: Effort, leak: impl FnMut(&Guest, &mut Ran)) -> ProbeReport {
    all(&mut Scripted { capabilities: 1, leak }, effort)
}
