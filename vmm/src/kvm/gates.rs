//! A vCPU with closed gates: exceptions, INT and SYSCALL end its run with a triple fault before they take effect, and
//! the soft CPU (Everett's own CPU) executes them.
//!
//! The kvm engine (the code that runs guests through KVM) uses closed gates on hosts that execute some of these events
//! wrongly. On one KVM that emulates ring 0 in software, for example, SYSCALL stays in ring 3. KVM gets an interrupt
//! descriptor table that is too short for any gate, and a SYSCALL target in an unmapped page. When the guest uses the
//! table or the target, the CPU raises a fault that it cannot deliver, then a double fault that it cannot deliver
//! either (SDM volume 3, 6.15), so the guest shuts down. If the event was a fault, the guest's registers are those
//! before the instruction, and RF is set. If it was a trap, they are those after the instruction, and RF is clear.
//! SYSCALL has already saved RIP and RFLAGS to RCX and R11.
//!
//! The guest can notice closed gates in these ways:
//! - SIDT returns the short table.
//! - LIDT replaces the short table by a table of the guest, until the engine next loads the registers. Until then, the
//!   guest's own handlers get its exceptions, also the page fault that SYSCALL raises at its unmapped target.
//! - A jump to [`NOWHERE`] looks like a system call with arbitrary flags.
//! - The guest's own breakpoints are lost. On kvm-intel, INT1 and single steps are lost, too: kvm-intel intercepts #DB
//!   and delivers it itself. The registers then look as if the next instruction had raised a fault.
//! - AMD processors lose the guest's registers at a shutdown (APM volume 2, 15.14.3).
//!
//! The engine therefore leaves the gates open if an exactness test has proved that the host executes SYSCALL correctly.
//! On all other hosts it closes them.
//!
//! **Invariant.** Saved states hold the guest's own table and SYSCALL target, never the values that KVM got.

use everett_cpu::CpuState;
use everett_cpu::state::{Segment, TableRegister, seg};

use super::error::KvmError;
use super::exit::KvmExit;
use super::processor::Processor;
use super::state::{Queued, Saved};

/// Limit of the interrupt descriptor table that KVM gets. It is too short for the first gate, and no real table has it.
const CLOSED: u16 = 6;
/// SYSCALL target that KVM gets: the last page. Kernels leave it unmapped, because they encode error codes as
/// pointers into this page.
const NOWHERE: u64 = 0xffff_ffff_ffff_f000;
/// Length of SYSCALL in bytes.
const SYSCALL_BYTES: u64 = 2;
/// RFLAGS.RF, which distinguishes faults (set) from traps (clear).
pub const RESUME: u64 = 1 << 16;
const RCX: usize = 1;
const R11: usize = 11;

/// Guest values that [`Gates::close`] remembers, so that [`Gates::open`] can compute the guest's state from KVM's.
#[derive(Debug, Clone, Copy, Default)]
struct Gates {
    idtr: TableRegister,
    lstar: u64,
    /// CR2 at the last load, because the page fault at [`NOWHERE`] overwrites CR2.
    cr2: u64,
    star: u64,
}

impl Gates {
    /// Remembers the guest's table and SYSCALL target from `state`, and returns `state` with the replacements for KVM.
    fn close(&mut self, state: &CpuState) -> CpuState {
        let msrs = &state.msrs;
        *self = Gates { idtr: state.idtr, lstar: msrs.lstar, star: msrs.star, cr2: state.cr2 };
        let mut shown = state.clone();
        shown.idtr.limit = CLOSED;
        shown.msrs.lstar = NOWHERE;
        shown
    }

    /// Returns the guest's state, computed from a state that KVM has saved.
    fn open(&self, mut state: CpuState) -> CpuState {
        // A table that differs from the replacement was loaded by the guest.
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
            // A processor that executes SYSCALL correctly has loaded the kernel's CS. Kernels make no system calls, so
            // a program made this one and its CS must be restored.
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

/// Processor whose gates are closed.
#[derive(Debug)]
pub struct Closed {
    cpu: Box<dyn Processor>,
    gates: Gates,
}

impl Closed {
    /// Closes the gates of `cpu`.
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
        // Registers as the processor leaves them: after SYSCALL, with masked flags, and with the address of the failed
        // fetch in CR2.
        (state.gpr[RCX], state.gpr[R11]) = (0x1002, 0x246);
        (state.rip, state.rflags, state.cr2) = (NOWHERE, RESUME | 2, NOWHERE);
        let saved = gates.open(state);
        assert_eq!((saved.rip, saved.rflags, saved.cr2), (0x1000, RESUME | 0x246, 0x2000));
        let selectors = [seg::CS, seg::SS].map(|which| saved.seg[which].selector);
        assert_eq!(selectors, [0x33, 0x2b], "the segments must be a program's");
    }
}
