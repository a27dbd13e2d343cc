//! The last stretch to an exact branch, on the soft CPU: a processor can only be stopped near it.
//!
//! A CPU is made for each stretch, for KVM writes guest memory without telling. It interprets: nothing is executed often.

use everett_cpu::{CacheConfig, Cpu, CpuState, Exit as CpuExit, Request, TscAnchor, Until};

use super::bridge::{Bridge, Memory};

/// For some thousands of instructions, each a few times.
const CACHES: CacheConfig = CacheConfig {
    tlb_entries: 256,
    block_entries: 1 << 12,
    translate_after: None,
    edges: false,
    branches: true,
};

/// Instructions of a stretch at most. A guest that executes more without another branch has lost its way.
const INSTRUCTIONS_MAX: u64 = 1 << 31;

/// How it ended, and how many branches it had.
#[derive(Debug)]
pub(super) enum Stretched {
    /// At its branch, or where an interrupt can be taken, or with a CPU that halted or died.
    Done { state: Box<CpuState>, written: Vec<u64>, branches: u64 },
    /// Within an instruction that wants a device.
    Device { bridge: Box<Bridge>, request: Request, branches: u64 },
    /// It does not end.
    Endless,
    /// The CPU has panicked, with this message.
    Failed(String),
}

impl Memory {
    /// Execute so many branches, unless something comes before: an interrupt that can be taken, with `window`.
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
                CpuExit::Count => {}
                CpuExit::Device(request) => {
                    let branches = cpu.branches();
                    return Stretched::Device { bridge: Box::new(Bridge::asking(cpu)), request, branches };
                }
                CpuExit::Failed => {
                    return Stretched::Failed(cpu.failure().unwrap_or_default().to_owned());
                }
                // A CPU that halted or died is a state like any other.
                _ => return done(cpu),
            }
        }
    }
}

fn done(mut cpu: Cpu) -> Stretched {
    let (state, written, branches) = (Box::new(cpu.state()), cpu.take_dirty_pages(), cpu.branches());
    Stretched::Done { state, written, branches }
}
