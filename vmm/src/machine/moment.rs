//! Moments of a machine: everything that decides what happens next, taken at a stop and brought back later, in this
//! machine or in another one of the same make.
//!
//! Registers, devices, timers and streams are one string of bytes in a versioned form; memory and disks are images that
//! share what did not change with other moments (`everett-snapshot`). Taking a moment costs the pages written since the
//! last one, restoring costs the pages in which the machine differs from it.
//!
//! What an observer has not taken out yet (console bytes, port writes, frames, notes) is not part of a moment: take it out
//! first. Of the output only the line that the console has begun is, since it ends later.
//!
//! **Invariants.** Taking a moment changes nothing. After a restore the machine goes on exactly as it did when the moment
//! was taken, whatever it did in between, and its digest is the one of then.

use std::fmt;
use std::sync::Arc;

use everett_cpu::CpuState;
use everett_snapshot::{Image, Pool};
use serde::{Deserialize, Serialize};

use super::{Machine, State};
use crate::clock::ClockMode;
use crate::digest::LeafSum;
use crate::disk::{DiskMoment, DiskParts};
use crate::engine::Engine;
use crate::layout::PAGE;

/// The version of the stored state. Anything that changes a field of a device, of the CPU or of the machine takes a new one.
pub const STATE_VERSION: u32 = 4;

/// Why a moment cannot be brought back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    /// Another version wrote it.
    #[error("its state has version {0}, this program reads version {STATE_VERSION}")]
    Version(u32),
    /// The state is not one of a machine.
    #[error("its state is damaged: {0}")]
    Damaged(String),
    /// It is a moment of another make of machine.
    #[error("it was taken on another kind of machine: {what}: {moment} there, {machine} here")]
    Other {
        /// What differs.
        what: &'static str,
        /// In the moment.
        moment: String,
        /// In the machine.
        machine: String,
    },
}

/// Where a machine was.
#[derive(Debug, Clone)]
pub struct Moment {
    vtime: u64,
    icount: u64,
    state: Arc<[u8]>,
    memory: Image,
    memory_sum: LeafSum,
    disks: Vec<DiskMoment>,
}

impl Moment {
    /// Nanoseconds of vtime.
    pub fn vtime(&self) -> u64 {
        self.vtime
    }
    /// Instructions retired.
    pub fn icount(&self) -> u64 {
        self.icount
    }
    /// CPU, devices, timers and streams, in the form of [`STATE_VERSION`].
    pub fn state(&self) -> &[u8] {
        &self.state
    }
    /// Guest memory.
    pub fn memory(&self) -> &Image {
        &self.memory
    }
    /// The disks, in the order of the machine's configuration.
    pub fn disks(&self) -> &[DiskMoment] {
        &self.disks
    }
    /// The same moment with its memory on another base: `memory` must have the same content.
    #[must_use]
    pub fn on(&self, memory: Image) -> Moment {
        Moment { memory, ..self.clone() }
    }

    /// A moment from its parts, as a file has them. The sums are computed from the images.
    ///
    /// # Errors
    /// When the state is of another version, or none of a machine.
    pub fn from_parts(
        version: u32,
        state: Arc<[u8]>,
        memory: Image,
        disks: &[DiskParts],
    ) -> Result<Moment, MomentError> {
        let stored = Stored::decode(version, &state)?;
        let icount = stored.cpus[0].icount;
        let vtime = stored.state.clock.vtime(icount);
        let memory_sum = LeafSum::of(memory.present().map(|(page, hash, _)| (page, hash)));
        let disk = |(index, parts)| {
            DiskMoment::from_parts(parts).map_err(|e| MomentError::Damaged(format!("disk {index}: {e}")))
        };
        let disks = disks.iter().enumerate().map(disk).collect::<Result<_, _>>()?;
        Ok(Moment { vtime, icount, state, memory, memory_sum, disks })
    }
}

/// What is stored of a machine besides memory and disks. The list of CPUs has one.
#[derive(Deserialize)]
struct Stored {
    cpus: Vec<CpuState>,
    state: State,
    partial_line: Vec<u8>,
    stopped_at: Option<u64>,
}

/// The same, borrowed: written and read, they are the same bytes.
#[derive(Serialize)]
struct StoredRef<'a> {
    cpus: &'a [CpuState],
    state: &'a State,
    partial_line: &'a [u8],
    stopped_at: Option<u64>,
}

impl Stored {
    fn decode(version: u32, bytes: &[u8]) -> Result<Stored, MomentError> {
        if version != STATE_VERSION {
            return Err(MomentError::Version(version));
        }
        let damaged = |what: &dyn fmt::Display| MomentError::Damaged(what.to_string());
        let (mut stored, mut rest): (Stored, _) =
            postcard::take_from_bytes(bytes).map_err(|e| damaged(&e))?;
        if stored.state.clock.mode() != ClockMode::Insn {
            let (legacy, behind) = postcard::take_from_bytes(rest).map_err(|e| damaged(&e))?;
            (stored.state.legacy, rest) = (Some(legacy), behind);
        }
        if stored.state.clock.mode() == ClockMode::Branch {
            let (slice, behind) = postcard::take_from_bytes(rest).map_err(|e| damaged(&e))?;
            (stored.state.slice, rest) = (Some(slice), behind);
        }
        if !rest.is_empty() {
            return Err(damaged(&format_args!("{} bytes too many", rest.len())));
        }
        if stored.cpus.len() != 1 {
            return Err(damaged(&format_args!("{} CPUs; this version has one", stored.cpus.len())));
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

impl<E: Engine> Machine<E> {
    /// Take a moment, here. Pages that were written since the last one are added to `pool`.
    pub fn moment(&mut self, pool: &Pool) -> Moment {
        self.update_memory_hashes();
        for &page in self.changed.pages() {
            // Pages of RAM are within the image, and the digest has just seen each of these.
            if let (Some(content), Some(hash)) = (self.ram.page(page), self.digest.memory.recent(page)) {
                self.memory.set_hashed(pool, page, hash, content);
            }
        }
        self.changed.clear();
        let memory_sum = self.digest.memory.sum();
        self.digest.memory.moment(memory_sum);

        let disks = self.disks.iter_mut().map(|disk| disk.moment(pool)).collect();
        let cpu = self.engine.state();
        // Such a moment says so: nobody goes on from it as if it were one of the guest's.
        self.note_failure();
        let stored = StoredRef {
            cpus: &[cpu],
            state: &self.state,
            partial_line: self.output.partial_line(),
            stopped_at: self.stopped_at,
        };
        // Plain data: there is nothing in it that cannot be written.
        let mut state = postcard::to_stdvec(&stored).unwrap_or_default();
        if let Some(legacy) = &self.state.legacy {
            state.extend(postcard::to_stdvec(legacy).unwrap_or_default());
        }
        if let Some(slice) = &self.state.slice {
            state.extend(postcard::to_stdvec(slice).unwrap_or_default());
        }
        let state = state.into();
        let (vtime, icount) = (self.vtime(), self.icount());
        Moment { vtime, icount, state, memory: self.memory.clone(), memory_sum, disks }
    }

    /// Go to where `moment` was. Output that nobody took is dropped.
    ///
    /// # Errors
    /// When the moment is none of a machine like this one; then nothing has changed.
    pub fn restore(&mut self, moment: &Moment) -> Result<(), MomentError> {
        let stored = Stored::decode(STATE_VERSION, &moment.state)?;
        self.check(&stored.state, moment)?;

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

    /// The first page of memory whose content is not that of `moment`, whatever is believed of it.
    pub fn differing_page(&self, moment: &Moment) -> Option<u64> {
        let zeroes = [0; PAGE as usize];
        let same = |page: u64| self.ram.page(page) == Some(moment.memory.page(page).unwrap_or(&zeroes));
        (0..self.ram.len() / PAGE).find(|&page| !same(page))
    }

    /// Registers, devices and the rest that is no memory.
    fn install(&mut self, stored: Stored) {
        self.engine.set_state(&stored.cpus[0]);
        self.state = stored.state;
        self.engine.set_tsc(self.state.tsc());
        self.output.restart(stored.partial_line);
        self.stopped_at = stored.stopped_at;
        if let Some(journal) = &mut self.journal {
            journal.clear();
        }
    }

    /// Whether `moment` is one of a machine like this.
    fn check(&self, state: &State, moment: &Moment) -> Result<(), MomentError> {
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

    /// Everything that was written since the last call, by the CPU or by devices.
    pub(crate) fn take_written_pages(&mut self) -> Vec<u64> {
        self.hand_over_device_writes();
        let pages = self.engine.take_dirty_pages();
        for &page in &pages {
            self.changed.insert(page);
        }
        pages
    }
}
