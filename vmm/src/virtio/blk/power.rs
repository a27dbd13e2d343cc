//! Power loss and reset of a machine while disk requests are in flight.

use chacha20::rand_core::Rng;

use super::request::{self, Operation};
use super::{Blk, InFlight};
use crate::disk::{Aborted, Change, Disk, LANDING_BYTES_MAX, PowerLoss, PowerLossOptions};
use crate::events::EventQueue;
use crate::ram::Ram;
use crate::virtio::queue::total;

impl Blk {
    /// Applies a power loss. The requests in flight never complete, but they may have changed sectors.
    pub(crate) fn power_loss(
        &mut self,
        disk: &mut Disk,
        ram: &Ram,
        events: &mut EventQueue,
        options: PowerLossOptions,
        rng: &mut impl Rng,
    ) -> PowerLoss {
        let in_flight = self.take_in_flight(disk, ram, events);
        disk.power_loss(rng, options, &in_flight)
    }

    /// Applies a reset of the machine. The requests in flight never complete, but they may have changed sectors.
    pub(crate) fn abort(
        &mut self,
        disk: &mut Disk,
        ram: &Ram,
        events: &mut EventQueue,
        rng: &mut impl Rng,
    ) -> Aborted {
        let in_flight = self.take_in_flight(disk, ram, events);
        let aborted = disk.abort(rng, &in_flight);
        self.write_through(disk);
        aborted
    }

    /// Returns the index of the device's disk among the machine's disks.
    pub(crate) fn disk_index(&self) -> usize {
        self.disk
    }

    /// Returns the disk's index as a `u8`, for use in a [`Purpose`](everett_streams::Purpose), the name of a random
    /// stream. The cast loses nothing, because a machine has fewer than 256 disks.
    pub(crate) fn number(&self) -> u8 {
        self.disk as u8
    }

    /// Removes the requests in flight and returns their changes, in the order of submission. Reads the data of writes
    /// from RAM, because the device copies it only when a request completes. Leaves out requests that would fail, and
    /// requests that would raise the total of changed bytes above [`LANDING_BYTES_MAX`].
    fn take_in_flight(&mut self, disk: &Disk, ram: &Ram, events: &mut EventQueue) -> Vec<Vec<Change>> {
        let mut left = LANDING_BYTES_MAX;
        let mut all = Vec::new();
        for InFlight { event, request, .. } in std::mem::take(&mut self.in_flight).into_values() {
            events.cancel(event);
            if self.read_only || request.operation == Operation::Write && total(&request.data) > left {
                continue;
            }
            if let Ok(Ok(changes)) = request::changes(&request, disk, ram) {
                let bytes = changes.iter().map(Change::bytes).sum::<u64>();
                if bytes <= left {
                    left -= bytes;
                    all.push(changes);
                }
            }
        }
        all
    }
}
