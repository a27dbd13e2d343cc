//! Calls in the kernel that take a program's bytes: those that send to a TCP connection, and those that write a file.
//!
//! Each function reads the arguments of a function of the kernel, at that function's first instruction. The buffers are
//! those of the system call, whose arguments are the same in all kernels.

use std::net::SocketAddr;

use crate::limits::{BUFFERS_MAX, PATH_STEPS_OF_PROCESS_MAX};
use crate::memory::AddressSpace;
use crate::registers::ProgramRegisters;
use crate::sockets::address::Address;
use crate::{Error, Guest};

/// Bytes that a call sends on a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Local and remote address of the connection.
    pub addresses: (SocketAddr, SocketAddr),
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// Number of bytes of the system call that it has not passed to the connection yet.
    pub rest: u64,
}

/// Bytes that a call writes into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// Path of the file, as the process sees it.
    pub path: String,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Number of bytes of the system call that it has not written yet.
    pub rest: u64,
}

/// Buffers of a system call, in the order of their bytes: address and length in bytes.
pub type Buffers = Vec<(u64, u64)>;

/// Numbers of system calls (`arch/x86/entry/syscalls/syscall_64.tbl`).
mod call {
    pub(super) const WRITE: u64 = 1;
    pub(super) const PWRITE: u64 = 18;
    pub(super) const WRITEV: u64 = 20;
    pub(super) const SENDTO: u64 = 44;
    pub(super) const SENDMSG: u64 = 46;
    pub(super) const PWRITEV: u64 = 296;
    pub(super) const PWRITEV2: u64 = 328;
}

/// Places of registers in [`ProgramRegisters`].
mod at {
    pub(super) const RDX: usize = 12;
    pub(super) const RSI: usize = 13;
    pub(super) const CALL: usize = 15;
}

impl Guest<'_> {
    /// Reads the arguments of `tcp_sendmsg_locked`.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub fn sending(&self, sock: u64, message: u64) -> Result<Sending, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let layout = self.kernel.argument_layout.as_ref().map_err(Clone::clone)?;
        let port = u16::from_be_bytes(self.bytes(sock, places.local_port)?);
        let (Address::Ip(local), Address::Ip(remote)) = self.addresses(sock, port)? else {
            return Err(Error::Field("sock_common.skc_daddr"));
        };
        Ok(Sending {
            addresses: (local, remote),
            sequence: self.number(sock, places.write_sequence)? as u32,
            rest: self.number(message, layout.message_rest)?,
        })
    }

    /// Reads the arguments of `generic_perform_write`.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub fn writing(&self, request: u64, source: u64) -> Result<Writing, Error> {
        let layout = self.kernel.argument_layout.as_ref().map_err(Clone::clone)?;
        let file = self.number(request, layout.io_file)?;
        let root = self.root_of(self.current()?)?;
        let mut steps_left = PATH_STEPS_OF_PROCESS_MAX;
        Ok(Writing {
            path: self.path_of_file(file, root, &mut steps_left)?,
            offset: self.number(request, layout.io_offset)?,
            rest: self.number(source, layout.buffers_rest)?,
        })
    }

    /// Returns the buffers from which a thread's system call takes bytes. `None` for system calls that are not known to
    /// take bytes from buffers.
    ///
    /// # Errors
    /// Returns an error if the arguments in the program's memory cannot be read.
    pub fn buffers(
        &self,
        registers: &ProgramRegisters,
        memory: AddressSpace<'_>,
    ) -> Result<Option<Buffers>, Error> {
        let (first, second) = (registers.0[at::RSI], registers.0[at::RDX]);
        let word = |address| {
            let mut bytes = [0; 8];
            memory.read(address, &mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        let (vectors, count) = match registers.0[at::CALL] {
            call::WRITE | call::PWRITE | call::SENDTO => return Ok(Some(vec![(first, second)])),
            call::WRITEV | call::PWRITEV | call::PWRITEV2 => (first, second),
            // `struct msghdr` of programs: name, length of the name, vectors, number of vectors.
            call::SENDMSG => (word(first.wrapping_add(16))?, word(first.wrapping_add(24))?),
            _ => return Ok(None),
        };
        if count > BUFFERS_MAX {
            return Err(Error::TooMany { what: "buffers of a system call", max: BUFFERS_MAX as usize });
        }
        let vector = |n: u64| {
            let at = vectors.wrapping_add(16 * n);
            Ok((word(at)?, word(at.wrapping_add(8))?))
        };
        (0..count).map(vector).collect::<Result<Buffers, Error>>().map(Some)
    }
}
