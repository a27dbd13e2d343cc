//! The LAPIC timer (SDM vol. 3A, 11.5.4) in one-shot and periodic mode. It counts at 1 GHz, divided by the divisor.
//!
//! Everett executes no ticks. The counter is a function of vtime, and an expiry is a scheduled event only if it can
//! change something. A masked expiry is not scheduled. A periodic expiry is not scheduled while the timer's interrupt
//! is already requested, because it would set a request bit that is already set. So even with a period of one
//! nanosecond, there is at most one event per interrupt that the guest takes.

use serde::{Deserialize, Serialize};

use super::LVT_MASKED;
use super::vectors::Vectors;
use crate::events::{Event, EventId, EventQueue};

/// LVT bit 17: periodic mode. Bit 18 (TSC-deadline mode) is reserved in this LAPIC.
const PERIODIC: u32 = 1 << 17;

/// Registers of the timer, and the vtime at which the counter was last set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Timer {
    lvt: u32,
    divide_config: u32,
    initial: u32,
    /// Counter value at `start_ns`. Zero if the timer is stopped.
    start_count: u32,
    start_ns: u64,
    armed: Option<EventId>,
}

impl Default for Timer {
    fn default() -> Timer {
        Timer { lvt: LVT_MASKED, divide_config: 0, initial: 0, start_count: 0, start_ns: 0, armed: None }
    }
}

impl Timer {
    pub(super) fn lvt(&self) -> u32 {
        self.lvt
    }
    pub(super) fn initial(&self) -> u32 {
        self.initial
    }
    pub(super) fn divide_config(&self) -> u32 {
        self.divide_config
    }

    /// Returns the value of the current-count register.
    pub(super) fn current(&self, now: u64) -> u32 {
        let elapsed = now.saturating_sub(self.start_ns) / self.divisor();
        let start = u64::from(self.start_count);
        if elapsed < start {
            return (start - elapsed) as u32;
        }
        if !self.periodic() || self.initial == 0 || self.start_count == 0 {
            return 0;
        }
        // The counter reloads when it reaches zero, so it reads `initial` at each expiry.
        self.initial - ((elapsed - start) % u64::from(self.initial)) as u32
    }

    pub(super) fn set_lvt(&mut self, value: u32, now: u64, irr: &Vectors, events: &mut EventQueue) {
        let was_periodic = self.periodic();
        let count = self.current(now);
        self.lvt = value & (0xff | LVT_MASKED | PERIODIC);
        if was_periodic != self.periodic() {
            // Only the mode changes; the counter continues from its current value.
            self.restart(count, now);
        }
        self.arm(now, irr, events);
    }

    pub(super) fn set_initial(&mut self, value: u32, now: u64, irr: &Vectors, events: &mut EventQueue) {
        self.initial = value;
        self.restart(value, now);
        self.arm(now, irr, events);
    }

    pub(super) fn set_divide_config(&mut self, value: u32, now: u64, irr: &Vectors, events: &mut EventQueue) {
        let count = self.current(now);
        self.divide_config = value & 0xb;
        self.restart(count, now);
        self.arm(now, irr, events);
    }

    /// Handles the scheduled expiry, which is due. Returns the vector to request.
    pub(super) fn expired(&mut self) -> Option<u8> {
        self.armed = None;
        (self.lvt & LVT_MASKED == 0).then_some(self.lvt as u8)
    }

    /// Schedules the next periodic expiry, if the vector that the CPU took is the timer's.
    pub(super) fn taken(&mut self, vector: u8, now: u64, irr: &Vectors, events: &mut EventQueue) {
        if self.periodic() && vector == self.lvt as u8 {
            self.arm(now, irr, events);
        }
    }

    fn restart(&mut self, count: u32, now: u64) {
        self.start_count = count;
        self.start_ns = now;
    }

    /// Schedules the next expiry after `now`, if that expiry can change something.
    fn arm(&mut self, now: u64, irr: &Vectors, events: &mut EventQueue) {
        if let Some(id) = self.armed.take() {
            events.cancel(id);
        }
        if self.lvt & LVT_MASKED != 0 || self.start_count == 0 {
            return;
        }
        let first = self.start_ns.saturating_add(u64::from(self.start_count) * self.divisor());
        let at = if first > now {
            first
        } else if self.periodic() && self.initial != 0 && !irr.get(self.lvt as u8) {
            let period = u64::from(self.initial) * self.divisor();
            first.saturating_add(((now - first) / period + 1).saturating_mul(period))
        } else {
            return;
        };
        self.armed = Some(events.schedule(at, Event::LapicTimer));
    }

    fn periodic(&self) -> bool {
        self.lvt & PERIODIC != 0
    }

    /// Returns the nanoseconds per count. Bits 0, 1 and 3 of the divide configuration register encode them.
    fn divisor(&self) -> u64 {
        match self.divide_config & 3 | (self.divide_config >> 1 & 4) {
            7 => 1,
            n => 2 << n,
        }
    }
}
