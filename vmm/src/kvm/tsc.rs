//! A guest's TSC that stands still: the narrow side of TSC control, so that tests can put another in its place.
//!
//! KVM cannot trap RDTSC. But a TSC of 1 kHz ticks once in a millisecond, and its offset can be set at each entry, so that it
//! shows what it should until the next tick. A signal gets control back before that. Whether a tick came all the same is seen
//! afterwards, and then what was executed is worth nothing.
//!
//! Host time is read here, for when the next tick comes. It decides how long the guest runs until somebody looks, and nothing
//! that a guest can see.
#![allow(unsafe_code)]

use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::error::{KvmError, Wanted};
use super::ioctl;
use super::ticker::Alarm;
use super::vcpu::Vcpu;

/// Holds a guest's TSC.
pub trait HeldTsc: Debug + Send {
    /// From the next entry on it shows this. The guest is to be entered now, and left at the next signal.
    ///
    /// # Errors
    /// The host does not take it.
    fn hold(&mut self, tsc: u64) -> Result<(), KvmError>;
    /// Whether it may have shown something else since.
    ///
    /// # Errors
    /// The host does not tell.
    fn has_moved(&mut self) -> Result<bool, KvmError>;
}

const KHZ: u32 = 1;
/// Between two ticks.
const TICK: Duration = Duration::from_millis(1);
/// Control is back so long before a tick, if the host is quick; signals that are lost come again in a third of that.
const EARLY: Duration = Duration::from_micros(90);
/// When the next tick comes is looked at anew after so many.
const TICKS_KNOWN: u64 = 500;
/// Readings of a TSC that does not tick, before it counts as one that never will.
const READINGS_MAX: u32 = 10_000_000;

/// The TSC of a vCPU, slowed down.
#[derive(Debug)]
pub struct SlowTsc {
    vcpu: OwnedFd,
    held: u64,
    /// Of the host's TSC: when a tick came, and how many cycles there are to the next.
    ticked: u64,
    cycles: u64,
    alarm: Option<Alarm>,
}

/// The host's TSC.
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

impl SlowTsc {
    /// Slow this CPU's TSC down.
    ///
    /// # Errors
    /// The host has no TSC control, or no timers.
    pub fn new(vcpu: &Vcpu) -> Result<SlowTsc, KvmError> {
        vcpu.set_tsc_khz(KHZ)?;
        let vcpu = ioctl::duplicate(&vcpu.fd).wanted("hold a second descriptor of the virtual CPU")?;
        let mut tsc = SlowTsc { vcpu, held: 0, ticked: 0, cycles: 0, alarm: None };
        let first = tsc.next_tick()?;
        let second = tsc.next_tick()?;
        (tsc.ticked, tsc.cycles) = (second, second - first);
        Ok(tsc)
    }

    fn shown(&self) -> Result<u64, KvmError> {
        ioctl::read_tsc(&self.vcpu).wanted("read the guest's TSC")
    }
    /// Wait for a tick: when it came.
    fn next_tick(&self) -> Result<u64, KvmError> {
        let before = self.shown()?;
        for _ in 0..READINGS_MAX {
            if self.shown()? != before {
                return Ok(cycles());
            }
        }
        Err(KvmError::Lacks("a TSC that ticks"))
    }
    /// How long it is to the next tick.
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
                let new =
                    Alarm::new().map_err(|source| KvmError::Request { what: "make a timer", source })?;
                alarm.insert(new)
            }
        };
        alarm
            .set(left.saturating_sub(EARLY), EARLY / 3)
            .map_err(|source| KvmError::Request { what: "set a timer", source })?;
        let offset = ioctl::tsc_offset(&self.vcpu).wanted("read the TSC's offset")?;
        let scaled = self.shown()?.wrapping_sub(offset);
        ioctl::set_tsc_offset(&self.vcpu, tsc.wrapping_sub(scaled)).wanted("set the TSC's offset")?;
        self.held = tsc;
        Ok(())
    }
    fn has_moved(&mut self) -> Result<bool, KvmError> {
        if let Some(alarm) = &mut self.alarm {
            alarm.clear();
        }
        Ok(self.shown()? != self.held)
    }
}
