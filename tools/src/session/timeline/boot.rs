//! From power-on to a timeline under a seed.
//!
//! Everything up to *ready* happens under the boot seed, so one boot serves all seeds. There the timeline begins: the
//! machine's random streams take the user's seed, the guest's VM generation ID changes, and its kernel is reseeded
//! through the agent; when that is done the drivers start.

use everett_vmm::machine::{Stop, Until};

use super::{Phase, Timeline};
use crate::units::show_duration_ns;

/// A machine gets ready in so much vtime or not at all: ten minutes.
pub const BOOT_NS_MAX: u64 = 600_000_000_000;
/// Bytes that the guest's kernel is reseeded with.
const ENTROPY_BYTES: usize = 64;
/// Whoever waits for a boot gets a word after so much vtime.
const STEP_NS: u64 = 20_000_000;

/// Why a machine did not get where it was wanted.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// It cannot get there any more.
    #[error("node {node} does not get ready: {why}")]
    Useless {
        /// Which.
        node: String,
        /// What was found.
        why: String,
    },
    /// Somebody wanted an end.
    #[error("interrupted")]
    Interrupted,
}

/// A timeline begins once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the timeline has begun already, under seed {0}")]
pub struct BegunAlready(pub u64);

impl Timeline {
    /// Begin under `seed`: here if the services are ready, else where they will be.
    ///
    /// # Errors
    /// It has begun, or is to begin under another seed.
    pub fn begin(&mut self, seed: u64) -> Result<(), BegunAlready> {
        if let Some(first) = self.seed() {
            return Err(BegunAlready(first));
        }
        self.course.begin_with = Some(seed);
        if self.phase() == Phase::Ready {
            self.act();
        }
        Ok(())
    }

    /// The seed under which it has begun or will.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.conversation.seed().or(self.course.begin_with)
    }

    /// A machine that is not ready in [`BOOT_NS_MAX`] from here will not be: that is a finding, and ends the conversation.
    pub fn limit_boot(&mut self) {
        if self.phase() < Phase::Ready && self.course.boot_until_ns.is_none() {
            self.course.boot_until_ns = Some(self.machine.vtime().saturating_add(BOOT_NS_MAX));
        }
    }

    /// Run until the conversation is in `phase`, which is [`Phase::Mounted`] or [`Phase::Ready`]: the restart point, or the
    /// root of all timelines. The machine stops right after the instruction with which the agent said so, before the
    /// host has done anything about it. `go_on` is asked every few milliseconds of host time, and may take events and
    /// console.
    ///
    /// # Errors
    /// The machine does not get there, or `go_on` says no; then it may be called again.
    pub fn run_to(
        &mut self,
        phase: Phase,
        go_on: &mut dyn FnMut(&mut Timeline) -> bool,
    ) -> Result<(), BootError> {
        self.limit_boot();
        loop {
            if matches!(self.phase(), Phase::Broken | Phase::Done) {
                let node = self.machine.name().to_owned();
                let why = self.conversation.broken_because().unwrap_or("it was told to power off").to_owned();
                return Err(BootError::Useless { node, why });
            }
            if self.phase() >= phase {
                return Ok(());
            }
            let next_ns = self.machine.vtime().saturating_add(STEP_NS);
            let stop = self.run_until(&Until::vtime(next_ns), Some(phase));
            if self.phase() < phase && !matches!(stop, Stop::End(_)) && !go_on(self) {
                return Err(BootError::Interrupted);
            }
        }
    }

    pub(super) fn draw_entropy(&mut self) -> Vec<u8> {
        let mut entropy = vec![0; ENTROPY_BYTES];
        self.machine.draw_entropy(&mut entropy);
        entropy
    }

    pub(super) fn begin_here(&mut self, seed: u64, now: u64) {
        self.machine.reseed(seed);
        let mut generation = [0; 16];
        self.machine.draw_entropy(&mut generation);
        self.machine.new_generation(generation);
        let entropy = self.draw_entropy();
        self.conversation.begin(seed, entropy, now);
    }

    /// Give up a machine that does not get ready.
    pub(super) fn look_at_boot(&mut self, now: u64) {
        if self.phase() >= Phase::Ready {
            self.course.boot_until_ns = None;
        } else if self.course.boot_until_ns.is_some_and(|at| at <= now) {
            self.course.boot_until_ns = None;
            self.conversation.boot_took_too_long(now, &show_duration_ns(BOOT_NS_MAX));
        }
    }
}
