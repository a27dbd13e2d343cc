//! The interface to a host that runs probe guests, and the result of a run. Tests script this interface instead of
//! needing hardware.

use super::guest::{END_MARK, Guest};

/// The way a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The guest executed HLT. Its exception handlers also end in HLT.
    Halted,
    /// A triple fault.
    Shutdown,
    /// The host cannot execute one of the guest's instructions.
    Failed,
    /// The guest did not end in time.
    TimedOut,
    /// The performance counter overflowed and stopped the guest.
    Overflow,
    /// Any other end, described in words.
    Other(String),
}

/// Result of a guest's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The way the guest ended.
    pub end: End,
    /// Vector of the exception or interrupt that ended the guest, if any.
    pub vector: Option<u8>,
    /// General registers at the end, in the order of their encodings.
    pub gpr: [u64; 16],
    /// Quadword on top of the stack at the end: the error code, if an exception that has one ended the guest.
    pub top: u64,
    /// Number of exits to Everett.
    pub exits: u64,
    /// For a guest whose page is swapped: number of stores that had the content of an earlier page.
    pub stale: u64,
    /// Number of these exits that were MSR accesses.
    pub msr_exits: u64,
    /// Duration of the run by the host's clock, in nanoseconds.
    pub nanoseconds: u64,
    /// Page numbers that the host's dirty log reports as written.
    pub dirty: Vec<u64>,
    /// Number of counted events, if counting was requested.
    pub counted: Option<u64>,
    /// True if the TSC, held at one value for this run, may have shown another value; `None` if it was not held.
    pub moved: Option<bool>,
}

impl Ran {
    /// True if the code ran to its end without an exception.
    #[must_use]
    pub fn to_its_end(&self) -> bool {
        self.end == End::Halted && self.gpr[15] == END_MARK
    }
    /// Describes the end of the guest in words.
    #[must_use]
    pub fn how(&self) -> String {
        match (&self.end, self.vector) {
            (End::Halted, Some(vector)) => format!("the guest ended with vector {vector}"),
            (End::Halted, None) => "the guest halted".to_owned(),
            (End::Shutdown, _) => "the guest ended with a triple fault".to_owned(),
            (End::Failed, _) => "an instruction cannot be executed".to_owned(),
            (End::TimedOut, _) => "the guest did not end".to_owned(),
            (End::Overflow, _) => "the counter overflowed".to_owned(),
            (End::Other(what), _) => what.clone(),
        }
    }
    /// True if the guest ended with this exception.
    #[must_use]
    pub fn raised(&self, vector: u8) -> bool {
        self.end == End::Halted && self.vector == Some(vector) && !self.to_its_end()
    }
}

/// A host that runs probe guests.
pub trait Host {
    /// Returns the host's answer for a KVM capability (`KVM_CAP_*`). Zero means unsupported.
    ///
    /// # Errors
    /// Returns the reason if the host does not answer.
    fn capability(&mut self, number: u32) -> Result<u32, String>;
    /// Returns the reason why this host has no TSC control, in words, if it is known: a feature of the processor or a
    /// setting of the kernel.
    fn tsc_control_lacks(&mut self) -> Option<String> {
        None
    }
    /// Runs a guest to its end, or for a bounded time.
    ///
    /// # Errors
    /// Returns the reason if the guest cannot be run.
    fn run(&mut self, guest: &Guest) -> Result<Ran, String>;
}
