//! Digest of a machine, with a cache of hashes that later digests reuse.
//!
//! In clock modes `exit` and `branch`, either the soft CPU or the host's processor can execute the guest, and a digest
//! must be the same on both. In these modes it therefore leaves out:
//! - RAM, because processors set accessed bits in page tables at different times, and some processors set more of them;
//! - registers in which vendors' processors differ ([`registers`](crate::digest::registers));
//! - all registers, if the machine ended in the middle of an instruction, e.g. by a triple fault. Engines may differ in
//!   how far they have executed this instruction.

use everett_cpu::{CpuModel, CpuState};
use everett_snapshot::{PageBytes, PageHash};

use super::{End, Machine};
use crate::clock::ClockMode;
use crate::digest::registers::compared;
use crate::digest::{Breakdown, Digest, serialized};
use crate::disk::{BLOCK, Disk};
use crate::engine::Engine;
use crate::layout::PAGE;

const _: () = assert!(BLOCK == PAGE);

/// Content of a page that the image does not have.
static ZEROES: PageBytes = [0; PAGE as usize];

impl Machine {
    /// Returns the digest of everything that determines the machine's further execution, except the state that this file's
    /// comment lists.
    pub fn digest(&mut self) -> Digest {
        self.breakdown().total()
    }

    /// Returns the digest of each part of the machine.
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
        let mut parts = vec![("cpu".to_owned(), serialized(&cpu))];
        if self.engine.cpu_model() != CpuModel::V2 {
            parts.push(("cpu extended".to_owned(), serialized(&cpu.extended)));
        }
        parts.push(("devices".to_owned(), serialized(&self.state)));
        parts.extend(memory);
        let disks = self.disk_digests();
        parts.extend(disks.into_iter().enumerate().map(|(i, digest)| (format!("disk {i}"), digest)));
        Breakdown { parts }
    }

    /// Returns the digests of the disks, without a query to the engine.
    pub(crate) fn disk_digests(&mut self) -> Vec<Digest> {
        self.disks.iter_mut().map(Disk::digest).collect()
    }

    /// Hashes the pages that were written since the last call, and whose content differs from that in the last moment.
    pub(crate) fn update_memory_hashes(&mut self) {
        let written = self.take_written_pages();
        let (image, leaves) = (&self.memory, &mut self.digest.memory);
        // Guests often write the bytes that are already there. Such a page has its hash in the last moment's image,
        // unless an earlier digest found another content.
        let is_changed = |page: u64, content| {
            leaves.recent(page).is_some() || image.page(page).unwrap_or(&ZEROES) != content
        };
        // An engine reports only pages of RAM.
        let written = written.into_iter().filter_map(|page| Some((page, self.ram.page(page)?)));
        let (pages, contents): (Vec<u64>, Vec<_>) =
            written.filter(|&(page, content)| is_changed(page, content)).unzip();
        // A page of zeroes has no hash. A page that is zero again thus equals one that was never written.
        for (page, hash) in pages.into_iter().zip(PageHash::of_each_nonzero(&contents)) {
            leaves.set(page, hash, || image.hash(page));
        }
    }

    /// Returns the registers that digests cover ([`compared`]). In clock modes `exit` and `branch`, if the machine ended
    /// in the middle of an instruction, all fields but `icount` and `dead` have their defaults.
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
