//! Operations on a machine's disks from outside: power loss, reset of the machine, and replacement.
//!
//! A disk outlives its machine. After [`Machine::power_loss`] or [`Machine::reset_disks`], [`Machine::disks`] returns
//! the disks with their surviving content. The next machine gets clones of them. If that machine is new, they are part
//! of its configuration ([`super::DiskConfig`]). If it is restored to a moment, [`Machine::put_disks`] gives it the
//! disks afterwards.

use everett_streams::{Purpose, Streams};

use super::Machine;
use crate::disk::{Aborted, Disk, DiskError, LossMode, PowerLoss, PowerLossOptions};
use crate::events::EventQueue;
use crate::ram::Ram;
use crate::virtio::Device;
use crate::virtio::blk::Blk;

impl Machine {
    /// Returns the disks in the order of the configuration.
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// Returns disk number `index` for operations from outside, or `None` if there are fewer disks.
    pub fn disk_mut(&mut self, index: usize) -> Option<&mut Disk> {
        self.disks.get_mut(index)
    }

    /// Returns the number of disk requests that the guest has submitted and the disks have not completed.
    pub fn disk_requests(&self) -> usize {
        let of = |device: &Device| if let Device::Blk(blk) = device { blk.in_flight() } else { 0 };
        self.state.virtio.iter().map(|transport| of(transport.device())).sum()
    }

    /// Cuts the power of all disks. `streams` has a random stream for each disk of node number `node`. The disk's
    /// stream decides which unflushed writes the disk loses. Requests in flight never complete, so the caller must end
    /// the machine or restore it to a moment.
    pub fn power_loss(
        &mut self,
        streams: &mut Streams,
        node: u16,
        options: PowerLossOptions,
    ) -> Vec<PowerLoss> {
        self.each_drive(|blk, disk, ram, events| {
            let rng = streams.get(Purpose::PowerLoss { node, disk: blk.number() });
            blk.power_loss(disk, ram, events, options, rng)
        })
    }

    /// Returns a copy of disk number `index` as [`Machine::power_loss`] would leave it, and what the copy lost. Returns
    /// `None` if there is no such disk. The machine does not change. With `mode`, the copy loses writes in this mode;
    /// otherwise the disk's random stream decides the mode, too.
    pub fn after_power_loss(
        &self,
        index: usize,
        streams: &mut Streams,
        node: u16,
        options: PowerLossOptions,
        mode: Option<LossMode>,
    ) -> Option<(Disk, PowerLoss)> {
        let (blk, disk) = self.drive(index)?;
        let rng = streams.get(Purpose::PowerLoss { node, disk: blk.number() });
        Some(blk.after_power_loss(disk, &self.ram, options, mode, rng))
    }

    /// Returns the serial number of disk number `index`, or `None` if there is no such disk.
    #[must_use]
    pub fn disk_serial(&self, index: usize) -> Option<String> {
        self.drive(index).map(|(blk, _)| blk.serial())
    }

    /// Returns the number of requests of disk number `index` that the guest has submitted and the disk has not
    /// completed, or `None` if there is no such disk.
    #[must_use]
    pub fn requests_of_disk(&self, index: usize) -> Option<usize> {
        self.drive(index).map(|(blk, _)| blk.in_flight())
    }

    /// Returns disk number `index` and its device.
    fn drive(&self, index: usize) -> Option<(&Blk, &Disk)> {
        let disk = self.disks.get(index)?;
        let mut devices = self.state.virtio.iter().filter_map(|transport| match transport.device() {
            Device::Blk(blk) if blk.disk_index() == index => Some(blk),
            _ => None,
        });
        Some((devices.next()?, disk))
    }

    /// Resets the machine's disks, which keep their power and caches. `streams` has a random stream for each disk of
    /// node number `node`. The disk's stream decides how much of each request in flight the disk still executes: all,
    /// a part or nothing. The guest gets no completion for these requests.
    pub fn reset_disks(&mut self, streams: &mut Streams, node: u16) -> Vec<Aborted> {
        self.each_drive(|blk, disk, ram, events| {
            let rng = streams.get(Purpose::Reset { node, disk: blk.number() });
            blk.abort(disk, ram, events, rng)
        })
    }

    /// Replaces all disks. The new disks must have the size, the sector size and the base (initial content) of the old
    /// disks, as after a power cycle.
    ///
    /// # Errors
    /// Returns an error if the number of disks or one of these properties differs. Bases are compared only if both
    /// digests are known. After an error, the machine is unchanged.
    pub fn put_disks(&mut self, disks: Vec<Disk>) -> Result<(), DiskError> {
        let other = |what, given, machine| Err(DiskError::Other { what, given, machine });
        if disks.len() != self.disks.len() {
            return other("disks", disks.len().to_string(), self.disks.len().to_string());
        }
        for (given, machine) in disks.iter().zip(&self.disks) {
            if let Some((what, given, machine)) = given.make().difference(&machine.make()) {
                return other(what, given, machine);
            }
        }
        self.disks = disks;
        Ok(())
    }

    fn each_drive<T>(
        &mut self,
        mut act: impl FnMut(&mut Blk, &mut Disk, &Ram, &mut EventQueue) -> T,
    ) -> Vec<T> {
        let (disks, ram, events) = (&mut self.disks, &self.ram, &mut self.state.events);
        let mut results = Vec::new();
        for transport in &mut self.state.virtio {
            if let Device::Blk(blk) = transport.device_mut()
                && let Some(disk) = disks.get_mut(blk.disk_index())
            {
                results.push(act(blk, disk, ram, events));
            }
        }
        results
    }
}
