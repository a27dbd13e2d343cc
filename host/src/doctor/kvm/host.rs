//! The interface to a host that runs probe guests (small guests that test `/dev/kvm`), and the result of a guest's run.
//! Tests implement this interface without hardware.

use super::guest::{END_MARK, Guest};

/// How a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The guest executed HLT. Its exception handlers end in HLT, too.
    Halted,
    /// The guest caused a triple fault.
    Shutdown,
    /// The host cannot execute one of the guest's instructions.
    Failed,
    /// The guest did not end within the time limit.
    TimedOut,
    /// The performance counter overflowed and stopped the guest.
    Overflow,
    /// The guest ended in another way, which the text describes.
    Other(String),
}

/// Result of a guest's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// How the guest ended.
    pub end: End,
    /// Vector of the exception or interrupt that ended the guest. `None` if neither did.
    pub vector: Option<u8>,
    /// General registers at the end, in the order of their encodings.
    pub gpr: [u64; 16],
    /// Quadword on top of the guest's stack at the end. After an exception with an error code, it is the error code.
    pub top: u64,
    /// Number of exits to Everett.
    pub exits: u64,
    /// Number of the guest's stores whose value came from an outdated page. If [`Guest::swaps`] is set, the host
    /// replaces the page at one guest address again and again. A store with an outdated value shows that the guest
    /// still read the page from before a replacement.
    pub stale: u64,
    /// Number of exits that were MSR accesses.
    pub msr_exits: u64,
    /// Duration of the run by the host's clock, in nanoseconds.
    pub nanoseconds: u64,
    /// Numbers of the pages that the host's dirty log reports as written.
    pub dirty: Vec<u64>,
    /// Number of events that the performance counter counted. `None` if nothing was counted.
    pub counted: Option<u64>,
    /// True if the TSC may have moved away from the value at which it was held. `None` if it was not held during the
    /// run.
    pub moved: Option<bool>,
}

impl Ran {
    /// True if the guest executed its code to the end without an exception.
    #[must_use]
    pub fn to_its_end(&self) -> bool {
        self.end == End::Halted && self.gpr[15] == END_MARK
    }
    /// Describes in words how the guest ended.
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
    /// True if the exception with this vector ended the guest.
    #[must_use]
    pub fn raised(&self, vector: u8) -> bool {
        self.end == End::Halted && self.vector == Some(vector) && !self.to_its_end()
    }
}

/// A host that runs probe guests.
pub trait Host {
    /// Returns the host's answer for a KVM capability (`KVM_CAP_*`). Zero means that the capability is not supported.
    ///
    /// # Errors
    /// Returns the reason why the host does not answer.
    fn capability(&mut self, number: u32) -> Result<u32, String>;
    /// Returns the reason in words why this host cannot control a guest's TSC: a feature that the processor lacks, or a
    /// setting of the kernel. `None` if the reason is not known.
    fn tsc_control_lacks(&mut self) -> Option<String> {
        None
    }
    /// Runs a guest to its end, or until its time limit.
    ///
    /// # Errors
    /// Returns the reason why the guest cannot be run.
    fn run(&mut self, guest: &Guest) -> Result<Ran, String>;
}
