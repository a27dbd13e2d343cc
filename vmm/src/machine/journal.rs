//! Journal of everything that a CPU and its machine exchange. Comparing the journals of two runs shows where
//! nondeterminism entered one of them.
//!
//! The CPU is a function of its state and its inputs; the devices are a function of the CPU's writes. So the first
//! entry that differs shows which side leaked, i.e. was not deterministic. If the entry is an input with a different
//! value, the machine leaked. If it is a write, or an access to a different address, the CPU leaked, in one of the
//! instructions before.

use std::fmt;

/// An event between the CPU and its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Count before the event, in the unit of the clock mode (by default, retired instructions).
    pub icount: u64,
    /// Time of the event, in nanoseconds of vtime.
    pub vtime: u64,
    /// Address of the instruction that caused the event.
    pub rip: u64,
    /// Kind of the event.
    pub kind: EntryKind,
}

/// Kind of an [`Entry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A load from a device.
    Mmio {
        /// Guest-physical address.
        gpa: u64,
        /// Value that was loaded.
        value: u64,
    },
    /// IN.
    Pio {
        /// Port.
        port: u16,
        /// Value that was read.
        value: u64,
    },
    /// The CPU took an interrupt.
    Interrupt {
        /// Vector.
        vector: u8,
    },
    /// The machine skipped idle time.
    Skip {
        /// vtime at the end of the skip, in nanoseconds.
        to: u64,
    },
    /// A store to a device.
    MmioWrite {
        /// Guest-physical address.
        gpa: u64,
        /// Value that was stored.
        value: u64,
    },
    /// OUT.
    PioWrite {
        /// Port.
        port: u16,
        /// Value that was written.
        value: u64,
    },
    /// Devices wrote pages of RAM.
    DeviceWrite {
        /// Number of pages.
        pages: u64,
        /// First eight bytes of a BLAKE3 hash of the page numbers and contents.
        digest: u64,
    },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {}, vtime {} ns: ", self.icount, self.vtime)?;
        match self.kind {
            EntryKind::Mmio { gpa, value } => write!(f, "a load from {gpa:#x} gave {value:#x}"),
            EntryKind::Pio { port, value } => write!(f, "IN from port {port:#x} gave {value:#x}"),
            EntryKind::MmioWrite { gpa, value } => write!(f, "{value:#x} was stored to {gpa:#x}"),
            EntryKind::PioWrite { port, value } => write!(f, "{value:#x} was written to port {port:#x}"),
            EntryKind::Interrupt { vector } => write!(f, "interrupt {vector:#x} was taken"),
            EntryKind::Skip { to } => write!(f, "idle until {to} ns"),
            EntryKind::DeviceWrite { pages, digest } => {
                write!(f, "devices wrote {pages} pages (digest {digest:016x})")
            }
        }
    }
}

/// Maximum number of entries of a journal. A comparison clears the journal at each equal digest, so this bounds the
/// entries between two digests.
pub const ENTRIES_MAX: usize = 1 << 22;

/// Entries since the journal was last cleared.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Vec<Entry>,
    lost: bool,
}

/// Length of a journal at an earlier time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    entries: usize,
    lost: bool,
}

impl Journal {
    pub(super) fn mark(&self) -> Mark {
        Mark { entries: self.entries.len(), lost: self.lost }
    }
    /// Removes all entries after `mark`.
    pub(super) fn go_back(&mut self, mark: Mark) {
        self.entries.truncate(mark.entries);
        self.lost = mark.lost;
    }
    pub(super) fn push(&mut self, entry: Entry) {
        if self.entries.len() < ENTRIES_MAX {
            self.entries.push(entry);
        } else {
            self.lost = true;
        }
    }
    /// Returns the entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
    /// True if the journal dropped entries because there were more than [`ENTRIES_MAX`].
    pub fn overflowed(&self) -> bool {
        self.lost
    }
    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.lost = false;
    }
}
