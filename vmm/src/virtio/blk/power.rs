//! Power loss and reset of a machine while disk requests are in flight.

use chacha20::rand_core::Rng;

use super::request::{self, Operation};
use super::{Blk, InFlight};
use crate::disk::{Aborted, Change, Disk, LANDING_BYTES_MAX, LossMode, PowerLoss, PowerLossOptions};
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

    /// Returns a copy of the disk as a power loss at this instant would leave it. Neither the disk nor the requests in
    /// flight change. With `mode`, the copy loses writes in this mode, and no mode is drawn.
    pub(crate) fn after_power_loss(
        &self,
        disk: &Disk,
        ram: &Ram,
        options: PowerLossOptions,
        mode: Option<LossMode>,
        rng: &mut impl Rng,
    ) -> (Disk, PowerLoss) {
        let in_flight = self.changes_in_flight(disk, ram);
        let mut copy = disk.clone();
        let loss = match mode {
            Some(mode) => copy.power_loss_in(rng, options, &in_flight, |_| mode),
            None => copy.power_loss(rng, options, &in_flight),
        };
        (copy, loss)
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

    /// Returns the disk's serial number.
    pub(crate) fn serial(&self) -> String {
        self.serial.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
    }

    /// Removes the requests in flight and returns their changes.
    fn take_in_flight(&mut self, disk: &Disk, ram: &Ram, events: &mut EventQueue) -> Vec<Vec<Change>> {
        let changes = self.changes_in_flight(disk, ram);
        for InFlight { event, .. } in std::mem::take(&mut self.in_flight).into_values() {
            events.cancel(event);
        }
        changes
    }

    /// Returns the changes of the requests in flight, in the order of submission. Reads the data of writes from RAM,
    /// because the device copies it only when a request completes. Leaves out requests that would fail, and requests
    /// that would raise the total of changed bytes above [`LANDING_BYTES_MAX`].
    fn changes_in_flight(&self, disk: &Disk, ram: &Ram) -> Vec<Vec<Change>> {
        let mut left = LANDING_BYTES_MAX;
        let mut all = Vec::new();
        for InFlight { request, .. } in self.in_flight.values() {
            if self.read_only || request.operation == Operation::Write && total(&request.data) > left {
                continue;
            }
            if let Ok(Ok(changes)) = request::changes(request, disk, ram) {
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
