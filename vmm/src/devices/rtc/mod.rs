//! The real-time clock (MC146818) at ports 0x70 and 0x71, with alarm, update-ended and periodic interrupts.
//!
//! The RTC shows the date at which the world starts, plus vtime, so it needs no ticks. Only enabled interrupts are
//! scheduled events. An interrupt is not scheduled while its flag is set: the interrupt line is then high, and cannot
//! rise again before the guest reads register C.

mod calendar;

use serde::{Deserialize, Serialize};

use crate::clock::NANOS;
use crate::events::{Event, EventId, EventQueue};
use calendar::Civil;

const SECONDS: u8 = 0;
const MINUTES: u8 = 2;
const HOURS: u8 = 4;
const WEEKDAY: u8 = 6;
const DAY: u8 = 7;
const MONTH: u8 = 8;
const YEAR: u8 = 9;
const REG_A: u8 = 10;
const REG_B: u8 = 11;
const REG_C: u8 = 12;
const REG_D: u8 = 13;
/// Number of the century register, which ACPI's FADT announces.
pub const CENTURY: u8 = 0x32;

const A_UPDATING: u8 = 0x80;
const B_SET: u8 = 0x80;
const B_PERIODIC: u8 = 0x40;
const B_ALARM: u8 = 0x20;
const B_UPDATE: u8 = 0x10;
const B_BINARY: u8 = 4;
const B_24_HOURS: u8 = 2;
const C_IRQ: u8 = 0x80;
const D_VALID: u8 = 0x80;
/// Time before each full second during which the update-in-progress bit is set, in nanoseconds.
const UPDATE_NS: u64 = 244_000;
const SECONDS_A_DAY: i64 = 86_400;

/// Size of CMOS memory in bytes, including the clock's registers.
const MEMORY_BYTES: usize = 128;

/// The RTC and its CMOS memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rtc {
    index: u8,
    /// Time that the clock shows at vtime 0, in seconds since 1970.
    base_s: i64,
    /// Time at which the guest has stopped the clock by the SET bit, in seconds since 1970. `None` while the clock
    /// runs.
    held_s: Option<i64>,
    reg_a: u8,
    reg_b: u8,
    flags: u8,
    /// Seconds, minutes and hours of the alarm, in the guest's encoding.
    alarm: [u8; 3],
    memory: Vec<u8>,
    armed: Option<EventId>,
}

/// Next interrupt: its vtime in nanoseconds, and the flags of register C to set.
type Due = (u64, u8);

impl Rtc {
    /// Sets the clock forward by `seconds`, or back if `seconds` is negative. Has no effect while the guest has stopped
    /// the clock.
    pub fn shift(&mut self, seconds: i64) {
        self.base_s = self.base_s.saturating_add(seconds);
    }

    /// Creates a clock that shows `epoch_s` (seconds since 1970) at vtime 0.
    pub fn new(epoch_s: i64) -> Rtc {
        Rtc {
            index: 0,
            base_s: epoch_s,
            held_s: None,
            reg_a: 0x26,
            reg_b: B_24_HOURS,
            flags: 0,
            alarm: [0; 3],
            memory: vec![0; MEMORY_BYTES],
            armed: None,
        }
    }

    /// True if this is a valid state. A decoded state may come from a hostile file, so the caller checks it before use.
    pub fn is_sound(&self) -> bool {
        self.index < 0x80 && self.memory.len() == MEMORY_BYTES
    }

    /// Reads port 0 (index) or port 1 (data).
    pub fn read(&mut self, port: u16, now: u64, events: &mut EventQueue) -> u8 {
        if port == 0 {
            return 0xff;
        }
        let civil = Civil::from_unix(self.seconds(now));
        match self.index {
            SECONDS => self.encode(civil.second),
            1 | 3 | 5 => self.alarm[usize::from(self.index / 2)],
            MINUTES => self.encode(civil.minute),
            HOURS => self.encode_hour(civil.hour),
            WEEKDAY => self.encode(civil.weekday()),
            DAY => self.encode(civil.day),
            MONTH => self.encode(civil.month),
            YEAR => self.encode(civil.year.rem_euclid(100) as u8),
            CENTURY => self.encode(civil.year.div_euclid(100).rem_euclid(100) as u8),
            REG_A => {
                let updating = self.held_s.is_none() && NANOS - now % NANOS <= UPDATE_NS;
                self.reg_a & !A_UPDATING | if updating { A_UPDATING } else { 0 }
            }
            REG_B => self.reg_b,
            REG_C => {
                let flags = std::mem::take(&mut self.flags);
                self.arm(now, events);
                flags | if flags & self.reg_b & 0x70 != 0 { C_IRQ } else { 0 }
            }
            REG_D => D_VALID,
            index => self.memory[usize::from(index)],
        }
    }

    /// Writes port 0 (index) or port 1 (data).
    pub fn write(&mut self, port: u16, value: u8, now: u64, events: &mut EventQueue) {
        if port == 0 {
            // On a PC, bit 7 masks NMIs. This machine has no NMIs.
            self.index = value & 0x7f;
            return;
        }
        match self.index {
            SECONDS | MINUTES | HOURS | DAY | MONTH | YEAR | CENTURY => self.set_time(value, now),
            // The weekday is computed from the date, so a write has no effect. Registers C and D are read-only.
            WEEKDAY | REG_C | REG_D => {}
            1 | 3 | 5 => self.alarm[usize::from(self.index / 2)] = value,
            REG_A => self.reg_a = value & !A_UPDATING,
            REG_B => self.set_reg_b(value, now),
            index => self.memory[usize::from(index)] = value,
        }
        self.arm(now, events);
    }

    /// True if the interrupt line is high.
    pub fn line(&self) -> bool {
        self.flags & self.reg_b & 0x70 != 0
    }

    /// Handles the scheduled interrupt, which is due at `now`.
    pub fn expired(&mut self, now: u64, events: &mut EventQueue) {
        self.armed = None;
        if let Some((_, flag)) = self.next_due(now.saturating_sub(1)).filter(|&(at, _)| at <= now) {
            self.flags |= flag;
        }
        self.arm(now, events);
    }

    fn arm(&mut self, now: u64, events: &mut EventQueue) {
        if let Some(id) = self.armed.take() {
            events.cancel(id);
        }
        self.armed = self.next_due(now).map(|(at, _)| events.schedule(at, Event::Rtc));
    }

    /// Returns the first vtime after `now` at which an enabled interrupt would set a flag that is clear.
    fn next_due(&self, now: u64) -> Option<Due> {
        let wanted = |enable: u8| self.reg_b & enable != 0 && self.flags & enable == 0;
        let second = (now / NANOS + 1) * NANOS;
        let mut due: Vec<Due> = Vec::new();
        if wanted(B_PERIODIC)
            && let Some(at) = self.next_periodic(now)
        {
            due.push((at, B_PERIODIC));
        }
        if self.held_s.is_none() {
            if wanted(B_UPDATE) {
                due.push((second, B_UPDATE));
            }
            if wanted(B_ALARM)
                && let Some(wait) = self.alarm_wait(self.seconds(second))
            {
                due.push((second + wait * NANOS, B_ALARM));
            }
        }
        let at = due.iter().map(|&(at, _)| at).min()?;
        // Flags that are due at the same time are set together.
        Some((at, due.iter().filter(|&&(t, _)| t == at).fold(0, |flags, &(_, flag)| flags | flag)))
    }

    /// Returns the vtime of the first periodic interrupt after `now` (register A's rate; data sheet, table 3). The k-th
    /// interrupt comes k periods of 2^(rate - 1) / 32768 s after vtime 0, rounded up.
    fn next_periodic(&self, now: u64) -> Option<u64> {
        let rate = match self.reg_a & 15 {
            0 => return None,
            rate @ 1..=2 => rate + 7,
            rate => rate,
        };
        let (period, unit) = (u128::from(NANOS) << (rate - 1), 32_768);
        let next = u128::from(now) * unit / period + 1;
        u64::try_from((next * period).div_ceil(unit)).ok()
    }

    /// Returns the seconds from `second` to the first second that the alarm matches. Returns `None` if the alarm
    /// matches no time of day.
    ///
    /// An alarm field of 0xc0 or more matches any value. The search skips whole hours and minutes that cannot match.
    fn alarm_wait(&self, second: i64) -> Option<u64> {
        let matches = |alarm: u8, shown: u8| alarm >= 0xc0 || alarm == shown;
        let next = |at: i64, unit: i64| (at.div_euclid(unit) + 1) * unit;
        let mut at = second;
        while at < second + SECONDS_A_DAY {
            let civil = Civil::from_unix(at);
            if !matches(self.alarm[2], self.encode_hour(civil.hour)) {
                at = next(at, 3600);
            } else if !matches(self.alarm[1], self.encode(civil.minute)) {
                at = next(at, 60);
            } else if !matches(self.alarm[0], self.encode(civil.second)) {
                at += 1;
            } else {
                return Some((at - second) as u64);
            }
        }
        None
    }

    /// Returns the time of the clock, in seconds since 1970.
    fn seconds(&self, now: u64) -> i64 {
        self.held_s.unwrap_or_else(|| self.base_s.saturating_add((now / NANOS) as i64))
    }

    fn set_reg_b(&mut self, value: u8, now: u64) {
        let shown = self.seconds(now);
        self.reg_b = if value & B_SET != 0 { value & !B_UPDATE } else { value };
        if value & B_SET != 0 {
            self.held_s = Some(shown);
        } else if self.held_s.take().is_some() {
            self.base_s = shown.saturating_sub((now / NANOS) as i64);
        }
    }

    fn set_time(&mut self, value: u8, now: u64) {
        let mut civil = Civil::from_unix(self.seconds(now));
        let plain = self.decode(value);
        match self.index {
            SECONDS => civil.second = plain,
            MINUTES => civil.minute = plain,
            HOURS => civil.hour = self.decode_hour(value),
            DAY => civil.day = plain.max(1),
            MONTH => civil.month = plain.clamp(1, 12),
            YEAR => civil.year = civil.year.div_euclid(100) * 100 + i64::from(plain % 100),
            _ => civil.year = i64::from(plain % 100) * 100 + civil.year.rem_euclid(100),
        }
        let seconds = civil.to_unix();
        match &mut self.held_s {
            Some(held) => *held = seconds,
            None => self.base_s = seconds.saturating_sub((now / NANOS) as i64),
        }
    }

    fn encode(&self, value: u8) -> u8 {
        if self.reg_b & B_BINARY != 0 { value } else { ((value / 10) << 4) | (value % 10) }
    }
    fn decode(&self, value: u8) -> u8 {
        if self.reg_b & B_BINARY != 0 {
            value
        } else {
            (value >> 4).wrapping_mul(10).wrapping_add(value & 15)
        }
    }
    /// Encodes an hour in the guest's chosen format. In 12-hour mode, bit 7 means afternoon, and noon and midnight are
    /// 12.
    fn encode_hour(&self, hour: u8) -> u8 {
        if self.reg_b & B_24_HOURS != 0 {
            return self.encode(hour);
        }
        self.encode((hour + 11) % 12 + 1) | if hour >= 12 { 0x80 } else { 0 }
    }
    fn decode_hour(&self, value: u8) -> u8 {
        if self.reg_b & B_24_HOURS != 0 {
            return self.decode(value);
        }
        self.decode(value & 0x7f) % 12 + if value & 0x80 != 0 { 12 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EPOCH: i64 = 1_767_225_600; // 2026-01-01T00:00:00Z

    struct Rig(Rtc, EventQueue);
    impl Rig {
        fn new() -> Rig {
            Rig(Rtc::new(EPOCH), EventQueue::default())
        }
        fn get(&mut self, index: u8, now: u64) -> u8 {
            self.0.write(0, index, now, &mut self.1);
            self.0.read(1, now, &mut self.1)
        }
        fn set(&mut self, index: u8, value: u8, now: u64) {
            self.0.write(0, index, now, &mut self.1);
            self.0.write(1, value, now, &mut self.1);
        }
        fn advance(&mut self, now: u64) -> usize {
            let mut count = 0;
            while let Some((id, _)) = self.1.pop_due(now) {
                self.0.expired(id.vtime, &mut self.1);
                count += 1;
            }
            count
        }
    }

    #[test]
    fn shows_epoch_plus_vtime_in_bcd() {
        let mut rig = Rig::new();
        let now = (3600 * 13 + 60 * 45 + 59) * NANOS + 5;
        let time: Vec<u8> =
            [CENTURY, YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS, WEEKDAY].map(|r| rig.get(r, now)).to_vec();
        assert_eq!(time, [0x20, 0x26, 0x01, 0x01, 0x13, 0x45, 0x59, 0x05]);
        rig.set(REG_B, 0, now);
        assert_eq!(rig.get(HOURS, now), 0x81, "one in the afternoon");
        rig.set(REG_B, B_BINARY | B_24_HOURS, now);
        assert_eq!(rig.get(MINUTES, now), 45);
    }

    #[test]
    fn an_update_is_announced() {
        let mut rig = Rig::new();
        assert_eq!(rig.get(REG_A, NANOS / 2) & A_UPDATING, 0);
        assert_ne!(rig.get(REG_A, NANOS - 1000) & A_UPDATING, 0);
        assert_eq!(rig.get(REG_A, NANOS) & A_UPDATING, 0);
    }

    #[test]
    fn the_guest_can_set_it() {
        let mut rig = Rig::new();
        rig.set(REG_B, B_SET | B_24_HOURS, 0);
        for (register, value) in
            [(YEAR, 0x31), (MONTH, 0x12), (DAY, 0x24), (HOURS, 0x18), (MINUTES, 0x30), (SECONDS, 0x10)]
        {
            rig.set(register, value, 0);
        }
        assert_eq!(rig.get(SECONDS, 5 * NANOS), 0x10, "the clock stands still while the guest sets it");
        rig.set(REG_B, B_24_HOURS, 5 * NANOS);
        let read: Vec<u8> =
            [YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS].map(|r| rig.get(r, 12 * NANOS)).to_vec();
        assert_eq!(read, [0x31, 0x12, 0x24, 0x18, 0x30, 0x17]);
    }

    #[test]
    fn an_alarm_fires_once_at_its_second() {
        let mut rig = Rig::new();
        for (register, value) in [(1, 0x05), (3, 0xff), (5, 0xff)] {
            rig.set(register, value, 0);
        }
        rig.set(REG_B, B_ALARM | B_24_HOURS, 0);
        assert_eq!(rig.advance(5 * NANOS - 1), 0);
        assert_eq!(rig.advance(5 * NANOS), 1);
        assert!(rig.0.line());
        assert_eq!(rig.advance(1000 * NANOS), 0, "no further interrupt while the flag is set");
        assert_eq!(rig.get(REG_C, 1000 * NANOS), C_IRQ | B_ALARM);
        assert!(!rig.0.line());
        assert_eq!(rig.1.next_vtime(), Some(1025 * NANOS));
    }

    #[test]
    fn periodic_interrupts_have_the_data_sheets_rate() {
        let mut rig = Rig::new();
        rig.set(REG_A, 0x26, 0);
        rig.set(REG_B, B_PERIODIC | B_24_HOURS, 0);
        let mut count = 0;
        for now in (0..=NANOS).step_by(100_000) {
            count += rig.advance(now);
            rig.get(REG_C, now);
        }
        assert_eq!(count, 1024);
    }

    proptest! {
        #[test]
        fn garbage_is_harmless(
            epoch in -(1i64 << 40)..1i64 << 40,
            steps in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<bool>(), 0u64..10_000_000_000), 0..40),
        ) {
            let mut rig = Rig(Rtc::new(epoch), EventQueue::default());
            let mut now = 0;
            for (index, value, write, wait) in steps {
                let index = if index & 0x80 == 0 { index } else { index & 15 };
                if write { rig.set(index, value, now) } else { rig.get(index, now); }
                now += wait;
                prop_assert!(rig.advance(now) <= 3, "each flag is set once");
                prop_assert!(rig.1.len() <= 1);
            }
            let stored = postcard::to_stdvec(&rig.0).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Rtc>(&stored).unwrap(), rig.0);
        }
    }
}
