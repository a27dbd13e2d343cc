//! Simulated processor that takes no time, and whose guest keeps writing to a port. It allows two measurements on any
//! host: the kvm engine's own work at an exit, and its work for an instruction that Everett's own CPU (the soft CPU)
//! executes in KVM's place.

use everett_cpu::CpuState;
use everett_vmm::kvm::{KvmError, KvmExit, Processor, Queued, Saved};

/// Port to which the guest writes.
const PORT: u16 = 0x80;

/// Processor that exits at once, with a write of one byte to a port.
#[derive(Debug)]
pub struct Instant {
    state: CpuState,
    data: [u8; 8],
    /// True if the last exit's instruction is not finished.
    pending: bool,
    /// True if an MSR access, which the soft CPU executes, precedes each port access.
    bridged: bool,
    /// True if the next exit is the MSR access.
    msr: bool,
}

impl Instant {
    /// Creates a processor whose registers are always `state`. With `bridged`, an MSR access, which the soft CPU
    /// executes, precedes each port access.
    #[must_use]
    pub fn new(state: CpuState, bridged: bool) -> Instant {
        Instant { state, data: [0; 8], pending: false, bridged, msr: bridged }
    }
}

impl Processor for Instant {
    fn run(&mut self) -> Result<KvmExit, KvmError> {
        self.pending = true;
        if std::mem::take(&mut self.msr) {
            return Ok(KvmExit::MsrRead { index: 0 });
        }
        self.msr = self.bridged;
        Ok(KvmExit::PioWrite { port: PORT, size: 1, count: 1 })
    }
    fn finish(&mut self) -> Result<Option<KvmExit>, KvmError> {
        self.pending = false;
        Ok(None)
    }
    fn answer_mmio(&mut self, _: u64) {}
    fn answer_msr(&mut self, _: Option<u64>) {}
    fn port_data(&mut self, size: u8, count: u32) -> &mut [u8] {
        &mut self.data[..usize::from(size) * count as usize]
    }
    fn is_at_port(&mut self) -> bool {
        self.pending
    }
    fn interrupt(&mut self, _: u8) -> Result<(), KvmError> {
        Ok(())
    }
    fn ready_for_interrupt(&mut self) -> bool {
        false
    }
    fn request_window(&mut self, _: bool) {}
    fn priority(&mut self) -> u8 {
        0
    }
    fn load(&mut self, _: &CpuState) -> Result<(), KvmError> {
        Ok(())
    }
    fn save(&mut self) -> Result<Saved, KvmError> {
        Ok(Saved { state: self.state.clone(), queued: Queued::default() })
    }
    fn save_place(&mut self) -> Result<CpuState, KvmError> {
        Ok(self.state.clone())
    }
    fn queued(&mut self) -> Result<Queued, KvmError> {
        Ok(Queued::default())
    }
    fn take_dirty_pages(&mut self) -> Result<Vec<u64>, KvmError> {
        Ok(Vec::new())
    }
    fn forget_memory(&mut self) -> Result<(), KvmError> {
        Ok(())
    }
}
