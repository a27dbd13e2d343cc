//! Planted leaks: sources of nondeterminism that a test puts into a machine on purpose. The determinism checks must
//! find and localise them. All are off unless a test switches one on.
//!
//! The test supplies the noise, because `vmm` code that a guest can observe may not read host time (`clippy.toml`). A
//! further leak is in the CPU: it keeps stale TLB entries (`SoftEngine::leak_stale_translations`).

/// Source of noise. It returns different numbers from call to call and from run to run, like a host's clock.
pub type Noise = fn() -> u32;

/// Leaks that a test plants in a machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Leak {
    /// Noise in MMIO reads: in the LAPIC's current count and in virtio's interrupt status.
    pub mmio: Option<Noise>,
    /// Noise in the LAPIC timer: it decides at which expiries the LAPIC loses a requested interrupt.
    pub lapic_bit: Option<Noise>,
}

/// Average number of timer expiries per lost interrupt.
const LOST_ONE_IN: u32 = 64;

impl Leak {
    /// Returns the noise for an MMIO value of 32 bits; 0 if this leak is off.
    pub(crate) fn mmio_noise(&self) -> u32 {
        self.mmio.map_or(0, |noise| noise())
    }
    /// True if the LAPIC loses a requested interrupt now.
    pub(crate) fn loses_interrupt(&self) -> bool {
        self.lapic_bit.is_some_and(|noise| noise().is_multiple_of(LOST_ONE_IN))
    }
}
