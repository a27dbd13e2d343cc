//! Connection to Everett, and sending of packets. `session/src/world/conversation/sdk.rs` describes the packets.

use std::fs::{File, OpenOptions};
use std::io::{IoSliceMut, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};

use crate::{Context as _, Failure};

/// Path of the machine's port for the SDK.
const PATH: &str = "/dev/virtio-ports/everett.sdk";
/// Abstract name of the collector's Unix socket.
const SOCKET: &[u8] = b"everett-sdk";
/// Maximum number of bytes of a line in a packet. The kernel would split a write of more than 32 KiB.
const PIECE_BYTES_MAX: usize = 16 << 10;

/// Opens the port. Linux lets only one process open a port.
pub(crate) fn open() -> Result<File, Failure> {
    OpenOptions::new().write(true).open(PATH).context(|| format!("open {PATH}"))
}

/// Returns the address of the collector's socket.
pub(crate) fn address() -> Result<SocketAddrUnix, Failure> {
    SocketAddrUnix::new_abstract_name(SOCKET).context(|| "name the socket".to_owned())
}

/// Connects to the collector and receives the open port.
pub(crate) fn from_collector() -> Result<File, Failure> {
    let what = || "reach the collector of SDK lines".to_owned();
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).context(what)?;
    rustix::net::connect(&socket, &address()?).context(what)?;
    received(&socket).context(what).map(File::from)
}

fn received(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut pieces = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket.as_fd(), &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let found = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    found.ok_or(Errno::BADF)
}

/// Sends a line in one or more packets. All packets of the line contain the same sender.
pub(crate) fn send(mut port: &File, line: &[u8]) -> Result<(), Failure> {
    let sender = std::process::id();
    let pieces = line.chunks(PIECE_BYTES_MAX);
    let last = pieces.len().saturating_sub(1);
    for (number, piece) in pieces.enumerate() {
        let (mark, end) = if number == last { ('.', "\n") } else { ('+', "") };
        let packet = [format!("L{sender:08x}{mark}").as_bytes(), piece, end.as_bytes()].concat();
        // One write makes one packet.
        port.write_all(&packet).context(|| format!("write to {PATH}"))?;
    }
    Ok(())
}
