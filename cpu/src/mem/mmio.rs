//! Accesses to ports and to addresses that are not RAM.
//!
//! An instruction with an access of this kind ends the run with a [`Request`]. The caller answers the request, and the
//! CPU then executes the instruction again from its start. An instruction with several accesses is executed again after
//! each answer. Accesses that were already answered get their stored answers, in order. Handlers (the functions that
//! execute instructions) change nothing before their last access, so the guest cannot observe the repetition.

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

/// Maximum number of accesses of one instruction. XRSTOR makes the most: 94. XSAVE makes 86, and ENTER with nesting level 31
/// makes 62, and up to six more if its stores and loads straddle pages.
const ANSWERS_MAX: usize = 96;

/// Answers to requests of the current instruction, and its unanswered request.
#[derive(Debug, Default)]
pub(crate) struct Mmio {
    answers: Vec<u64>,
    next: usize,
    pub(crate) pending: Option<Request>,
}

impl Mmio {
    /// Returns the next answer. If there is none yet, stores `request` as pending and returns `None`.
    pub(crate) fn ask(&mut self, request: Request) -> Option<u64> {
        if let Some(&v) = self.answers.get(self.next) {
            self.next += 1;
            return Some(v);
        }
        if self.answers.len() >= ANSWERS_MAX {
            // No instruction makes this many accesses. The answer is that of a bus without a device: all ones.
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
    /// Goes back to the first answer. Called before the instruction is executed again.
    pub(crate) fn rewind(&mut self) {
        self.next = 0;
    }
    /// Drops all answers. Called when the instruction retired or was abandoned.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.answers.clear();
        self.next = 0;
        self.pending = None;
    }
    /// True if the current instruction has a pending request or has received an answer.
    #[inline(always)]
    pub(crate) fn in_progress(&self) -> bool {
        self.pending.is_some() || !self.answers.is_empty()
    }
}
