//! Accesses to ports and to addresses that are not RAM.
//!
//! An instruction with such an access ends the run with a [`Request`]. The machine answers it, and the instruction is
//! executed again from its start, with the answer available. An instruction may make several accesses: each
//! repetition finds one more answer, in order. Handlers change nothing before their last access, so the guest cannot
//! observe the repetition.

/// One access, as a request to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A load from an address that is not RAM.
    MmioRead {
        /// Guest-physical address.
        gpa: u64,
        /// Size in bytes: 1, 2, 4 or 8.
        size: u8,
    },
    /// A store to an address that is not RAM.
    MmioWrite {
        /// Guest-physical address.
        gpa: u64,
        /// Size in bytes: 1, 2, 4 or 8.
        size: u8,
        /// Stored value, zero-extended.
        value: u64,
    },
    /// IN or INS.
    PioRead {
        /// Port.
        port: u16,
        /// Size in bytes: 1, 2 or 4.
        size: u8,
    },
    /// OUT or OUTS.
    PioWrite {
        /// Port.
        port: u16,
        /// Size in bytes: 1, 2 or 4.
        size: u8,
        /// Written value, zero-extended.
        value: u32,
    },
}

/// Maximum number of accesses of one instruction. FXSAVE of 512 bytes to a device makes 64; the rest is reserve.
const ANSWERS_MAX: usize = 72;

/// Answers to requests of the current instruction, and its pending request.
#[derive(Debug, Default)]
pub(crate) struct Mmio {
    answers: Vec<u64>,
    next: usize,
    pub(crate) pending: Option<Request>,
}

impl Mmio {
    /// Returns the next answer. If there is none yet, stores the request as pending and returns `None`.
    pub(crate) fn ask(&mut self, request: Request) -> Option<u64> {
        if let Some(&v) = self.answers.get(self.next) {
            self.next += 1;
            return Some(v);
        }
        if self.answers.len() >= ANSWERS_MAX {
            // No instruction makes this many accesses. Open bus (all ones) is a safe answer.
            return Some(u64::MAX);
        }
        self.pending = Some(request);
        None
    }
    /// Stores the machine's answer to the pending request.
    pub(crate) fn answer(&mut self, value: u64) {
        if self.pending.take().is_some() {
            self.answers.push(value);
        }
    }
    /// Starts the instruction again from its first access.
    pub(crate) fn rewind(&mut self) {
        self.next = 0;
    }
    /// Drops all answers, because the instruction retired or was abandoned.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.answers.clear();
        self.next = 0;
        self.pending = None;
    }
    /// True while an instruction has a pending request or unused answers.
    #[inline(always)]
    pub(crate) fn in_progress(&self) -> bool {
        self.pending.is_some() || !self.answers.is_empty()
    }
}
