//! Operations on a machine's disks from outside: power loss, reset of the machine, and replacement.
//!
//! A disk outlives its machine. After [`Machine::power_loss`] or [`Machine::reset_disks`], [`Machine::disks`] returns
//! the disks with their surviving content. Their clones become the disks of the machine that starts next: a new one
//! ([`super::DiskConfig`]), or one that is restored to a moment and then gets them ([`Machine::put_disks`]).

use everett_streams::{Purpose, Streams};

use super::Machine;
use crate::disk::{Aborted, Disk, DiskError, PowerLoss, PowerLossOptions};
use crate::events::EventQueue;
use crate::ram::Ram;
use crate::virtio::Device;
use crate::virtio::blk::Blk;

impl Machine {
    /// Returns the disks in the order of the configuration.
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// Returns a disk for operations from outside.
    pub fn disk_mut(&mut self, index: usize) -> Option<&mut Disk> {
        self.disks.get_mut(index)
    }

    /// Returns the number of disk requests that have not completed.
    pub fn disk_requests(&self) -> usize {
        let of = |device: &Device| if let Device::Blk(blk) = device { blk.in_flight() } else { 0 };
        self.state.virtio.iter().map(|transport| of(transport.device())).sum()
    }

    /// Cuts the power of all disks. For each disk, the stream in `streams` for node number `node` and the disk
    /// decides which unflushed writes are lost. Requests in flight never complete, so the machine must not run on: it
    /// must end, or be restored to a moment.
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

    /// Resets the machine's disks. For each request in flight, the stream in `streams` for node number `node` and the
    /// disk decides whether it is executed completely, in part or not at all. None of these requests completes. The
    /// disks keep power and their caches.
    pub fn reset_disks(&mut self, streams: &mut Streams, node: u16) -> Vec<Aborted> {
        self.each_drive(|blk, disk, ram, events| {
            let rng = streams.get(Purpose::Reset { node, disk: blk.number() });
            blk.abort(disk, ram, events, rng)
        })
    }

    /// Replaces all disks. The new disks must have the same makes as the old ones, as they do after a machine was
    /// switched off and on.
    ///
    /// # Errors
    /// Returns an error if the number of disks or a disk's make differs. Nothing has changed then.
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
