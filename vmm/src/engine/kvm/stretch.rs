//! Executes on the soft CPU the last branch instructions before an exact stop. The host's processor can be stopped only
//! near a requested branch instruction, so it stops earlier, and the soft CPU continues up to the requested one.
//!
//! The soft CPU interprets these instructions and translates none. Most of them execute only a few times, so
//! translating them would take longer.

use everett_cpu::{Cpu, CpuState, Exit, Request, TscAnchor, Until};

use super::bridge::{Bridge, Memory};

/// Way in which a stretch (the last branches before a stop) ended, with the number of its branches.
#[derive(Debug)]
pub(super) enum Stretched {
    /// The stretch reached its last branch or an interrupt window, or the CPU halted or died. If `endless` is true, the
    /// stretch was ended after [`Memory::limit`] instructions without a branch.
    Done { state: Box<CpuState>, written: Vec<u64>, branches: u64, endless: bool },
    /// The stretch ended within an instruction that accesses a device.
    Device { bridge: Box<Bridge>, request: Request, branches: u64 },
    /// The soft CPU panicked with this message.
    Failed(String),
}

impl Memory {
    /// Executes `branches` branches. Ends earlier at an exit or, if `window` is true, at an interrupt window.
    pub(super) fn stretch(
        &mut self,
        state: &CpuState,
        tsc: TscAnchor,
        branches: u64,
        window: bool,
    ) -> Stretched {
        let mut cpu = self.cpu(state);
        cpu.set_tsc(tsc);
        let (mut seen, mut progress) = (0, 0);
        loop {
            // An instruction retires one branch at most, so `missing` instructions do not go past the last branch.
            let missing = branches - cpu.branches();
            if missing == 0 {
                return self.done(cpu, false);
            }
            if cpu.icount() - progress >= self.limit() {
                return self.done(cpu, true);
            }
            let icount = cpu.icount() + missing;
            let exit = cpu.run(Until { icount, window, passing: false });
            if cpu.branches() != seen {
                (seen, progress) = (cpu.branches(), cpu.icount());
            }
            match exit {
                Exit::Count => {}
                Exit::Device(request) => {
                    let branches = cpu.branches();
                    return Stretched::Device {
                        bridge: Box::new(Bridge::asking(cpu, progress, self.limit())),
                        request,
                        branches,
                    };
                }
                Exit::Failed => {
                    return Stretched::Failed(cpu.failure().unwrap_or_default().to_owned());
                }
                // The CPU has halted or died (of a triple fault, for example). Its state says so, so this is an
                // ordinary end.
                _ => return self.done(cpu, false),
            }
        }
    }

    fn done(&mut self, mut cpu: Cpu, endless: bool) -> Stretched {
        let (state, written, branches) = (Box::new(cpu.state()), cpu.take_dirty_pages(), cpu.branches());
        self.keep(cpu);
        Stretched::Done { state, written, branches, endless }
    }
}
