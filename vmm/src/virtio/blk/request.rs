//! A block request: parsed from a descriptor chain and executed on a disk (virtio 1.2, section 5.2.6).

use everett_fault::Requests;
use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH,
    VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
    VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
};

use super::{RANGE_SECTORS_MAX, RANGES_MAX, SERIAL_BYTES};
use crate::disk::{Change, Disk, SECTOR};
use crate::ram::Ram;
use crate::virtio::queue::{self, Chain, QueueError, Segment, part, total};
use crate::virtio::{DeviceError, on_queue};

/// Length of the header of `struct virtio_blk_req` in bytes: type, reserved, sector.
const HEADER_BYTES: u64 = 16;
/// Length of `struct virtio_blk_discard_write_zeroes` in bytes: sector, sectors, flags.
const RANGE_BYTES: usize = 16;
/// Maximum data bytes of a request. Linux sends at most a few MiB per request.
const DATA_BYTES_MAX: u64 = 64 << 20;
/// Maximum bytes of a single read from the disk.
const CHUNK_BYTES: u64 = 64 << 10;

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Operation {
    Read,
    Write,
    Flush,
    GetId,
    Discard,
    WriteZeroes,
    Unsupported,
}

impl Operation {
    /// Returns the category by which faults select requests with this operation, or `None` if no fault applies to them.
    pub(super) fn kind(self) -> Option<Requests> {
        match self {
            Operation::Read => Some(Requests::Read),
            Operation::Write | Operation::Discard | Operation::WriteZeroes => Some(Requests::Write),
            Operation::Flush => Some(Requests::Flush),
            Operation::GetId | Operation::Unsupported => None,
        }
    }
}

/// Parsed request. Its buffers lie in RAM; the device reads their content when the request completes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parsed {
    pub(super) head: u16,
    pub(super) operation: Operation,
    pub(super) sector: u64,
    pub(super) data: Vec<Segment>,
    pub(super) status: Segment,
}

/// Status byte of a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed(pub(super) u8);

pub(super) const IO_ERROR: Failed = Failed(VIRTIO_BLK_S_IOERR as u8);
const UNSUPPORTED: Failed = Failed(VIRTIO_BLK_S_UNSUPP as u8);
pub(super) const OK: u8 = VIRTIO_BLK_S_OK as u8;

/// Reads the header of a request and locates its status byte.
pub(super) fn parse(ram: &Ram, chain: Chain) -> Result<Parsed, DeviceError> {
    let malformed = |reason| DeviceError::Request { queue: 0, reason };
    let header = on_queue(0, queue::read(ram, &chain.readable, HEADER_BYTES))?;
    let header: [u8; HEADER_BYTES as usize] =
        header.try_into().map_err(|_| malformed("has no complete header"))?;
    let writable_bytes = total(&chain.writable);
    let status = writable_bytes.checked_sub(1).ok_or(malformed("has no status byte"))?;
    let status = part(&chain.writable, status, 1)[0];

    let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let sector = u64::from_le_bytes(std::array::from_fn(|i| header[8 + i]));
    let operation = match kind {
        VIRTIO_BLK_T_IN => Operation::Read,
        VIRTIO_BLK_T_OUT => Operation::Write,
        VIRTIO_BLK_T_FLUSH => Operation::Flush,
        VIRTIO_BLK_T_GET_ID => Operation::GetId,
        VIRTIO_BLK_T_DISCARD => Operation::Discard,
        VIRTIO_BLK_T_WRITE_ZEROES => Operation::WriteZeroes,
        _ => Operation::Unsupported,
    };
    let data = match operation {
        Operation::Read | Operation::GetId => part(&chain.writable, 0, writable_bytes - 1),
        Operation::Flush | Operation::Unsupported => Vec::new(),
        _ => part(&chain.readable, HEADER_BYTES, u64::MAX),
    };
    Ok(Parsed { head: chain.head, operation, sector, data, status })
}

/// Returns the offset and the length of a request's data on the disk, in bytes.
fn place(request: &Parsed, disk: &Disk) -> Result<(u64, u64), Failed> {
    let (bytes, size) = (total(&request.data), disk.sector_size().bytes());
    let offset = request.sector.checked_mul(SECTOR).ok_or(IO_ERROR)?;
    let whole = bytes.is_multiple_of(size) && offset.is_multiple_of(size);
    if whole && bytes <= DATA_BYTES_MAX && disk.contains(offset, bytes) {
        return Ok((offset, bytes));
    }
    Err(IO_ERROR)
}

/// Reads from the disk into the guest's buffers. Returns the number of bytes read.
pub(super) fn read(request: &Parsed, disk: &Disk, ram: &Ram) -> Result<Result<u32, Failed>, QueueError> {
    let (offset, bytes) = match place(request, disk) {
        Ok(place) => place,
        Err(failed) => return Ok(Err(failed)),
    };
    let mut buf = vec![0; bytes.min(CHUNK_BYTES) as usize];
    for at in (0..bytes).step_by(CHUNK_BYTES as usize) {
        let len = CHUNK_BYTES.min(bytes - at);
        disk.read(offset + at, &mut buf[..len as usize]);
        queue::write(ram, &part(&request.data, at, len), &buf[..len as usize])?;
    }
    Ok(Ok(bytes as u32))
}

/// Writes the disk's serial number to the guest's buffers. Returns the number of bytes written.
pub(super) fn get_id(request: &Parsed, serial: &[u8; SERIAL_BYTES], ram: &Ram) -> Result<u32, QueueError> {
    queue::write(ram, &request.data, serial)
}

/// Returns the changes of a write, discard or write-zeroes request. If the request fails, returns its status.
pub(super) fn changes(
    request: &Parsed,
    disk: &Disk,
    ram: &Ram,
) -> Result<Result<Vec<Change>, Failed>, QueueError> {
    let changes = match request.operation {
        Operation::Write => match place(request, disk) {
            Ok((offset, bytes)) => {
                Ok(vec![Change::Write { offset, content: queue::read(ram, &request.data, bytes)? }])
            }
            Err(failed) => Err(failed),
        },
        Operation::Discard | Operation::WriteZeroes => {
            let bytes = total(&request.data);
            if bytes > u64::from(RANGES_MAX) * RANGE_BYTES as u64 {
                return Ok(Err(IO_ERROR));
            }
            zero_ranges(request.operation, &queue::read(ram, &request.data, bytes)?, disk)
        }
        _ => Err(UNSUPPORTED),
    };
    Ok(changes.and_then(|changes| if disk.has_room(&changes) { Ok(changes) } else { Err(IO_ERROR) }))
}

/// Returns the changes of a DISCARD or WRITE_ZEROES request. Both leave zeroes, so that later reads are deterministic.
fn zero_ranges(operation: Operation, table: &[u8], disk: &Disk) -> Result<Vec<Change>, Failed> {
    let size = disk.sector_size().bytes();
    if table.is_empty() || !table.len().is_multiple_of(RANGE_BYTES) {
        return Err(IO_ERROR);
    }
    let range = |range: &[u8]| {
        let sector = u64::from_le_bytes(std::array::from_fn(|i| range[i]));
        let sectors = u32::from_le_bytes(std::array::from_fn(|i| range[8 + i]));
        let flags = u32::from_le_bytes(std::array::from_fn(|i| range[12 + i]));
        let zeroes = operation == Operation::WriteZeroes;
        // The only defined flag is "unmap", and only for WRITE_ZEROES.
        let unmap = if zeroes { VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP } else { 0 };
        if flags & !unmap != 0 {
            return Err(UNSUPPORTED);
        }
        let len = u64::from(sectors) * SECTOR;
        let offset = sector.checked_mul(SECTOR).ok_or(IO_ERROR)?;
        let whole = offset.is_multiple_of(size) && len.is_multiple_of(size);
        if !whole || sectors > RANGE_SECTORS_MAX || !disk.contains(offset, len) {
            return Err(IO_ERROR);
        }
        Ok(Change::Zero { offset, len, takes_room: zeroes && flags == 0 })
    };
    table.chunks_exact(RANGE_BYTES).map(range).collect()
}
