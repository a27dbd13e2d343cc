//! One block request: parsed from a chain, carried out on a disk (virtio 1.2, section 5.2.6).

use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH,
    VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
};

use super::{RANGE_SECTORS_MAX, RANGES_MAX, SERIAL_BYTES};
use crate::disk::{Disk, SECTOR};
use crate::ram::Ram;
use crate::virtio::queue::{self, Chain, QueueError, Segment, part, total};
use crate::virtio::{DeviceError, on_queue};

/// `struct virtio_blk_req` up to the data: type, reserved, sector.
const HEADER_BYTES: u64 = 16;
/// `struct virtio_blk_discard_write_zeroes`: sector, sectors, flags.
const RANGE_BYTES: usize = 16;
/// The most data bytes in a request. Linux asks for at most a few MiB.
const DATA_BYTES_MAX: u64 = 64 << 20;
/// Copied at a time.
const CHUNK_BYTES: u64 = 64 << 10;

/// What is asked for.
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

/// A request as submitted. Its buffers lie in RAM; their content is looked at when it completes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parsed {
    pub(super) head: u16,
    pub(super) operation: Operation,
    pub(super) sector: u64,
    pub(super) data: Vec<Segment>,
    pub(super) status: Segment,
}

/// Read the header of a request and find its status byte.
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

/// Carry a request out. Returns its status and how many bytes of data were written to the guest.
pub(super) fn execute(
    request: &Parsed,
    disk: &mut Disk,
    ram: &Ram,
    read_only: bool,
    serial: &[u8; SERIAL_BYTES],
) -> Result<(u8, u32), QueueError> {
    let failed = Ok((VIRTIO_BLK_S_IOERR as u8, 0));
    let done = |bytes| Ok((VIRTIO_BLK_S_OK as u8, bytes));
    let bytes = total(&request.data);
    let offset = request.sector.checked_mul(SECTOR);
    let in_bounds =
        |offset: u64| bytes.is_multiple_of(SECTOR) && bytes <= DATA_BYTES_MAX && disk.contains(offset, bytes);
    match (request.operation, offset) {
        (Operation::Flush, _) => done(0),
        (Operation::GetId, _) => done(queue::write(ram, &request.data, serial)?),
        (Operation::Unsupported, _) => Ok((VIRTIO_BLK_S_UNSUPP as u8, 0)),
        (Operation::Read, Some(offset)) if in_bounds(offset) => {
            let mut buf = vec![0; bytes.min(CHUNK_BYTES) as usize];
            for at in (0..bytes).step_by(CHUNK_BYTES as usize) {
                let len = CHUNK_BYTES.min(bytes - at);
                disk.read(offset + at, &mut buf[..len as usize]);
                queue::write(ram, &part(&request.data, at, len), &buf[..len as usize])?;
            }
            done(bytes as u32)
        }
        (Operation::Write, Some(offset)) if in_bounds(offset) && !read_only => {
            for at in (0..bytes).step_by(CHUNK_BYTES as usize) {
                let len = CHUNK_BYTES.min(bytes - at);
                disk.write(offset + at, &queue::read(ram, &part(&request.data, at, len), len)?);
            }
            done(0)
        }
        (Operation::Discard | Operation::WriteZeroes, _) if !read_only => zero_ranges(request, disk, ram),
        _ => failed,
    }
}

/// DISCARD and WRITE_ZEROES: both leave zeroes, so that what a guest reads back is defined.
fn zero_ranges(request: &Parsed, disk: &mut Disk, ram: &Ram) -> Result<(u8, u32), QueueError> {
    let failed = Ok((VIRTIO_BLK_S_IOERR as u8, 0));
    let bytes = total(&request.data);
    if bytes == 0
        || !bytes.is_multiple_of(RANGE_BYTES as u64)
        || bytes > u64::from(RANGES_MAX) * RANGE_BYTES as u64
    {
        return failed;
    }
    let table = queue::read(ram, &request.data, bytes)?;
    let mut ranges = Vec::new();
    for range in table.chunks_exact(RANGE_BYTES) {
        let sector = u64::from_le_bytes(std::array::from_fn(|i| range[i]));
        let sectors = u32::from_le_bytes(std::array::from_fn(|i| range[8 + i]));
        let flags = u32::from_le_bytes(std::array::from_fn(|i| range[12 + i]));
        // Only "unmap", and only for write-zeroes, is defined.
        let unmap_allowed = u32::from(request.operation == Operation::WriteZeroes);
        if flags & !unmap_allowed != 0 {
            return Ok((VIRTIO_BLK_S_UNSUPP as u8, 0));
        }
        let len = u64::from(sectors) * SECTOR;
        match sector.checked_mul(SECTOR) {
            Some(offset) if sectors <= RANGE_SECTORS_MAX && disk.contains(offset, len) => {
                ranges.push((offset, len))
            }
            _ => return failed,
        }
    }
    for (offset, len) in ranges {
        disk.write_zeroes(offset, len);
    }
    Ok((VIRTIO_BLK_S_OK as u8, 0))
}
