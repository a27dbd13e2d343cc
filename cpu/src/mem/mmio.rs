//! Accesses to addresses that are not RAM, and to ports.
//!
//! An instruction that makes one ends the run with the request. The machine serves it, and the instruction is executed
//! again from its start, now with the answer at hand. An instruction may make several; each repetition finds one more
//! answer, in order. Handlers change nothing before their last access, so repetition is invisible.

/// One access, as the machine is asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A load from an address that is not RAM.
    MmioRead {
        /// Guest-physical address.
        gpa: u64,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
    },
    /// A store to an address that is not RAM.
    MmioWrite {
        /// Guest-physical address.
        gpa: u64,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// Zero-extended.
        value: u64,
    },
    /// IN or INS.
    PioRead {
        /// Port.
        port: u16,
        /// Bytes: 1, 2 or 4.
        size: u8,
    },
    /// OUT or OUTS.
    PioWrite {
        /// Port.
        port: u16,
        /// Bytes: 1, 2 or 4.
        size: u8,
        /// Zero-extended.
        value: u32,
    },
}

/// The most accesses that one instruction can make: FXSAVE of 512 bytes to a device, in eights, and then some.
const ANSWERS_MAX: usize = 72;

/// Requests of the current instruction that are answered already, and the one that is not.
#[derive(Debug, Default)]
pub(crate) struct Mmio {
    answers: Vec<u64>,
    next: usize,
    pub(crate) pending: Option<Request>,
}

impl Mmio {
    /// The answer, or the request is noted as pending.
    pub(crate) fn ask(&mut self, request: Request) -> Option<u64> {
        if let Some(&v) = self.answers.get(self.next) {
            self.next += 1;
            return Some(v);
        }
        if self.answers.len() >= ANSWERS_MAX {
            // No instruction gets here; open bus is a safe answer.
            return Some(u64::MAX);
        }
        self.pending = Some(request);
        None
    }
    /// The machine's answer to the pending request.
    pub(crate) fn answer(&mut self, value: u64) {
        if self.pending.take().is_some() {
            self.answers.push(value);
        }
    }
    /// The instruction starts again.
    pub(crate) fn rewind(&mut self) {
        self.next = 0;
    }
    /// The instruction retired or was abandoned.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.answers.clear();
        self.next = 0;
        self.pending = None;
    }
    /// Whether an instruction waits for its completion.
    #[inline(always)]
    pub(crate) fn in_progress(&self) -> bool {
        self.pending.is_some() || !self.answers.is_empty()
    }
}
