//! Names and queues of Unix sockets.

use super::address::Address;
use super::state::Kind;
use crate::limits::{PACKETS_MAX, UNIX_NAME_BYTES_MAX};
use crate::{Error, Guest};

impl Guest<'_> {
    /// Returns the address of a Unix socket.
    pub(super) fn unix_address(&self, sock: u64) -> Result<Address, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let address = self.number(sock, places.unix_address)?;
        let name = if address == 0 { None } else { Some(self.unix_name(address)?) };
        Ok(Address::Unix { name, inode: self.socket_inode(sock)?.map_or(0, |(inode, _)| inode) })
    }

    /// Returns the name in a `unix_address`, as `/proc/net/unix` prints it.
    fn unix_name(&self, address: u64) -> Result<String, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let bytes = self.number(address, places.unix_name_bytes)?;
        if bytes > UNIX_NAME_BYTES_MAX {
            let max = UNIX_NAME_BYTES_MAX as usize;
            return Err(Error::TooMany { what: "bytes in the name of a Unix socket", max });
        }
        let offset = places.unix_path.offset();
        let mut name = vec![0; bytes.saturating_sub(offset) as usize];
        self.memory().read(address.wrapping_add(places.unix_name.offset() + offset), &mut name)?;
        if name.first() == Some(&0) {
            // A name without a file can contain zero bytes.
            name.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'@');
        } else {
            name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
        }
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// Returns the address of the socket to which a Unix socket is connected. `None` if it is not connected.
    pub(super) fn unix_peer(&self, sock: u64) -> Result<Address, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        match self.number(sock, places.unix_peer)? {
            0 => Ok(Address::None),
            peer => self.unix_address(peer),
        }
    }

    /// Returns the number of bytes in the receive queue of a Unix socket: all bytes of a stream, or the first datagram.
    pub(super) fn unix_received(
        &self,
        sock: u64,
        kind: Kind,
        packets_left: &mut usize,
    ) -> Result<u64, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let head = sock.wrapping_add(places.receive_queue.offset());
        let consumed = places.packet_control.offset() + places.unix_consumed.offset();
        let consumed = everett_symbols::kernel::btf::Field { bit: 8 * consumed, bits: 32 };
        let mut bytes = 0;
        let mut next = self.word(head)?;
        while next != head {
            let too_many = Error::TooMany { what: "packets in the queues of Unix sockets", max: PACKETS_MAX };
            *packets_left = packets_left.checked_sub(1).ok_or(too_many)?;
            let length = self.number(next, places.packet_bytes)?;
            if kind == Kind::UnixDatagram {
                return Ok(length);
            }
            bytes += length.saturating_sub(self.number(next, consumed)?);
            next = self.word(next)?;
        }
        Ok(bytes)
    }
}
