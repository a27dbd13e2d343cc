//! The inputs that a CPU got: what tells two runs apart when one of them leaked.
//!
//! A CPU is a function of its state and of these, so the first entry that differs is where a leak outside the CPU
//! entered; when all are equal and the states are not, the CPU itself did it.

use std::fmt;

/// One input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// Instructions retired before it.
    pub icount: u64,
    /// Nanoseconds of vtime.
    pub vtime: u64,
    /// What.
    pub kind: InputKind,
}

/// See [`Input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
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
    /// Devices wrote these pages.
    DeviceWrite {
        /// How many pages.
        pages: u64,
        /// blake3 of page numbers and contents, the first eight bytes.
        digest: u64,
    },
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {}, vtime {} ns: ", self.icount, self.vtime)?;
        match self.kind {
            InputKind::Mmio { gpa, value } => write!(f, "a load from {gpa:#x} gave {value:#x}"),
            InputKind::Pio { port, value } => write!(f, "IN from port {port:#x} gave {value:#x}"),
            InputKind::Interrupt { vector } => write!(f, "interrupt {vector:#x} was taken"),
            InputKind::Skip { to } => write!(f, "idle until {to} ns"),
            InputKind::DeviceWrite { pages, digest } => {
                write!(f, "devices wrote {pages} pages (digest {digest:016x})")
            }
        }
    }
}

/// The most inputs that are kept. A comparison clears it at each equal digest, so this bounds one interval.
pub const INPUTS_MAX: usize = 1 << 22;

/// Inputs since the journal was last cleared.
#[derive(Debug, Default)]
pub struct Journal {
    inputs: Vec<Input>,
    lost: bool,
}

impl Journal {
    pub(super) fn push(&mut self, input: Input) {
        if self.inputs.len() < INPUTS_MAX {
            self.inputs.push(input);
        } else {
            self.lost = true;
        }
    }
    /// The inputs, in order.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }
    /// Whether there were more than [`INPUTS_MAX`].
    pub fn overflowed(&self) -> bool {
        self.lost
    }
    /// Forget them.
    pub fn clear(&mut self) {
        self.inputs.clear();
        self.lost = false;
    }
}
