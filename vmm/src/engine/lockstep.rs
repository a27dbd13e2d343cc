//! Lockstep: a second CPU interprets everything that the first one executes, on its own memory, and the two are
//! compared.
//!
//! Both CPUs run to the same instruction counts. Two successive counts are at most a few thousand instructions apart,
//! and often only a few. At each count, the CPUs must agree in their exits, their registers and the content of the
//! pages that they wrote.
//! Writes of devices to the first CPU's memory are copied to the second CPU's memory.
#![allow(unsafe_code)]

use std::collections::BTreeSet;

use everett_cpu::{
    CacheConfig, Code, Cpu, CpuModel, CpuState, Edge, Exit, Ram, TscAnchor, Until, Watchpoint, WatchpointHit,
};
use vm_memory::GuestMemoryMmap;

use super::instants::Instants;
use crate::ram;

const PAGE: u64 = 4096;
/// Scale of the random distances between comparisons, in instructions. The guest does not notice comparisons.
const PIECE: u64 = 2048;

/// Reason why the two CPUs cannot continue together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parting {
    /// The CPUs differ in the way that the text describes.
    Differs(String),
    /// The interpreting CPU has panicked ([`Lockstep::failure`]), so no comparison is possible.
    Failed,
}

/// Interpreting CPU with its memory.
#[derive(Debug)]
pub(super) struct Lockstep {
    cpu: Cpu,
    /// Memory of the first CPU.
    theirs: Ram,
    ours: Ram,
    pieces: Instants,
    /// Pages that the interpreting CPU or a device wrote since the first CPU's dirty pages were last taken.
    written: BTreeSet<u64>,
    /// True if all of the memory must still be copied.
    fresh: bool,
    /// Keeps the mapping of `ours` alive.
    _memory: GuestMemoryMmap<()>,
}

impl Lockstep {
    /// Creates the interpreting CPU. `theirs` is the memory of the first CPU. Returns `None` if the host has too little
    /// memory for the copy of `theirs`.
    pub(super) fn new(theirs: Ram, caches: CacheConfig, model: CpuModel) -> Option<Lockstep> {
        let memory =
            GuestMemoryMmap::<()>::from_ranges(&[(vm_memory::GuestAddress(0), theirs.len() as usize)])
                .ok()?;
        let (base, len) = ram::whole(&memory)?;
        // SAFETY: the mapping has this length and lives as long as `_memory`. No other code has access to it.
        let ours = unsafe { Ram::new(base, len) };
        // SAFETY: as above; `ours` is used only while the CPU does not run.
        let cpus = unsafe { ours.another() };
        let caches = CacheConfig { translate_after: None, ..caches };
        let cpu = Cpu::sharing(cpus, &Code::of_model(caches, model));
        let (written, pieces) = (BTreeSet::new(), Instants::new(PIECE, 0, 0));
        Some(Lockstep { cpu, theirs, ours, pieces, written, fresh: true, _memory: memory })
    }
    /// Returns the count at which the two CPUs are compared next.
    pub(super) fn piece(&mut self, now: u64) -> u64 {
        self.pieces.advance(now);
        self.pieces.next()
    }
    /// Copies the first CPU's memory before the first run. Does nothing before later runs.
    pub(super) fn begin(&mut self) {
        if std::mem::take(&mut self.fresh) {
            self.copy(0, self.theirs.len());
        }
    }
    /// Returns the message of the interpreting CPU's panic, if any.
    pub(super) fn failure(&self) -> Option<&str> {
        self.cpu.failure()
    }
    /// Plants a defect: the interpreting CPU panics at its first CPUID instruction at or after this count.
    pub(super) fn leak_panic(&mut self, from: Option<u64>) {
        self.cpu.leak_panic(from);
    }
    /// Makes the interpreting CPU execute what the first CPU has just executed, and compares the two.
    ///
    /// # Errors
    /// Returns an error if the CPUs differ or the interpreting CPU panicked.
    pub(super) fn follow(&mut self, other: &Cpu, until: Until, ended: Exit) -> Result<(), Parting> {
        let before = self.cpu.icount();
        let exit = self.cpu.run(until);
        let after = self.cpu.icount();
        if exit == Exit::Failed {
            return Err(Parting::Failed);
        }
        let place = |what| Parting::Differs(format!("{what}, between instructions {before} and {after}"));
        if exit != ended {
            return Err(place(format!("translated code ended with {ended:x?}, interpreted with {exit:x?}")));
        }
        let (theirs, ours) = (other.state(), self.cpu.state());
        if theirs != ours {
            return Err(place(difference(&theirs, &ours)));
        }
        let (theirs, ours) = (other.branches(), self.cpu.branches());
        if theirs != ours {
            return Err(place(format!(
                "{theirs} branches were counted in translated code, {ours} in interpreted code"
            )));
        }
        for page in self.cpu.take_dirty_pages() {
            if !self.theirs.same(page * PAGE, &self.ours, page * PAGE, PAGE) {
                return Err(place(format!("page {page:#x} differs")));
            }
            self.written.insert(page);
        }
        Ok(())
    }
    /// Compares the pages that the interpreting CPU wrote with `pages`, which the first CPU wrote.
    pub(super) fn dirty(&mut self, pages: &[u64]) -> Result<(), String> {
        let mut written = std::mem::take(&mut self.written);
        written.extend(self.cpu.take_dirty_pages());
        if !written.iter().eq(pages) {
            return Err("translated and interpreted code wrote different pages".to_owned());
        }
        Ok(())
    }
    pub(super) fn set_watchpoints(&mut self, points: &[Watchpoint]) {
        self.cpu.set_watchpoints(points);
    }
    pub(super) fn set_breakpoints(&mut self, addresses: &[u64]) {
        self.cpu.set_breakpoints(addresses);
    }
    pub(super) fn stop_at_mode_changes(&mut self, on: bool) {
        self.cpu.stop_at_mode_changes(on);
    }
    /// Compares the watchpoint hits of both CPUs.
    pub(super) fn hits(&mut self, theirs: &[WatchpointHit]) -> Result<(), String> {
        if self.cpu.take_hits() != theirs {
            return Err("translated and interpreted code hit different watchpoints".to_owned());
        }
        Ok(())
    }
    /// Compares the new branch edges of both CPUs.
    pub(super) fn edges(&mut self, theirs: &[Edge]) -> Result<(), String> {
        if self.cpu.take_edges() != theirs {
            return Err("translated and interpreted code recorded different edges".to_owned());
        }
        Ok(())
    }
    pub(super) fn forget_edges(&mut self) {
        self.cpu.forget_edges();
    }
    pub(super) fn complete(&mut self, value: u64) {
        self.cpu.complete(value);
    }
    pub(super) fn interrupt(&mut self, vector: u8) {
        self.begin();
        self.cpu.interrupt(vector);
    }
    pub(super) fn set_tsc(&mut self, anchor: TscAnchor) {
        self.cpu.set_tsc(anchor);
    }
    pub(super) fn set_state(&mut self, state: &CpuState) {
        self.cpu.set_state(state);
    }
    pub(super) fn memory_written(&mut self, gpa: u64, len: u64) {
        self.copy(gpa, len);
        self.cpu.memory_written(gpa, len);
    }
    pub(super) fn memory_replaced(&mut self, pages: &[u64]) {
        pages.iter().for_each(|page| self.copy(page * PAGE, PAGE));
        self.written.clear();
        self.cpu.memory_replaced(pages);
    }
    /// Copies a range of the first CPU's memory. The part of the range beyond the end of RAM is ignored.
    fn copy(&mut self, gpa: u64, len: u64) {
        let len = len.min(self.theirs.len().saturating_sub(gpa));
        self.ours.copy_from(gpa, &self.theirs, len);
    }
}

/// Returns the lines in which the two states differ.
fn difference(translated: &CpuState, interpreted: &CpuState) -> String {
    let (a, b) = (format!("{translated:#x?}"), format!("{interpreted:#x?}"));
    let lines = a.lines().zip(b.lines()).filter(|(a, b)| a != b);
    let lines: Vec<String> = lines.map(|(a, b)| format!("{} / {}", a.trim(), b.trim())).collect();
    format!("state after translated / interpreted code: {}", lines.join(" "))
}
