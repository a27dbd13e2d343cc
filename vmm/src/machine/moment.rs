//! Moments of a machine: everything that determines its further execution, stored while the machine does not run. A
//! moment can be restored later, in the same machine or in another machine with the same configuration.
//!
//! Registers, devices, timers and random streams become one byte string in a versioned format. Memory and disks are
//! images that share unchanged pages with other moments (`everett-snapshot`). Taking a moment costs time in proportion
//! to the pages written since the last moment. Restoring costs time in proportion to the pages that differ from the
//! moment.
//!
//! A moment does not contain output that waits for an observer (console bytes, port writes, frames, notes), so the
//! caller takes output first. The only output in a moment is the unfinished console line, whose end comes later.
//!
//! **Invariants.** Taking a moment changes nothing. After a restore, the machine has the same digest as when the moment
//! was taken, and continues exactly as it did then.

use std::fmt;
use std::sync::Arc;

use everett_cpu::{CpuModel, CpuState, Extended};
use everett_input::causes::with_causes;
use everett_snapshot::{PageImage, Pool};
use serde::{Deserialize, Serialize};

use super::{Machine, State};
use crate::clock::ClockMode;
use crate::digest::LeafSum;
use crate::disk::{DiskMoment, DiskParts};
use crate::engine::Engine;
use crate::layout::PAGE;

/// Version of the stored state. Any change to a field of a device, of the CPU or of the machine requires a new version.
pub const STATE_VERSION: u32 = 5;

/// Reason why a moment cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    /// Another version of Everett stored the state.
    #[error("its state has version {0}, this program reads version {STATE_VERSION}")]
    Version(u32),
    /// The state cannot be decoded, or no machine can have it.
    #[error("its state is damaged: {0}")]
    Damaged(String),
    /// The moment belongs to a machine with a different configuration.
    #[error("it was taken on another kind of machine: {what}: {moment} there, {machine} here")]
    Other {
        /// Property that differs.
        what: &'static str,
        /// Value in the moment.
        moment: String,
        /// Value in the machine.
        machine: String,
    },
}

/// Snapshot of a machine.
#[derive(Debug, Clone)]
pub struct Moment {
    vtime: u64,
    icount: u64,
    state: Arc<[u8]>,
    memory: PageImage,
    memory_sum: LeafSum,
    disks: Vec<DiskMoment>,
}

impl Moment {
    /// Returns the vtime in nanoseconds.
    pub fn vtime(&self) -> u64 {
        self.vtime
    }
    /// Returns the count of the clock: retired instructions, exits or branches, by clock mode.
    pub fn icount(&self) -> u64 {
        self.icount
    }
    /// Returns CPU, devices, timers and random streams, in the format of [`STATE_VERSION`].
    pub fn state(&self) -> &[u8] {
        &self.state
    }
    /// Returns the guest memory.
    pub fn memory(&self) -> &PageImage {
        &self.memory
    }
    /// Returns the disks in the order of the machine's configuration.
    pub fn disks(&self) -> &[DiskMoment] {
        &self.disks
    }
    /// Returns this moment with `memory` as its memory, which may have a different base but must have the same content.
    #[must_use]
    pub fn on(&self, memory: PageImage) -> Moment {
        Moment { memory, ..self.clone() }
    }

    /// Returns a moment made of the parts that a file stores. Computes the sums of the page hashes from the images.
    ///
    /// # Errors
    /// Returns an error if the state has another version or is damaged, or if a disk is damaged.
    pub fn from_parts(
        version: u32,
        state: Arc<[u8]>,
        memory: PageImage,
        disks: &[DiskParts],
    ) -> Result<Moment, MomentError> {
        let stored = Stored::decode(version, &state)?;
        let icount = stored.cpus[0].icount;
        let vtime = stored.state.clock.vtime(icount);
        let memory_sum = LeafSum::of(memory.present().map(|(page, hash, _)| (page, hash)));
        let disk = |(index, parts)| {
            DiskMoment::from_parts(parts)
                .map_err(|e| MomentError::Damaged(format!("disk {index}: {}", with_causes(&e))))
        };
        let disks = disks.iter().enumerate().map(disk).collect::<Result<_, _>>()?;
        Ok(Moment { vtime, icount, state, memory, memory_sum, disks })
    }
}

/// State of a machine without memory and disks, decoded. The list of CPUs has one element.
#[derive(Deserialize)]
struct Stored {
    cpus: Vec<CpuState>,
    state: State,
    partial_line: Vec<u8>,
    stopped_at: Option<u64>,
    /// Model of the CPU, which is not part of this struct's serialised form.
    #[serde(skip)]
    model: CpuModel,
}

/// The same state as [`Stored`], borrowed, for encoding. Both structs must have the same serialised form. [`ExtendedState`]
/// follows it.
#[derive(Serialize)]
struct StoredRef<'a> {
    cpus: &'a [CpuState],
    state: &'a State,
    partial_line: &'a [u8],
    stopped_at: Option<u64>,
}

/// Model of the CPU with its registers, appended to a stored state unless the model is `v2`.
#[derive(Serialize, Deserialize)]
struct ExtendedState {
    model: CpuModel,
    extended: Extended,
}

impl Stored {
    fn decode(version: u32, bytes: &[u8]) -> Result<Stored, MomentError> {
        if version != STATE_VERSION {
            return Err(MomentError::Version(version));
        }
        let damaged = |what: &dyn fmt::Display| MomentError::Damaged(what.to_string());
        let (mut stored, mut rest): (Stored, _) =
            postcard::take_from_bytes(bytes).map_err(|e| damaged(&e))?;
        let mode = stored.state.clock.mode();
        if stored.state.legacy.is_some() != (mode != ClockMode::Insn)
            || stored.state.slice.is_some() != (mode == ClockMode::Branch)
        {
            return Err(damaged(&format_args!("its devices are not those of clock mode {mode}")));
        }
        let count = stored.cpus.len();
        let [cpu] = &mut stored.cpus[..] else {
            return Err(damaged(&format_args!("{count} CPUs; this version has one")));
        };
        if !rest.is_empty() {
            let end: ExtendedState;
            (end, rest) = postcard::take_from_bytes(rest).map_err(|e| damaged(&e))?;
            if end.model == CpuModel::V2 {
                return Err(damaged(&"registers that its CPU does not have"));
            }
            (stored.model, cpu.extended) = (end.model, end.extended);
        }
        if !cpu.fits(stored.model) {
            return Err(damaged(&format_args!(
                "registers that a CPU of the model {} cannot have",
                stored.model
            )));
        }
        if !rest.is_empty() {
            return Err(damaged(&format_args!("{} bytes too many", rest.len())));
        }
        if !stored.state.clock.is_sound() {
            return Err(damaged(&"the clock"));
        }
        if !stored.state.rtc.is_sound() {
            return Err(damaged(&"the RTC"));
        }
        Ok(stored)
    }
}

impl Machine {
    /// Takes a moment. Stores the pages written since the last moment in `pool`, which stores equal pages once.
    pub fn moment(&mut self, pool: &Pool) -> Moment {
        self.update_memory_hashes();
        for &page in self.changed.pages() {
            // Written pages lie within the image. The update above has hashed each of them that differs from the image.
            if let (Some(content), Some(hash)) = (self.ram.page(page), self.digest.memory.recent(page)) {
                self.memory.set_hashed(pool, page, hash, content);
            }
        }
        self.changed.clear();
        let memory_sum = self.digest.memory.sum();
        self.digest.memory.moment(memory_sum);

        let disks = self.disks.iter_mut().map(|disk| disk.moment(pool)).collect();
        let cpu = self.engine.state();
        // If reading the engine's state failed, `note_failure` ends the machine. The moment must contain the end of the
        // machine, so that nothing continues from an invalid state.
        self.note_failure();
        let stored = StoredRef {
            cpus: &[cpu],
            state: &self.state,
            partial_line: self.output.partial_line(),
            stopped_at: self.stopped_at,
        };
        // The state is plain data, so its serialisation cannot fail.
        let mut state = postcard::to_stdvec(&stored).unwrap_or_default();
        let model = self.engine.cpu_model();
        if model != CpuModel::V2 {
            let extended = stored.cpus[0].extended.clone();
            state.extend(postcard::to_stdvec(&ExtendedState { model, extended }).unwrap_or_default());
        }
        let state = state.into();
        let (vtime, icount) = (self.vtime(), self.icount());
        Moment { vtime, icount, state, memory: self.memory.clone(), memory_sum, disks }
    }

    /// Restores the machine to `moment`. Drops output that no observer has taken.
    ///
    /// # Errors
    /// Returns an error if the moment's state is invalid or belongs to a machine with a different configuration. The
    /// machine is then unchanged.
    pub fn restore(&mut self, moment: &Moment) -> Result<(), MomentError> {
        let stored = Stored::decode(STATE_VERSION, &moment.state)?;
        self.check(&stored, moment)?;

        self.take_written_pages();
        let Machine { changed, memory, ram, .. } = self;
        memory.differing(&moment.memory, |page| changed.insert(page));
        for &page in changed.pages() {
            ram.replace(page, moment.memory.page(page));
        }
        self.engine.memory_replaced(self.changed.pages());
        self.changed.clear();
        self.memory = moment.memory.clone();
        self.digest.memory.moment(moment.memory_sum);
        for (disk, then) in self.disks.iter_mut().zip(&moment.disks) {
            disk.restore(then);
        }
        self.install(stored);
        self.note_failure();
        Ok(())
    }

    /// Compares the whole memory with that of `moment`. Returns the number of the first page that differs.
    pub fn differing_page(&self, moment: &Moment) -> Option<u64> {
        let zeroes = [0; PAGE as usize];
        let same = |page: u64| self.ram.page(page) == Some(moment.memory.page(page).unwrap_or(&zeroes));
        (0..self.ram.len() / PAGE).find(|&page| !same(page))
    }

    /// Sets registers, devices and everything else except memory and disks.
    fn install(&mut self, stored: Stored) {
        self.engine.set_state(&stored.cpus[0]);
        self.state = stored.state;
        self.engine.set_tsc(self.state.tsc());
        self.output.restart(stored.partial_line);
        self.stopped_at = stored.stopped_at;
        // The caller may have left accesses of the abandoned run here. The next run must not report them.
        self.observers.accesses.clear();
        if let Some(journal) = &mut self.journal {
            journal.clear();
        }
    }

    /// Checks that `moment` belongs to a machine with the same configuration.
    fn check(&self, Stored { state, model, .. }: &Stored, moment: &Moment) -> Result<(), MomentError> {
        fn same<T: PartialEq + fmt::Debug>(
            what: &'static str,
            moment: T,
            machine: T,
        ) -> Result<(), MomentError> {
            if moment == machine {
                return Ok(());
            }
            Err(MomentError::Other { what, moment: format!("{moment:?}"), machine: format!("{machine:?}") })
        }
        if *model != self.engine.cpu_model() {
            let (moment, machine) = (model.to_string(), self.engine.cpu_model().to_string());
            return Err(MomentError::Other { what: "CPU model", moment, machine });
        }
        same("pages of memory", moment.memory.pages(), self.ram.len() / PAGE)?;
        same("disks", moment.disks.len(), self.disks.len())?;
        for (then, disk) in moment.disks.iter().zip(&self.disks) {
            if let Some((what, moment, machine)) = then.make.difference(&disk.make()) {
                return Err(MomentError::Other { what, moment, machine });
            }
        }
        same("devices", state.virtio.len(), self.state.virtio.len())?;
        for (moment, machine) in state.virtio.iter().zip(&self.state.virtio) {
            same("a device", moment.device().make(), machine.device().make())?;
        }
        same("clock mode", state.clock.mode(), self.state.clock.mode())?;
        same("instructions a second", state.clock.cpu_hz(), self.state.clock.cpu_hz())
    }

    /// Takes the numbers of all pages that the CPU or devices wrote since the last call.
    pub(crate) fn take_written_pages(&mut self) -> Vec<u64> {
        self.hand_over_device_writes();
        let pages = self.engine.take_dirty_pages();
        for &page in &pages {
            self.changed.insert(page);
        }
        pages
    }
}
