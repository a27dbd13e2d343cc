//! The HPET (IA-PC HPET specification 1.0a): a 10 MHz counter and three 32-bit comparators. The first comparator
//! interrupts in place of the PIT (legacy replacement). The other comparators never interrupt.
//!
//! Everett does not simulate single ticks. The counter is a function of vtime, and the next match is a scheduled event.
//! Each read of the counter is a device access, i.e. an exit. That is why machines in clock mode `exit`, where vtime
//! advances only at exits, have an HPET: vtime advances while a guest polls the HPET, but not while it polls the TSC.

use serde::{Deserialize, Serialize};

use crate::events::{Event, EventId, EventQueue};

/// Nanoseconds per tick of the counter: the maximum that the specification permits.
const TICK_NS: u64 = 100;
/// Capabilities register. Lower half: revision, three timers, 64-bit counter, legacy replacement, vendor. Upper half:
/// the tick's period in femtoseconds.
pub const CAPABILITIES: u64 = 0x8086_a201 | (TICK_NS * 1_000_000) << 32;
const ENABLED: u32 = 1;
const REPLACES_LEGACY: u32 = 1 << 1;

const TIMERS: usize = 3;
const INTERRUPTS: u32 = 1 << 2;
const PERIODIC: u32 = 1 << 3;
const SETS_VALUE: u32 = 1 << 6;
/// Writable bits of a timer's configuration: trigger type, interrupt enable, periodic, value set, 32-bit mode.
const TIMER_WRITABLE: u32 = 1 << 1 | INTERRUPTS | PERIODIC | SETS_VALUE | 1 << 8;
/// Capability bit of a timer: it can be periodic. Only the first timer has it.
const CAN_BE_PERIODIC: u32 = 1 << 4;
/// Minimum period, in ticks. With a shorter period, an idle machine would spend all its time on timer interrupts.
const PERIOD_MIN: u32 = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Timer {
    config: u32,
    comparator: u32,
    period: u32,
}

/// Registers of the HPET, and the vtime at which the counter was last set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hpet {
    config: u32,
    /// Counter value at `since_ns`. While the counter is enabled, it counts from there.
    count: u64,
    since_ns: u64,
    timers: [Timer; TIMERS],
    armed: Option<EventId>,
}

impl Hpet {
    fn counter(&self, now: u64) -> u64 {
        let passed = if self.config & ENABLED != 0 { now.saturating_sub(self.since_ns) / TICK_NS } else { 0 };
        self.count.wrapping_add(passed)
    }

    /// Reads a register: 4 bytes at a multiple of 4, or 8 at a multiple of 8. Any other access reads zero.
    pub fn read(&self, offset: u64, size: u8, now: u64) -> u64 {
        let whole = self.register(offset & !7, now);
        match (size, offset % 8) {
            (8, 0) => whole,
            (4, 0) => whole & 0xffff_ffff,
            (4, 4) => whole >> 32,
            _ => 0,
        }
    }
    fn register(&self, offset: u64, now: u64) -> u64 {
        match offset {
            0 => CAPABILITIES,
            0x10 => u64::from(self.config),
            0xf0 => self.counter(now),
            _ => match (self.timer(offset), offset % 0x20) {
                (Some(number), 0) => {
                    let capabilities = if number == 0 { CAN_BE_PERIODIC } else { 0 };
                    u64::from(self.timers[number].config | capabilities)
                }
                (Some(number), 8) => u64::from(self.timers[number].comparator),
                _ => 0,
            },
        }
    }
    fn timer(&self, offset: u64) -> Option<usize> {
        let number = usize::try_from(offset.checked_sub(0x100)? / 0x20).ok()?;
        (number < TIMERS).then_some(number)
    }

    /// Writes a register. An 8-byte write to the counter sets all 64 bits. An 8-byte write to any other register has
    /// the effect of a 4-byte write of the lower half.
    pub fn write(&mut self, offset: u64, size: u8, value: u64, now: u64, events: &mut EventQueue) {
        if !matches!((size, offset % 8), (8, 0) | (4, 0 | 4)) {
            return;
        }
        let low = value as u32;
        match offset {
            0x10 => {
                self.restart(self.counter(now), now);
                self.config = low & (ENABLED | REPLACES_LEGACY);
            }
            // Software may set the counter only while it is stopped, but the HPET always accepts the write.
            0xf0 if size == 8 => self.restart(value, now),
            0xf0 => self.restart(self.counter(now) & !0xffff_ffff | u64::from(low), now),
            0xf4 => self.restart(self.counter(now) & 0xffff_ffff | u64::from(low) << 32, now),
            _ => match (self.timer(offset), offset % 0x20) {
                (Some(number), 0) => {
                    let mut config = low & TIMER_WRITABLE;
                    if number != 0 {
                        config &= !PERIODIC;
                    }
                    self.timers[number].config = config;
                }
                (Some(number), 8) => self.timers[number].set(low),
                _ => {}
            },
        }
        self.arm(now, events);
    }

    fn restart(&mut self, count: u64, now: u64) {
        (self.count, self.since_ns) = (count, now);
    }

    /// Handles a due match of the first timer. Only matches that interrupt are scheduled.
    pub fn expired(&mut self, now: u64, events: &mut EventQueue) {
        self.armed = None;
        let counter = self.counter(now) as u32;
        self.timers[0].advance(counter);
        self.arm(now, events);
    }

    /// Schedules the first timer's next match, if that match interrupts.
    fn arm(&mut self, now: u64, events: &mut EventQueue) {
        if let Some(id) = self.armed.take() {
            events.cancel(id);
        }
        let timer = self.timers[0];
        let both = ENABLED | REPLACES_LEGACY;
        if self.config & both != both || timer.config & INTERRUPTS == 0 {
            return;
        }
        let counter = self.counter(now);
        let ahead = match timer.comparator.wrapping_sub(counter as u32) {
            0 => 1 << 32,
            ticks => u64::from(ticks),
        };
        // Ticks from `since_ns` to the match.
        let ticks = counter.wrapping_sub(self.count).saturating_add(ahead);
        let at = self.since_ns.saturating_add(ticks.saturating_mul(TICK_NS));
        self.armed = Some(events.schedule(at, Event::Hpet));
    }
}

impl Timer {
    fn set(&mut self, value: u32) {
        if self.config & PERIODIC == 0 || self.config & SETS_VALUE != 0 {
            self.comparator = value;
            self.config &= !SETS_VALUE;
        } else {
            self.period = value.max(PERIOD_MIN);
        }
    }
    /// Moves a periodic comparator past `counter` by whole periods, after a match.
    fn advance(&mut self, counter: u32) {
        if self.config & PERIODIC != 0 && self.period != 0 {
            let missed = counter.wrapping_sub(self.comparator) / self.period;
            self.comparator = self.comparator.wrapping_add(self.period.wrapping_mul(missed.wrapping_add(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> (Hpet, EventQueue) {
        let (mut hpet, mut events) = (Hpet::default(), EventQueue::default());
        hpet.write(0x10, 4, u64::from(ENABLED | REPLACES_LEGACY), 1_000, &mut events);
        (hpet, events)
    }

    #[test]
    fn the_counter_counts_when_it_is_enabled_and_keeps_its_value() {
        let (mut hpet, mut events) = started();
        assert_eq!(hpet.read(0, 8, 0), CAPABILITIES);
        assert_eq!((hpet.read(0xf0, 4, 1_099), hpet.read(0xf0, 8, 2_000)), (0, 10));
        hpet.write(0x10, 4, 0, 2_050, &mut events);
        assert_eq!(hpet.read(0xf0, 4, 9_000), 10);
        hpet.write(0xf0, 8, 1 << 33, 9_000, &mut events);
        hpet.write(0x10, 4, u64::from(ENABLED), 9_000, &mut events);
        assert_eq!((hpet.read(0xf0, 4, 9_100), hpet.read(0xf4, 4, 9_100)), (1, 2));
        assert_eq!((hpet.read(0xf0, 1, 9_100), hpet.read(0x3f8, 4, 0)), (0, 0));
    }

    #[test]
    fn a_match_is_scheduled_and_repeats_when_the_counter_wraps() {
        let (mut hpet, mut events) = started();
        hpet.write(0x100, 4, u64::from(INTERRUPTS), 1_000, &mut events);
        hpet.write(0x108, 4, 50, 1_000, &mut events);
        assert_eq!(events.next_vtime(), Some(6_000));
        events.pop_due(6_000);
        hpet.expired(6_000, &mut events);
        assert_eq!(
            events.next_vtime(),
            Some(6_000 + (1 << 32) * TICK_NS),
            "the timer matches again when the counter has wrapped"
        );
        hpet.write(0x100, 4, 0, 7_000, &mut events);
        assert!(events.is_empty());
    }

    #[test]
    fn a_period_continues_from_the_match_even_if_it_is_handled_late() {
        let (mut hpet, mut events) = started();
        hpet.write(0x100, 4, u64::from(INTERRUPTS | PERIODIC | SETS_VALUE), 1_000, &mut events);
        hpet.write(0x108, 4, 200, 1_000, &mut events);
        hpet.write(0x108, 4, 200, 1_000, &mut events);
        assert_eq!(events.next_vtime(), Some(21_000));
        events.pop_due(65_000);
        hpet.expired(65_000, &mut events);
        assert_eq!(events.next_vtime(), Some(81_000), "two matches were missed");
        hpet.write(0x108, 4, 1, 65_000, &mut events);
        assert_eq!(hpet.timers[0].period, PERIOD_MIN);
    }
}
