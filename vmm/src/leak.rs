//! Planted leaks: defects that the determinism checks must catch and localise. Off unless a test switches one on.
//!
//! The only place under `vmm` that may look at host time, and it does so for no other purpose. The stale translation is the
//! CPU's (`SoftEngine::leak_stale_translations`).
#![allow(clippy::disallowed_types)]

use std::time::Instant;

/// Which leaks are planted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Leak {
    /// Host time shows in MMIO reads: the LAPIC's current count and virtio's interrupt status.
    pub host_time: bool,
    /// Now and then, as the host's clock has it, the LAPIC loses a requested interrupt.
    pub lapic_bit: bool,
}

/// One in this many interrupts is lost.
const LOST_ONE_IN: u32 = 64;

/// The planted leaks of one machine.
#[derive(Debug)]
pub(crate) struct Planted {
    leak: Leak,
    start: Option<Instant>,
}

impl Planted {
    pub(crate) fn new(leak: Leak) -> Planted {
        let start = (leak != Leak::default()).then(Instant::now);
        Planted { leak, start }
    }
    /// What to XOR into an MMIO value of 32 bits.
    pub(crate) fn mmio_noise(&self) -> u32 {
        if self.leak.host_time { self.nanos() } else { 0 }
    }
    /// Whether the LAPIC loses the next request.
    pub(crate) fn loses_interrupt(&self) -> bool {
        self.leak.lapic_bit && self.nanos().is_multiple_of(LOST_ONE_IN)
    }
    fn nanos(&self) -> u32 {
        self.start.map_or(0, |start| start.elapsed().subsec_nanos())
    }
}
