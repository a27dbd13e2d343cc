//! Second CPU that interprets everything that the first one executes, on its own memory, and is compared with it.
//!
//! Both run to the same counts, at most a few thousand instructions apart and often only a few. At each count their
//! exits, their registers, and the bytes of the written pages must be equal. Writes of devices to the first CPU's
//! memory are copied.
#![allow(unsafe_code)]

use std::collections::BTreeSet;

use everett_cpu::{CacheConfig, Cpu, CpuState, Edge, Exit, Ram, TscAnchor, Until, Watchpoint, WatchpointHit};
use vm_memory::GuestMemoryMmap;

use super::instants::Instants;
use crate::ram;

const PAGE: u64 = 4096;
/// Scale of the distances between comparisons, in instructions. The guest does not notice comparisons.
const PIECE: u64 = 2048;

/// Reason for which the two CPUs cannot continue together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parting {
    /// They differ in the way that the text describes.
    Differs(String),
    /// The interpreting CPU has panicked ([`Lockstep::failure`]), so the two cannot be compared.
    Failed,
}

/// Interpreting CPU and its memory; see the module.
#[derive(Debug)]
pub(super) struct Lockstep {
    cpu: Cpu,
    /// Memory of the CPU that is compared with this one.
    theirs: Ram,
    ours: Ram,
    pieces: Instants,
    /// Pages that the CPU or a device wrote since the other CPU's dirty pages were last taken.
    written: BTreeSet<u64>,
    /// True if all of memory is still to be copied.
    fresh: bool,
    /// Keeps the mapping of `ours` alive.
    _memory: GuestMemoryMmap<()>,
}

impl Lockstep {
    /// Creates an interpreter for a CPU on this memory. Returns `None` if the host has no memory for the copy.
    pub(super) fn new(theirs: Ram, caches: CacheConfig) -> Option<Lockstep> {
        let memory =
            GuestMemoryMmap::<()>::from_ranges(&[(vm_memory::GuestAddress(0), theirs.len() as usize)])
                .ok()?;
        let (base, len) = ram::whole(&memory)?;
        // SAFETY: the mapping has this length and lives as long as `_memory`; no other code has access to it.
        let ours = unsafe { Ram::new(base, len) };
        // SAFETY: as above; `ours` is used only while the CPU does not run.
        let cpus = unsafe { ours.another() };
        let caches = CacheConfig { translate_after: None, ..caches };
        let (cpu, written, pieces) = (Cpu::new(cpus, caches), BTreeSet::new(), Instants::new(PIECE, 0, 0));
        Some(Lockstep { cpu, theirs, ours, pieces, written, fresh: true, _memory: memory })
    }
    /// Returns the count up to which to execute before the two are compared.
    pub(super) fn piece(&mut self, now: u64) -> u64 {
        self.pieces.advance(now);
        self.pieces.next()
    }
    /// Copies the other CPU's memory before the first run.
    pub(super) fn begin(&mut self) {
        if std::mem::take(&mut self.fresh) {
            self.copy(0, self.theirs.len());
        }
    }
    /// Returns the message of the interpreting CPU's panic, if it has panicked.
    pub(super) fn failure(&self) -> Option<&str> {
        self.cpu.failure()
    }
    /// Plants a defect: the interpreting CPU's first CPUID at or after this count panics.
    pub(super) fn leak_panic(&mut self, from: Option<u64>) {
        self.cpu.leak_panic(from);
    }
    /// Executes what the other CPU has just executed, and compares the two.
    ///
    /// # Errors
    /// Returns an error if the two differ, or the interpreting CPU panicked.
    pub(super) fn follow(&mut self, other: &Cpu, until: Until<'_>, ended: Exit) -> Result<(), Parting> {
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
    /// Compares the written pages with `pages`, those that the other CPU wrote.
    pub(super) fn dirty(&mut self, pages: &[u64]) -> Result<(), String> {
        let mut written = std::mem::take(&mut self.written);
        written.extend(self.cpu.take_dirty_pages());
        if !written.iter().eq(pages) {
            return Err("translated code wrote other pages than interpreted code".to_owned());
        }
        Ok(())
    }
    pub(super) fn set_watchpoints(&mut self, points: &[Watchpoint]) {
        self.cpu.set_watchpoints(points);
    }
    /// Compares the watchpoint hits with those of the other CPU.
    pub(super) fn hits(&mut self, theirs: &[WatchpointHit]) -> Result<(), String> {
        if self.cpu.take_hits() != theirs {
            return Err("translated code hit other watchpoints than interpreted code".to_owned());
        }
        Ok(())
    }
    /// Compares the new edges with those of the other CPU.
    pub(super) fn edges(&mut self, theirs: &[Edge]) -> Result<(), String> {
        if self.cpu.take_edges() != theirs {
            return Err("translated code recorded other edges than interpreted code".to_owned());
        }
        Ok(())
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
    /// Copies a range of the other CPU's memory, up to its end.
    fn copy(&mut self, gpa: u64, len: u64) {
        let len = len.min(self.theirs.len().saturating_sub(gpa));
        self.ours.copy_from(gpa, &self.theirs, len);
    }
}

/// Returns the fields that differ.
fn difference(translated: &CpuState, interpreted: &CpuState) -> String {
    let (a, b) = (format!("{translated:#x?}"), format!("{interpreted:#x?}"));
    let lines = a.lines().zip(b.lines()).filter(|(a, b)| a != b);
    let lines: Vec<String> = lines.map(|(a, b)| format!("{} / {}", a.trim(), b.trim())).collect();
    format!("state after translated / interpreted code: {}", lines.join(" "))
}
