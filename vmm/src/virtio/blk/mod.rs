//! virtio-blk (virtio 1.2, section 5.2): a block device on one of the machine's disks, with latency in vtime.
//!
//! The device parses a request when the driver submits it, and executes it when its latency is over. Only then does it
//! read or write the buffers and change sectors. Requests complete in the order of (vtime, submission). A write is
//! volatile until a flush covers it. A flush covers the writes that had completed when the flush was submitted (5.2.6).
//! If the driver did not accept VIRTIO_BLK_F_FLUSH, every completed write is durable (5.2.5).
//!
//! - `request`: parses and executes a request; `power`: applies power losses and resets to requests in flight
//!
//! Elsewhere: faults, and which volatile writes survive a power loss ([`crate::disk`]).

mod power;
mod request;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX,
    VIRTIO_BLK_F_WRITE_ZEROES,
};

use super::queue::{self, QueueError, VirtQueue};
use super::{Cx, DeviceError, on_queue};
use crate::disk::{Disk, DiskError, SECTOR, SectorSize};
use crate::events::EventId;
use request::{Failed, IO_ERROR, OK, Operation, Parsed};

/// Maximum number of entries of the queue.
pub const QUEUE_SIZE: u16 = 128;
/// Maximum number of data segments in a request, announced to the driver.
const SEG_MAX: u32 = QUEUE_SIZE as u32 - 2;
/// Length of a disk's serial number in bytes (GET_ID).
pub const SERIAL_BYTES: usize = 20;
/// Maximum number of sectors in one discard or write-zeroes range, announced to the driver: 128 MiB.
const RANGE_SECTORS_MAX: u32 = 1 << 18;
/// Maximum number of ranges in one discard or write-zeroes request, announced to the driver.
const RANGES_MAX: u32 = 4;

/// Latency of requests, in nanoseconds of vtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Base latency of a read.
    pub read_ns: u64,
    /// Base latency of a write, a discard and a write of zeroes.
    pub write_ns: u64,
    /// Latency of a flush.
    pub flush_ns: u64,
    /// Latency per KiB of data, in addition to the base latency.
    pub kib_ns: u64,
}

impl Default for Latency {
    /// Returns the latency of a good NVMe drive: 20 us per read, 15 us per write into its cache, 100 us per flush, and
    /// 2 GiB per second.
    fn default() -> Latency {
        Latency { read_ns: 20_000, write_ns: 15_000, flush_ns: 100_000, kib_ns: 500 }
    }
}

/// Request that has not completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct InFlight {
    event: EventId,
    request: Parsed,
    /// The disk numbers its writes as they complete. This is the number of the first write that completed after the
    /// driver submitted the request. If the request is a flush, it covers all writes with smaller numbers.
    covers: u64,
}

/// Virtio block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blk {
    /// Index of the device's disk among the machine's disks.
    disk: usize,
    sectors: u64,
    sector_size: SectorSize,
    serial: [u8; SERIAL_BYTES],
    read_only: bool,
    latency: Latency,
    /// True if the driver accepted VIRTIO_BLK_F_FLUSH. Writes are then volatile until a flush.
    write_back: bool,
    next_token: u64,
    in_flight: BTreeMap<u64, InFlight>,
}

impl Blk {
    /// Creates a device on the machine's disk `index`.
    ///
    /// # Errors
    /// Returns an error if the serial number is longer than 20 bytes or is not printable ASCII.
    pub fn new(
        index: usize,
        disk: &Disk,
        serial: &str,
        read_only: bool,
        latency: Latency,
    ) -> Result<Blk, DiskError> {
        if serial.len() > SERIAL_BYTES || !serial.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(DiskError::Serial(serial.into()));
        }
        let mut padded = [0; SERIAL_BYTES];
        padded[..serial.len()].copy_from_slice(serial.as_bytes());
        Ok(Blk {
            disk: index,
            sectors: disk.len() / SECTOR,
            sector_size: disk.sector_size(),
            serial: padded,
            read_only,
            latency,
            write_back: false,
            next_token: 0,
            in_flight: BTreeMap::new(),
        })
    }

    /// Returns the number of requests that the driver has submitted and that have not completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(super) fn features(&self) -> u64 {
        let common = 1 << VIRTIO_BLK_F_SEG_MAX | 1 << VIRTIO_BLK_F_BLK_SIZE | 1 << VIRTIO_BLK_F_FLUSH;
        if self.read_only {
            common | 1 << VIRTIO_BLK_F_RO
        } else {
            common | 1 << VIRTIO_BLK_F_DISCARD | 1 << VIRTIO_BLK_F_WRITE_ZEROES
        }
    }

    /// Returns the properties of the device that a driver cannot change: disk index, size, sector size, write
    /// protection and serial number.
    pub(super) fn make(&self) -> Vec<u8> {
        let mut make = (self.disk as u64).to_le_bytes().to_vec();
        make.extend(self.sectors.to_le_bytes());
        make.extend(self.sector_size.bytes().to_le_bytes());
        make.push(u8::from(self.read_only));
        make.extend(self.serial);
        make
    }

    /// Returns `struct virtio_blk_config`.
    pub(super) fn config(&self) -> Vec<u8> {
        let mut config = vec![0; 60];
        let mut set = |at: usize, value: u32| config[at..at + 4].copy_from_slice(&value.to_le_bytes());
        set(0, self.sectors as u32);
        set(4, (self.sectors >> 32) as u32);
        set(12, SEG_MAX);
        set(20, self.sector_size.bytes() as u32);
        // Discard: maximum sectors, maximum segments, alignment. Write zeroes: maximum sectors, maximum segments; "may
        // unmap" stays 0.
        set(36, RANGE_SECTORS_MAX);
        set(40, RANGES_MAX);
        set(44, 8);
        set(48, RANGE_SECTORS_MAX);
        set(52, RANGES_MAX);
        config
    }

    /// Stores whether the driver accepted the flush feature.
    pub(super) fn negotiated(&mut self, features: u64) {
        self.write_back = features & 1 << VIRTIO_BLK_F_FLUSH != 0;
    }

    /// Drops the requests in flight, because the driver resets the device. The dropped requests change no sector. The
    /// specification permits this, so the device draws no random outcome.
    pub(super) fn reset(&mut self, cx: &mut Cx<'_>) {
        self.write_back = false;
        for request in std::mem::take(&mut self.in_flight).into_values() {
            cx.events.cancel(request.event);
        }
    }

    pub(super) fn notify(&mut self, queues: &mut [VirtQueue], cx: &mut Cx<'_>) -> Result<bool, DeviceError> {
        let Some(requests) = queues.first_mut() else { return Ok(false) };
        while let Some(chain) = on_queue(0, requests.pop(cx.ram))? {
            if self.in_flight.len() >= usize::from(QUEUE_SIZE) {
                return Err(DeviceError::Request {
                    queue: 0,
                    reason: "was submitted while it was in flight",
                });
            }
            let request = request::parse(cx.ram, chain)?;
            let mut latency_ns = self.latency_ns(&request);
            let mut covers = 0;
            if let (Some(disk), Some(_)) = (cx.disks.get(self.disk), request.operation.kind()) {
                covers = disk.completed();
                latency_ns = latency_ns.saturating_add(disk.extra_ns(self.number(), cx.streams));
            }
            let token = self.next_token;
            self.next_token = self.next_token.wrapping_add(1);
            let event = cx.schedule(cx.now.saturating_add(latency_ns), token);
            self.in_flight.insert(token, InFlight { event, request, covers });
        }
        on_queue(0, requests.want_notification(cx.ram))?;
        Ok(false)
    }

    pub(super) fn event(
        &mut self,
        token: u64,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        let (Some(InFlight { request, covers, .. }), Some(requests)) =
            (self.in_flight.remove(&token), queues.first_mut())
        else {
            return Ok(false);
        };
        if self.disk >= cx.disks.len() {
            return Ok(false);
        }
        let (status, data_bytes) = match on_queue(0, self.execute(&request, covers, cx))? {
            Ok(data_bytes) => (OK, data_bytes),
            Err(Failed(status)) => (status, 0),
        };
        on_queue(0, queue::write(cx.ram, &[request.status], &[status]))?;
        // The used length includes the status byte.
        on_queue(0, requests.push_used(cx.ram, request.head, data_bytes.saturating_add(1)))
    }

    /// Executes a request. Returns the number of data bytes that it wrote to the guest.
    fn execute(
        &self,
        request: &Parsed,
        covers: u64,
        cx: &mut Cx<'_>,
    ) -> Result<Result<u32, Failed>, QueueError> {
        let (disk, ram) = (&mut cx.disks[self.disk], cx.ram);
        if let Some(kind) = request.operation.kind()
            && disk.fails(kind, self.number(), cx.streams)
        {
            return Ok(Err(IO_ERROR));
        }
        match request.operation {
            Operation::Read => return request::read(request, disk, ram),
            Operation::GetId => return Ok(Ok(request::get_id(request, &self.serial, ram)?)),
            Operation::Flush => disk.flush(covers),
            Operation::Write | Operation::Discard | Operation::WriteZeroes if self.read_only => {
                return Ok(Err(IO_ERROR));
            }
            _ => match request::changes(request, disk, ram)? {
                Ok(changes) => {
                    disk.complete(&changes);
                    self.write_through(disk);
                }
                Err(failed) => return Ok(Err(failed)),
            },
        }
        Ok(Ok(0))
    }

    /// Makes all completed writes durable, unless the driver accepted VIRTIO_BLK_F_FLUSH.
    fn write_through(&self, disk: &mut Disk) {
        if !self.write_back {
            disk.flush(disk.completed());
        }
    }

    fn latency_ns(&self, request: &Parsed) -> u64 {
        let l = &self.latency;
        let base = match request.operation {
            Operation::Read => l.read_ns,
            Operation::Flush => l.flush_ns,
            Operation::GetId | Operation::Unsupported => 0,
            Operation::Write | Operation::Discard | Operation::WriteZeroes => l.write_ns,
        };
        let kib = queue::total(&request.data).div_ceil(1024);
        base.saturating_add(kib.saturating_mul(l.kib_ns))
    }
}
