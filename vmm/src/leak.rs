//! Planted leaks: defects that the determinism checks must catch and localise. Off unless a test switches one on.
//!
//! What leaks comes from whoever plants it: there is no host time under `vmm`. The stale translation is the CPU's
//! (`SoftEngine::leak_stale_translations`).

/// Gives another number each time, in a way that differs from run to run: a host's clock, for one.
pub type Noise = fn() -> u32;

/// Which leaks are planted in a machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Leak {
    /// This shows in MMIO reads: the LAPIC's current count and virtio's interrupt status.
    pub mmio: Option<Noise>,
    /// Now and then, as this has it, the LAPIC loses a requested interrupt.
    pub lapic_bit: Option<Noise>,
}

/// One in this many interrupts is lost.
const LOST_ONE_IN: u32 = 64;

impl Leak {
    /// What to XOR into an MMIO value of 32 bits.
    pub(crate) fn mmio_noise(&self) -> u32 {
        self.mmio.map_or(0, |noise| noise())
    }
    /// Whether the LAPIC loses the next request.
    pub(crate) fn loses_interrupt(&self) -> bool {
        self.lapic_bit.is_some_and(|noise| noise().is_multiple_of(LOST_ONE_IN))
    }
}
