//! Connection to Everett: a port of the machine, to which the library writes packets.
//!
//! Linux lets only one process open a port. The collector opens it, and passes the descriptor to each process that
//! connects to the collector's socket. One write to the port makes one packet, so packets of several processes do not
//! mix. `session/src/world/conversation/sdk.rs` describes the packets.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::sys;

/// Abstract name of the collector's Unix socket.
const SOCKET: &[u8] = b"everett-sdk";
/// Lowest number for the port's descriptor, if the limit of descriptors permits it. Many programs close lower
/// descriptors when they start.
const DESCRIPTOR_MIN: usize = 900;
/// Maximum number of failed attempts to connect. After them, the library assumes that there is no Everett.
const ATTEMPTS_MAX: u32 = 8;
/// Length of the head of an `L` packet, in bytes: letter, thread ID in hexadecimal, `+` (more follows) or `.` (end).
const HEAD_BYTES: usize = 10;
/// Maximum length of a packet, in bytes. The packet lies on the stack.
const PACKET_BYTES_MAX: usize = 4096;
/// Maximum number of bytes of a line in a packet. One byte is left for the newline.
const PIECE_BYTES_MAX: usize = PACKET_BYTES_MAX - HEAD_BYTES - 1;

/// Descriptor of the port, or -1 if this process has none.
static PORT: AtomicI32 = AtomicI32::new(-1);
/// Device number of the port. It shows whether the descriptor still belongs to the port.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

/// Sends a line. If the text contains newlines, each part is a line. Everett ignores empty lines.
pub(crate) fn line(mut text: &[u8]) {
    let mut packet = MaybeUninit::uninit();
    let packet: &mut [u8; PACKET_BYTES_MAX] = sys::zeroed(&mut packet);
    packet[0] = b'L';
    hexadecimal(sys::thread(), &mut packet[1..9]);
    loop {
        let last = text.len() <= PIECE_BYTES_MAX;
        let (piece, rest) = text.split_at(if last { text.len() } else { PIECE_BYTES_MAX });
        packet[9] = if last { b'.' } else { b'+' };
        sys::copy(piece, &mut packet[HEAD_BYTES..]);
        let mut length = HEAD_BYTES + piece.len();
        if last {
            packet[length] = b'\n';
            length += 1;
        }
        if !send(&packet[..length]) || last {
            return;
        }
        text = rest;
    }
}

/// Reports an edge of a module. `number` is the edge's number within the module.
pub(crate) fn edge(number: u32, module: &[u8]) {
    let mut packet = [0u8; 9 + crate::coverage::NAME_BYTES_MAX];
    packet[0] = b'E';
    hexadecimal(number, &mut packet[1..9]);
    sys::copy(module, &mut packet[9..]);
    let length = 9 + module.len();
    if length <= packet.len() {
        send(&packet[..length]);
    }
}

/// Writes a number as hexadecimal digits that fill `into`.
fn hexadecimal(mut number: u32, into: &mut [u8]) {
    for digit in into.iter_mut().rev() {
        let value = (number & 15) as u8;
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        number >>= 4;
    }
}

/// Sends a packet. Returns false if the packet could not be written.
fn send(packet: &[u8]) -> bool {
    match port() {
        Some(port) => sys::write(port, packet),
        None => false,
    }
}

/// Returns the descriptor of the port. Connects to the collector if there is no descriptor yet.
fn port() -> Option<i32> {
    let port = PORT.load(Ordering::Acquire);
    if port >= 0 {
        // A program may have closed the descriptor and opened another file with the same number.
        if sys::device(port) == Some(DEVICE.load(Ordering::Acquire)) {
            return Some(port);
        }
        let _ = PORT.compare_exchange(port, -1, Ordering::AcqRel, Ordering::Acquire);
    }
    if ATTEMPTS.load(Ordering::Relaxed) >= ATTEMPTS_MAX {
        return None;
    }
    let Some(fd) = sys::descriptor_from(SOCKET) else {
        ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    let fd = sys::moved(fd, DESCRIPTOR_MIN);
    let Some(device) = sys::device(fd) else {
        sys::close(fd);
        return None;
    };
    // There is only one port, so all threads store the same device number.
    DEVICE.store(device, Ordering::Release);
    match PORT.compare_exchange(-1, fd, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(fd),
        Err(other) => {
            // Another thread has stored its descriptor first.
            sys::close(fd);
            (other >= 0).then_some(other)
        }
    }
}
