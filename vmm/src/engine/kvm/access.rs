//! A device access that KVM reports as a whole. The engine passes it to the machine in pieces of 1, 2, 4 or 8 bytes.
//! Such accesses are INS and OUTS of several values, and accesses that cross an alignment boundary.

use everett_cpu::Request;

use crate::engine::Exit;

/// Target of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Guest-physical address of the first piece. Later pieces are at ascending addresses.
    Memory(u64),
    /// Number of a port, and the size of each piece. All pieces access the same port.
    Port(u16, u8),
}

/// A device access and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Access {
    target: Target,
    write: bool,
    data: Vec<u8>,
    done: usize,
    /// True while the machine owes an answer to the request for the piece at offset `done`.
    asked: bool,
}

impl Access {
    /// Creates a load of `len` bytes.
    pub(super) fn read(target: Target, len: usize) -> Access {
        Access { target, write: false, data: vec![0; len], done: 0, asked: false }
    }
    /// Creates a store of these bytes.
    pub(super) fn write(target: Target, data: &[u8]) -> Access {
        Access { target, write: true, data: data.to_vec(), done: 0, asked: false }
    }

    /// Returns the exit for the next piece, or `None` after the last one.
    pub(super) fn next(&mut self) -> Option<Exit> {
        let size = self.piece();
        if size == 0 {
            return None;
        }
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.data[self.done..self.done + size]);
        let (value, at) = (u64::from_le_bytes(bytes), self.done as u64);
        let size = size as u8;
        if self.write {
            self.done += usize::from(size);
        } else {
            self.asked = true;
        }
        Some(match (self.target, self.write) {
            (Target::Memory(gpa), false) => {
                Exit::Device(Request::MmioRead { gpa: gpa.wrapping_add(at), size })
            }
            (Target::Memory(gpa), true) => {
                Exit::Device(Request::MmioWrite { gpa: gpa.wrapping_add(at), size, value })
            }
            (Target::Port(port, _), false) => Exit::Device(Request::PioRead { port, size }),
            (Target::Port(port, _), true) => {
                Exit::Device(Request::PioWrite { port, size, value: value as u32 })
            }
        })
    }
    /// Stores the machine's answer to a load.
    pub(super) fn answer(&mut self, value: u64) {
        if std::mem::take(&mut self.asked) {
            let size = self.piece();
            self.data[self.done..self.done + size].copy_from_slice(&value.to_le_bytes()[..size]);
            self.done += size;
        }
    }
    /// Returns the bytes that were loaded, or that are to be stored.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }
    /// True if the access is a load.
    pub(super) fn is_read(&self) -> bool {
        !self.write
    }

    /// Returns the size of the next piece in bytes, or 0 after the last piece.
    fn piece(&self) -> usize {
        let left = self.data.len() - self.done;
        match self.target {
            Target::Port(_, size) => usize::from(size).min(left),
            Target::Memory(_) => [8, 4, 2, 1].into_iter().find(|&size| size <= left).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_sizes_that_devices_know() {
        let mut access = Access::write(Target::Memory(0x1000), &[1, 2, 3, 4, 5, 6, 7]);
        let pieces: Vec<Exit> = std::iter::from_fn(|| access.next()).collect();
        assert_eq!(
            pieces,
            [
                Exit::Device(Request::MmioWrite { gpa: 0x1000, size: 4, value: 0x0403_0201 }),
                Exit::Device(Request::MmioWrite { gpa: 0x1004, size: 2, value: 0x0605 }),
                Exit::Device(Request::MmioWrite { gpa: 0x1006, size: 1, value: 7 }),
            ]
        );
    }

    #[test]
    fn answers_are_joined_and_a_question_is_repeated_until_it_is_answered() {
        let mut access = Access::read(Target::Port(0x60, 2), 4);
        for _ in 0..2 {
            assert_eq!(access.next(), Some(Exit::Device(Request::PioRead { port: 0x60, size: 2 })));
        }
        access.answer(0x2211);
        assert_eq!(access.next(), Some(Exit::Device(Request::PioRead { port: 0x60, size: 2 })));
        access.answer(0xffff_4433);
        access.answer(0);
        assert_eq!((access.next(), access.data()), (None, [0x11, 0x22, 0x33, 0x44].as_slice()));
    }
}
