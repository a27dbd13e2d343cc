//! A vCPU with closed gates: exceptions, INT and SYSCALL end its run with a triple fault before they happen, and the soft
//! CPU executes them.
//!
//! For hosts that execute some of these wrongly: there is a software KVM on which SYSCALL stays in ring 3. KVM is shown
//! an interrupt descriptor table that is too short for a gate, and a SYSCALL target where nothing is mapped. The use of
//! either causes a fault that cannot be delivered, and the resulting double fault cannot be delivered either (SDM
//! volume 3, 6.15), so the guest shuts down. For a fault, its registers are then as before the instruction, with RF
//! set; for a trap, they are as after it, with RF clear. The registers that SYSCALL changes are where SYSCALL saves
//! them.
//!
//! Not hidden from the guest:
//! - SIDT shows the short table. LIDT opens the gates until registers are next loaded, and SYSCALL is a page fault until
//!   then.
//! - A program that jumps to [`NOWHERE`] is taken for one that makes a system call, with flags of its choice.
//! - The guest's own breakpoints are lost. So are INT1 and single steps on kvm-intel, which intercepts #DB and delivers it
//!   itself: the state is then like that after a fault of the next instruction.
//! - AMD's processors lose the guest's registers when it shuts down (APM volume 2, 15.14.3).
//!
//! So closed gates are only for hosts that are not exact without them, either.
//!
//! **Invariant.** Saved states have the guest's table and SYSCALL target, never those that KVM was shown.

use everett_cpu::CpuState;
use everett_cpu::state::{Segment, TableRegister, seg};

use super::error::KvmError;
use super::exit::KvmExit;
use super::processor::Processor;
use super::state::{Queued, Saved};

/// Limit of the shown table: too short for the first gate, and one that no real table has.
const CLOSED: u16 = 6;
/// Shown target of SYSCALL: the last page, which kernels leave unmapped because error codes look like pointers into it.
const NOWHERE: u64 = 0xffff_ffff_ffff_f000;
/// Length of SYSCALL in bytes.
const SYSCALL_BYTES: u64 = 2;
/// RFLAGS.RF, which distinguishes faults (set) from traps (clear).
pub const RESUME: u64 = 1 << 16;
const RCX: usize = 1;
const R11: usize = 11;

/// Guest values that KVM is not shown.
#[derive(Debug, Clone, Copy, Default)]
struct Gates {
    idtr: TableRegister,
    lstar: u64,
    /// CR2 as it was loaded: the page fault at [`NOWHERE`] overwrites it.
    cr2: u64,
    star: u64,
}

impl Gates {
    /// Stores the hidden values of a state and returns the state that KVM is shown.
    fn close(&mut self, state: &CpuState) -> CpuState {
        let msrs = &state.msrs;
        *self = Gates { idtr: state.idtr, lstar: msrs.lstar, star: msrs.star, cr2: state.cr2 };
        let mut shown = state.clone();
        shown.idtr.limit = CLOSED;
        shown.msrs.lstar = NOWHERE;
        shown
    }

    /// Returns the guest's own state from one that KVM has saved.
    fn open(&self, mut state: CpuState) -> CpuState {
        // If the table differs from the shown one, the guest has loaded another.
        if state.idtr == (TableRegister { limit: CLOSED, ..self.idtr }) {
            state.idtr = self.idtr;
        }
        if state.msrs.lstar == NOWHERE {
            state.msrs.lstar = self.lstar;
        }
        if state.rip == NOWHERE {
            state.rip = state.gpr[RCX].wrapping_sub(SYSCALL_BYTES);
            state.rflags = state.gpr[R11] | RESUME;
            state.cr2 = self.cr2;
            // On a processor that executes SYSCALL correctly, CS is the kernel's by now. Kernels make no system calls, so
            // it was a program's.
            if state.seg[seg::CS].selector & 3 == 0 {
                let of_programs = |from_star, access| {
                    let selector = (self.star >> 48) as u16;
                    Segment {
                        selector: selector.wrapping_add(from_star) | 3,
                        base: 0,
                        limit: u32::MAX,
                        access,
                    }
                };
                state.seg[seg::CS] = of_programs(16, 0xa0fb);
                state.seg[seg::SS] = of_programs(8, 0xc0f3);
            }
        }
        state
    }
}

/// Processor with closed gates.
#[derive(Debug)]
pub struct Closed {
    cpu: Box<dyn Processor>,
    gates: Gates,
}

impl Closed {
    /// Closes this processor's gates.
    pub fn new(cpu: Box<dyn Processor>) -> Closed {
        Closed { cpu, gates: Gates::default() }
    }
}

impl Processor for Closed {
    fn delivers(&self) -> bool {
        false
    }
    fn run(&mut self) -> Result<KvmExit, KvmError> {
        self.cpu.run()
    }
    fn finish(&mut self) -> Result<Option<KvmExit>, KvmError> {
        self.cpu.finish()
    }
    fn answer_mmio(&mut self, value: u64) {
        self.cpu.answer_mmio(value);
    }
    fn answer_msr(&mut self, value: Option<u64>) {
        self.cpu.answer_msr(value);
    }
    fn port_data(&mut self, size: u8, count: u32) -> &mut [u8] {
        self.cpu.port_data(size, count)
    }
    fn is_at_port(&mut self) -> bool {
        self.cpu.is_at_port()
    }
    fn interrupt(&mut self, _: u8) -> Result<(), KvmError> {
        Err(KvmError::Exit("an interrupt at closed gates".to_owned()))
    }
    fn ready_for_interrupt(&mut self) -> bool {
        self.cpu.ready_for_interrupt()
    }
    fn request_window(&mut self, on: bool) {
        self.cpu.request_window(on);
    }
    fn priority(&mut self) -> u8 {
        self.cpu.priority()
    }
    fn load(&mut self, state: &CpuState) -> Result<(), KvmError> {
        let shown = self.gates.close(state);
        self.cpu.load(&shown)
    }
    fn save(&mut self) -> Result<Saved, KvmError> {
        let Saved { state, queued } = self.cpu.save()?;
        Ok(Saved { state: self.gates.open(state), queued })
    }
    fn save_place(&mut self) -> Result<CpuState, KvmError> {
        let place = self.cpu.save_place()?;
        Ok(self.gates.open(place))
    }
    fn queued(&mut self) -> Result<Queued, KvmError> {
        self.cpu.queued()
    }
    fn take_dirty_pages(&mut self) -> Result<Vec<u64>, KvmError> {
        self.cpu.take_dirty_pages()
    }
    fn forget_memory(&mut self) -> Result<(), KvmError> {
        self.cpu.forget_memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> CpuState {
        let mut state = CpuState { rip: 0x1000, cr2: 0x2000, rflags: 0x202, ..CpuState::default() };
        state.idtr = TableRegister { base: 0x3000, limit: 0xfff };
        state.msrs.lstar = 0x4000;
        state.msrs.star = 0x23 << 48 | 0x10 << 32;
        state
    }

    #[test]
    fn what_was_shown_is_never_saved() {
        let mut gates = Gates::default();
        let shown = gates.close(&guest());
        assert_eq!((shown.idtr, shown.msrs.lstar), (TableRegister { base: 0x3000, limit: CLOSED }, NOWHERE));
        assert_eq!(gates.open(shown), guest());
    }

    #[test]
    fn what_the_guest_loads_itself_is_its_own() {
        let mut gates = Gates::default();
        let mut state = gates.close(&guest());
        let (idtr, lstar) = (TableRegister { base: 0x5000, limit: CLOSED }, 0x6000);
        (state.idtr, state.msrs.lstar) = (idtr, lstar);
        let saved = gates.open(state);
        assert_eq!((saved.idtr, saved.msrs.lstar), (idtr, lstar));
    }

    #[test]
    fn a_system_call_that_led_nowhere_is_about_to_be_made() {
        let mut gates = Gates::default();
        let mut state = gates.close(&guest());
        state.seg[seg::CS].selector = 0x10;
        // As the processor leaves it: after SYSCALL, with masked flags, and with the address of the failed fetch in CR2.
        (state.gpr[RCX], state.gpr[R11]) = (0x1002, 0x246);
        (state.rip, state.rflags, state.cr2) = (NOWHERE, RESUME | 2, NOWHERE);
        let saved = gates.open(state);
        assert_eq!((saved.rip, saved.rflags, saved.cr2), (0x1000, RESUME | 0x246, 0x2000));
        let selectors = [seg::CS, seg::SS].map(|which| saved.seg[which].selector);
        assert_eq!(selectors, [0x33, 0x2b], "the segments must be a program's");
    }
}
