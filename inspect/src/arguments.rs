//! Requests to disks, signals and futexes, from the arguments of the kernel's functions that handle them.

use everett_symbols::kernel::btf::Field;

use crate::argument_layout::ArgumentLayout;
use crate::{Error, Guest};

/// Maximum length of a disk's name, in bytes (Linux, `DISK_NAME_LEN`).
const DISK_NAME_BYTES: usize = 32;

/// Request to a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskRequest {
    /// Name of the disk, such as `vda`.
    pub disk: String,
    /// Operation.
    pub operation: Operation,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// Length, in bytes.
    pub bytes: u64,
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads sectors.
    Read,
    /// Writes sectors.
    Write,
    /// Makes the writes before it durable.
    Flush,
    /// Says that sectors are not needed any more.
    Discard,
    /// Another operation, by the kernel's number.
    Other(u8),
}

impl Operation {
    /// Returns the name of the operation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
            Operation::Other(_) => "other",
        }
    }
}

impl Guest<'_> {
    /// Reads the request at this address (`struct request`).
    ///
    /// # Errors
    /// Returns an error if the kernel lacks the fields, or if they are not mapped.
    pub fn disk_request(&self, request: u64) -> Result<DiskRequest, Error> {
        let read = || {
            let layout = self.kernel.argument_layout.as_ref().map_err(Clone::clone)?;
            let number = |field| self.number(request, field);
            let disk = self.number(number(layout.request_queue)?, layout.queue_disk)?;
            let operation = match number(layout.request_flags)? as u8 {
                0 => Operation::Read,
                1 => Operation::Write,
                2 => Operation::Flush,
                3 => Operation::Discard,
                other => Operation::Other(other),
            };
            Ok(DiskRequest {
                disk: self.text(disk.wrapping_add(layout.disk_name.offset()), DISK_NAME_BYTES)?,
                operation,
                sector: number(layout.request_sector)?,
                bytes: number(layout.request_bytes)?,
            })
        };
        read().map_err(Error::reading("a request to a disk"))
    }

    /// Returns the number of the signal at this address (`struct ksignal`).
    ///
    /// # Errors
    /// Returns an error if the kernel lacks the field, or if it is not mapped.
    pub fn signal_of(&self, signal: u64) -> Result<u32, Error> {
        self.argument(signal, |layout| layout.signal_number).map(|number| number as u32)
    }

    /// Returns the address of the `task_struct` that waits in a `struct futex_q`.
    ///
    /// # Errors
    /// Returns an error if the kernel lacks the field, or if it is not mapped.
    pub fn futex_waiter(&self, entry: u64) -> Result<u64, Error> {
        self.argument(entry, |layout| layout.futex_task)
    }

    fn argument(&self, base: u64, field: impl Fn(&ArgumentLayout) -> Field) -> Result<u64, Error> {
        let layout = self.kernel.argument_layout.as_ref().map_err(Clone::clone)?;
        self.number(base, field(layout))
    }
}
