//! Delivery of exceptions and interrupts by the soft CPU. Normally the processor delivers them. The soft CPU delivers
//! only the exceptions and interrupts that KVM has queued when the engine reads the state. With closed gates, i.e. an
//! interrupt table that is too short for any entry ([`crate::kvm::gates`]), each delivery by the processor fails, so
//! the soft CPU delivers all of them.

use everett_cpu::state::Dead;
use everett_cpu::{Cpu, CpuState};

use super::{INTERRUPTS_ENABLED, Inner, Outcome, Pending};
use crate::kvm::gates::RESUME;
use crate::kvm::{KvmError, Queued};

/// RFLAGS.TF, which requests a single-step trap after each instruction.
const SINGLE_STEPS: u64 = 1 << 8;
/// DR6.BS, which reports a single-step trap.
const SINGLE_STEP: u64 = 1 << 14;
/// Vector of #DB, the debug exception.
const DEBUG: u8 = 1;
/// Opcodes of INT3 and INT1.
const TRAPS: [u8; 2] = [0xcc, 0xf1];
/// Opcode of POPF. A POPF that clears TF is still followed by a single-step trap.
const POPF: u8 = 0x9d;

impl Inner {
    /// Makes the soft CPU raise the exception that the processor could not deliver.
    pub(super) fn at_closed_gates(&mut self) -> Outcome {
        let saved = self.vcpu.save()?;
        let mut state = self.complete_state(saved.state);
        // A fault sets RF and leaves the registers as before the instruction. A trap leaves them as after the
        // instruction.
        if state.rflags & RESUME == 0 {
            let rip = state.rip.wrapping_sub(1);
            let mut before = [0];
            self.memory.read_virtual(&state, rip, &mut before);
            // Single steps are checked first, because the last byte of a single-stepped instruction may equal an opcode
            // in [`TRAPS`].
            if state.rflags & SINGLE_STEPS != 0 || before[0] == POPF {
                state.dr6 |= SINGLE_STEP;
                let delivered = self.delivered(&state, |cpu| cpu.exception(DEBUG, None))?;
                return self.take(&delivered).map(|()| None);
            }
            if TRAPS.contains(&before[0]) {
                state.rip = rip;
            }
        }
        let bridge = self.memory.step(&state, self.tsc_now());
        self.step(Box::new(bridge))
    }

    /// Makes the soft CPU deliver an interrupt.
    pub(super) fn deliver(&mut self, vector: u8) -> Result<(), KvmError> {
        let state = self.settled()?;
        if state.rflags & INTERRUPTS_ENABLED == 0 || state.shadow || state.dead.is_some() {
            return Err(KvmError::Exit("it allows an interrupt that the guest cannot take".to_owned()));
        }
        let delivered = self.delivered(&state, |cpu| cpu.interrupt(vector))?;
        self.take(&delivered)
    }
    /// Makes the soft CPU deliver an event, which writes guest memory. Returns the state after the delivery.
    pub(super) fn delivered(
        &mut self,
        state: &CpuState,
        deliver: impl FnOnce(&mut Cpu),
    ) -> Result<CpuState, KvmError> {
        let (state, written) = self.memory.deliver(state, deliver)?;
        self.wrote(written)?;
        Ok(state)
    }

    /// Delivers all exceptions and interrupts that KVM has queued. Returns the state after that. The guest cannot
    /// distinguish this from a later delivery.
    pub(super) fn settled(&mut self) -> Result<CpuState, KvmError> {
        let saved = self.vcpu.save()?;
        let queued = saved.queued;
        let state = self.complete_state(saved.state);
        // In the middle of an instruction, the engine cannot replace the state.
        if queued == Queued::default() || !matches!(self.pending, Pending::None) {
            return Ok(state);
        }
        if queued.triple_fault && !self.vcpu.delivers() {
            return Err(KvmError::Exit("a triple fault is queued while the gates are closed".to_owned()));
        }
        let mut delivered = self.delivered(&state, |cpu| {
            if let Some((vector, error)) = queued.exception {
                cpu.exception(vector, error);
            }
            if let Some(vector) = queued.interrupt {
                cpu.interrupt(vector);
            }
        })?;
        delivered.icount = self.count;
        if queued.triple_fault {
            delivered.dead = Some(Dead::Shutdown);
        }
        self.take(&delivered)?;
        Ok(delivered)
    }
}
