//! Who runs small guests, and what came of one. The narrow side of everything that needs hardware: tests script it.

use super::guest::{END_MARK, Guest};

/// How a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// HLT: as guests end if all goes well, also behind an exception.
    Halted,
    /// A triple fault.
    Shutdown,
    /// The host cannot execute one of its instructions.
    Failed,
    /// It did not end in time.
    TimedOut,
    /// The counter brought control back.
    Overflow,
    /// Something else, in words.
    Other(String),
}

/// What came of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// The exception or interrupt that ended it, if one did.
    pub vector: Option<u8>,
    /// Its general registers at the end, in the order of encodings.
    pub gpr: [u64; 16],
    /// How often it wanted something of us.
    pub exits: u64,
    /// MSR accesses among those.
    pub msr_exits: u64,
    /// How long it took, by the host's clock.
    pub nanoseconds: u64,
    /// Pages of its memory that the host says it wrote.
    pub dirty: Vec<u64>,
    /// Events that were counted, if that was wanted.
    pub counted: Option<u64>,
    /// Whether what was to hold the TSC says that it moved, if that was wanted.
    pub moved: Option<bool>,
}

impl Ran {
    /// Whether it was executed to its end, without an exception before.
    #[must_use]
    pub fn to_its_end(&self) -> bool {
        self.end == End::Halted && self.gpr[15] == END_MARK
    }
    /// How it ended, for people.
    #[must_use]
    pub fn how(&self) -> String {
        match (&self.end, self.vector) {
            (End::Halted, Some(vector)) => format!("the guest ended with vector {vector}"),
            (End::Halted, None) => "the guest halted".to_owned(),
            (End::Shutdown, _) => "the guest ended with a triple fault".to_owned(),
            (End::Failed, _) => "an instruction cannot be executed".to_owned(),
            (End::TimedOut, _) => "the guest did not end".to_owned(),
            (End::Overflow, _) => "the counter ran over".to_owned(),
            (End::Other(what), _) => what.clone(),
        }
    }
    /// Whether it ended with this exception.
    #[must_use]
    pub fn raised(&self, vector: u8) -> bool {
        self.end == End::Halted && self.vector == Some(vector) && !self.to_its_end()
    }
}

/// A host that runs guests.
pub trait Host {
    /// What its KVM says about a capability (`KVM_CAP_*`): zero is no.
    ///
    /// # Errors
    /// When it does not answer, why.
    fn capability(&mut self, number: u32) -> Result<u32, String>;
    /// Run a guest to its end, or for a bounded time.
    ///
    /// # Errors
    /// When it cannot be run, why.
    fn run(&mut self, guest: &Guest) -> Result<Ran, String>;
}
