//! What the host does to a machine's disks: they lose power, the machine around them is reset, and others take their place.
//!
//! A disk outlives its machine. After [`Machine::power_loss`] or [`Machine::reset_disks`], [`Machine::disks`] has what the
//! drives hold; clones of it are the disks of the machine that starts next, be it a new one ([`super::DiskConfig`]) or one
//! that goes back to a moment and then gets them ([`Machine::put_disks`]).

use everett_streams::{Purpose, Streams};

use super::Machine;
use crate::disk::{Aborted, Disk, DiskError, PowerLoss, PowerLossOptions};
use crate::engine::Engine;
use crate::events::EventQueue;
use crate::ram::Ram;
use crate::virtio::Device;
use crate::virtio::blk::Blk;

impl<E: Engine> Machine<E> {
    /// The disks, by their places in the configuration.
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// A disk, for what the host does to it.
    pub fn disk_mut(&mut self, index: usize) -> Option<&mut Disk> {
        self.disks.get_mut(index)
    }

    /// Requests to disks that have not completed.
    pub fn disk_requests(&self) -> usize {
        let of = |device: &Device| if let Device::Blk(blk) = device { blk.in_flight() } else { 0 };
        self.state.virtio.iter().map(|transport| of(transport.device())).sum()
    }

    /// All disks lose power, and with it what they had not flushed, each as `streams` draw it for node number `node` and the
    /// disk. Requests in flight never complete: the machine is not to run on, but to come to its end or to go back to a moment.
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

    /// The machine is reset, and requests in flight with it: each lands not at all, whole, or in part, as `streams` draw it
    /// for node number `node` and the disk, and never completes. The drives have power and keep their caches.
    pub fn reset_disks(&mut self, streams: &mut Streams, node: u16) -> Vec<Aborted> {
        self.each_drive(|blk, disk, ram, events| {
            let rng = streams.get(Purpose::Reset { node, disk: blk.number() });
            blk.abort(disk, ram, events, rng)
        })
    }

    /// Replace all disks by these, which must be of the same makes, as the same disks are after a machine was switched off.
    ///
    /// # Errors
    /// They are other disks. Nothing has changed then.
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
