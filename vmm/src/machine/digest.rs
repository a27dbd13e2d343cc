//! The machine's digest: the parts that it covers, and the hashes that are kept from one digest to the next.
//!
//! In clock modes `exit` and `branch` a digest is the same on all engines. Three things are therefore left out: RAM,
//! because processors set accessed bits in page tables at different times, and some set more than others; registers
//! in which makes of processors differ ([`registers`](crate::digest::registers)); and the registers of a CPU that
//! ended within an instruction.

use everett_cpu::CpuState;
use everett_snapshot::PageHash;

use super::{End, Machine};
use crate::clock::ClockMode;
use crate::digest::registers::compared;
use crate::digest::{Breakdown, Digest, serialized};
use crate::disk::{BLOCK, Disk};
use crate::engine::Engine;
use crate::layout::PAGE;

const _: () = assert!(BLOCK == PAGE);

impl Machine {
    /// Returns the digest of everything that determines the machine's further execution.
    pub fn digest(&mut self) -> Digest {
        self.breakdown().total()
    }

    /// Returns the digests of the machine's parts.
    pub fn breakdown(&mut self) -> Breakdown {
        let cpu = self.compared_registers();
        let memory = match self.clock_mode() {
            ClockMode::Insn => {
                self.update_memory_hashes();
                Some(("memory".to_owned(), self.digest.memory.sum().digest()))
            }
            ClockMode::Exit | ClockMode::Branch => None,
        };
        self.note_failure();
        let mut parts =
            vec![("cpu".to_owned(), serialized(&cpu)), ("devices".to_owned(), serialized(&self.state))];
        parts.extend(memory);
        let disks = self.disk_digests();
        parts.extend(disks.into_iter().enumerate().map(|(i, digest)| (format!("disk {i}"), digest)));
        Breakdown { parts }
    }

    /// Returns the digests of the disks. The engine is not involved.
    pub(crate) fn disk_digests(&mut self) -> Vec<Digest> {
        self.disks.iter_mut().map(Disk::digest).collect()
    }

    /// Hashes the pages that were written since the last call.
    pub(crate) fn update_memory_hashes(&mut self) {
        for page in self.take_written_pages() {
            // An engine reports only pages of RAM.
            let Some(content) = self.ram.page(page) else { continue };
            // A page of zeroes has no hash, so a page that was never written equals one that is zero again.
            self.digest.memory.set(page, PageHash::of_nonzero(content), self.memory.hash(page));
        }
    }

    /// Returns the registers that digests cover: [`compared`]. If the CPU ended within an instruction, only the count
    /// and the end remain, except in clock mode `insn`.
    #[must_use]
    pub fn compared_registers(&self) -> CpuState {
        let clock = self.clock_mode();
        let cpu = compared(clock, self.engine.state());
        if clock != ClockMode::Insn && self.end().is_some_and(End::is_within_an_instruction) {
            return CpuState { icount: cpu.icount, dead: cpu.dead, ..CpuState::default() };
        }
        cpu
    }
}
