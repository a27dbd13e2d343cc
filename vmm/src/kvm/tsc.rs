//! Holds a guest's TSC at a fixed value.
//!
//! KVM cannot trap RDTSC, but it can slow a guest's TSC down to 1 kHz, i.e. one tick per millisecond. At each entry the
//! engine sets the TSC's offset so that the guest reads the required value until the next tick. A signal takes control
//! back before that tick. If the TSC ticked all the same, the engine detects this afterwards and returns an error. The
//! machine then discards what it has executed.
//!
//! This module reads host time to predict the next tick. The prediction decides only how long the guest runs before
//! the signal stops it. The guest cannot see the prediction.
#![allow(unsafe_code)]

use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::error::{KvmError, Wanted};
use super::ioctl;
use super::ticker::Alarm;
use super::vcpu::Vcpu;

/// Holds a guest's TSC at a value. Tests implement this trait with a simulated TSC.
pub trait HeldTsc: Debug + Send {
    /// Sets the value that the TSC shows from the next entry on. The caller must enter the guest at once, and stop it
    /// at the next signal.
    ///
    /// # Errors
    /// Returns an error if the host refuses.
    fn hold(&mut self, tsc: u64) -> Result<(), KvmError>;
    /// True if the TSC may have shown another value since [`HeldTsc::hold`].
    ///
    /// # Errors
    /// Returns an error if the host cannot read the TSC.
    fn has_moved(&mut self) -> Result<bool, KvmError>;
}

const KHZ: u32 = 1;
/// Time between two ticks of the slowed-down TSC.
const TICK: Duration = Duration::from_millis(1);
/// Time from the signal to the predicted tick. The signal repeats after a third of this time, in case it was lost.
const EARLY: Duration = Duration::from_micros(90);
/// Number of ticks after which the phase of the ticks is measured again.
const TICKS_KNOWN: u64 = 500;
/// Maximum number of readings of the guest's TSC while waiting for a tick. If none of them shows a tick, waiting ends
/// with an error. The fastest host makes some ten thousand readings per tick. On a slow host, this number of readings
/// must take less time than the time limit of `everett doctor`, which checks hosts.
const READINGS_MAX: u32 = 500_000;

/// TSC of a vCPU, slowed down to 1 kHz.
#[derive(Debug)]
pub struct SlowTsc {
    vcpu: OwnedFd,
    held: u64,
    /// Offset of the guest's TSC as [`HeldTsc::hold`] last set it. If the host's kernel does not trust the host's TSC,
    /// it may change the offset. [`HeldTsc::has_moved`] therefore reads the offset again when the TSC has moved.
    offset: u64,
    /// Value of the host's TSC at some past tick.
    ticked: u64,
    /// Cycles of the host's TSC per tick.
    cycles: u64,
    alarm: Option<Alarm>,
}

/// Returns the host's TSC.
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC.
    unsafe { core::arch::x86_64::_rdtsc() }
}

impl SlowTsc {
    /// Slows the TSC of `vcpu` down.
    ///
    /// # Errors
    /// Returns an error if the host cannot scale the TSC or has no timers.
    pub fn new(vcpu: &Vcpu) -> Result<SlowTsc, KvmError> {
        vcpu.set_tsc_khz(KHZ)?;
        let vcpu = ioctl::duplicate(&vcpu.fd).wanted("hold a second descriptor of the virtual CPU")?;
        let offset = ioctl::tsc_offset(&vcpu).wanted("read the TSC's offset")?;
        let mut tsc = SlowTsc { vcpu, held: 0, offset, ticked: 0, cycles: 0, alarm: None };
        let first = tsc.next_tick()?;
        let second = tsc.next_tick()?;
        (tsc.ticked, tsc.cycles) = (second, second - first);
        Ok(tsc)
    }

    fn shown(&self) -> Result<u64, KvmError> {
        ioctl::read_tsc(&self.vcpu).wanted("read the guest's TSC")
    }
    /// Waits for a tick and returns the host's TSC at that tick.
    fn next_tick(&self) -> Result<u64, KvmError> {
        let before = self.shown()?;
        for _ in 0..READINGS_MAX {
            if self.shown()? != before {
                return Ok(cycles());
            }
        }
        Err(KvmError::Lacks("a TSC that ticks"))
    }
    /// Returns the time to the next tick.
    fn left(&mut self) -> Result<Duration, KvmError> {
        let since = cycles().saturating_sub(self.ticked);
        if since / self.cycles > TICKS_KNOWN {
            self.ticked = self.next_tick()?;
            return Ok(TICK);
        }
        let left = u128::from(self.cycles - since % self.cycles);
        let nanoseconds = left * TICK.as_nanos() / u128::from(self.cycles);
        Ok(Duration::from_nanos(nanoseconds as u64))
    }
}

impl HeldTsc for SlowTsc {
    fn hold(&mut self, tsc: u64) -> Result<(), KvmError> {
        let mut left = self.left()?;
        if left < 2 * EARLY {
            self.ticked = self.next_tick()?;
            left = TICK;
        }
        let alarm = match &mut self.alarm {
            Some(alarm) if alarm.is_of_this_thread() => alarm,
            alarm => {
                let new = Alarm::new().map_err(KvmError::failed("make a timer"))?;
                alarm.insert(new)
            }
        };
        alarm.set(left.saturating_sub(EARLY), EARLY / 3).map_err(KvmError::failed("set a timer"))?;
        let scaled = self.shown()?.wrapping_sub(self.offset);
        self.offset = tsc.wrapping_sub(scaled);
        ioctl::set_tsc_offset(&self.vcpu, self.offset).wanted("set the TSC's offset")?;
        self.held = tsc;
        Ok(())
    }
    fn has_moved(&mut self) -> Result<bool, KvmError> {
        if let Some(alarm) = &mut self.alarm {
            alarm.clear();
        }
        let moved = self.shown()? != self.held;
        if moved {
            self.offset = ioctl::tsc_offset(&self.vcpu).wanted("read the TSC's offset")?;
        }
        Ok(moved)
    }
}
