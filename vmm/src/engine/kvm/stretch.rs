//! The last stretch to an exact branch, executed on the soft CPU, because a processor can only be stopped near a
//! branch.
//!
//! Each stretch gets a new CPU, because KVM writes guest memory without notice. The CPU only interprets, because it
//! executes most instructions only a few times.

use everett_cpu::{CacheConfig, Cpu, CpuState, Exit, Request, TscAnchor, Until};

use super::bridge::{Bridge, Memory};

/// Cache sizes for some thousands of instructions, each executed a few times.
const CACHES: CacheConfig = CacheConfig {
    tlb_entries: 256,
    block_entries: 1 << 12,
    translate_after: None,
    edges: false,
    branches: true,
};

/// Maximum number of instructions in a stretch. A guest that exceeds it executes next to no branches, so its time
/// stands still.
const INSTRUCTIONS_MAX: u64 = 1 << 31;

/// End of a stretch, with the number of its branches.
#[derive(Debug)]
pub(super) enum Stretched {
    /// The stretch ended at its branch, at an interrupt window, or with a CPU that halted or died.
    Done { state: Box<CpuState>, written: Vec<u64>, branches: u64 },
    /// The stretch ended within an instruction that accesses a device.
    Device { bridge: Box<Bridge>, request: Request, branches: u64 },
    /// The stretch exceeded [`INSTRUCTIONS_MAX`].
    Endless,
    /// The soft CPU panicked with this message.
    Failed(String),
}

impl Memory {
    /// Executes `branches` branches, or fewer if an exit or, with `window`, an interrupt window comes first.
    pub(super) fn stretch(&self, state: &CpuState, tsc: TscAnchor, branches: u64, window: bool) -> Stretched {
        let mut cpu = Cpu::new(self.ram(), CACHES);
        cpu.set_state(&CpuState { icount: 0, ..state.clone() });
        cpu.set_tsc(tsc);
        loop {
            // An instruction retires one branch at most.
            let missing = branches - cpu.branches();
            if missing == 0 {
                return done(cpu);
            }
            if cpu.icount() >= INSTRUCTIONS_MAX {
                return Stretched::Endless;
            }
            let icount = cpu.icount() + missing;
            match cpu.run(Until { icount, window, breakpoints: &[] }) {
                Exit::Count => {}
                Exit::Device(request) => {
                    let branches = cpu.branches();
                    return Stretched::Device { bridge: Box::new(Bridge::asking(cpu)), request, branches };
                }
                Exit::Failed => {
                    return Stretched::Failed(cpu.failure().unwrap_or_default().to_owned());
                }
                // A CPU that halted or died has a normal state.
                _ => return done(cpu),
            }
        }
    }
}

fn done(mut cpu: Cpu) -> Stretched {
    let (state, written, branches) = (Box::new(cpu.state()), cpu.take_dirty_pages(), cpu.branches());
    Stretched::Done { state, written, branches }
}
