//! What passed between a CPU and its machine: what tells two runs apart when one of them leaked.
//!
//! A CPU is a function of its state and of its inputs, and the devices are a function of what the CPU writes. So the first
//! entry that differs tells on which side a leak entered: an input says the machine's, a write or an access to another place
//! says the CPU's, some instructions earlier.

use std::fmt;

/// One thing that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Instructions retired before it.
    pub icount: u64,
    /// Nanoseconds of vtime.
    pub vtime: u64,
    /// Address of the instruction.
    pub rip: u64,
    /// What.
    pub kind: EntryKind,
}

/// See [`Entry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A load from a device.
    Mmio {
        /// Guest-physical address.
        gpa: u64,
        /// What it gave.
        value: u64,
    },
    /// IN.
    Pio {
        /// Port.
        port: u16,
        /// What it gave.
        value: u64,
    },
    /// An interrupt was taken.
    Interrupt {
        /// Vector.
        vector: u8,
    },
    /// Idle time was skipped.
    Skip {
        /// To this vtime.
        to: u64,
    },
    /// A store to a device.
    MmioWrite {
        /// Guest-physical address.
        gpa: u64,
        /// What was written.
        value: u64,
    },
    /// OUT.
    PioWrite {
        /// Port.
        port: u16,
        /// What was written.
        value: u64,
    },
    /// Devices wrote these pages.
    DeviceWrite {
        /// How many pages.
        pages: u64,
        /// blake3 of page numbers and contents, the first eight bytes.
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
            EntryKind::PioWrite { port, value } => write!(f, "{value:#x} was OUT to port {port:#x}"),
            EntryKind::Interrupt { vector } => write!(f, "interrupt {vector:#x} was taken"),
            EntryKind::Skip { to } => write!(f, "idle until {to} ns"),
            EntryKind::DeviceWrite { pages, digest } => {
                write!(f, "devices wrote {pages} pages (digest {digest:016x})")
            }
        }
    }
}

/// The most entries that are kept. A comparison clears it at each equal digest, so this bounds one interval.
pub const ENTRIES_MAX: usize = 1 << 22;

/// Entries since the journal was last cleared.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Vec<Entry>,
    lost: bool,
}

/// How far a journal was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    entries: usize,
    lost: bool,
}

impl Journal {
    pub(super) fn mark(&self) -> Mark {
        Mark { entries: self.entries.len(), lost: self.lost }
    }
    /// Forget what came after.
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
    /// The entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
    /// Whether there were more than [`ENTRIES_MAX`].
    pub fn overflowed(&self) -> bool {
        self.lost
    }
    /// Forget them.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.lost = false;
    }
}
