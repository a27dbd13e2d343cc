use proptest::prelude::*;

use super::*;
use crate::events::Event;

struct Rig {
    lapic: Lapic,
    events: EventQueue,
    now: u64,
}

impl Rig {
    fn new() -> Rig {
        let mut rig = Rig { lapic: Lapic::default(), events: EventQueue::default(), now: 0 };
        rig.write(reg::SVR, 0x1ff);
        rig
    }
    fn write(&mut self, offset: u64, value: u32) -> Option<u8> {
        self.lapic.write(offset, 4, value, self.now, &mut self.events)
    }
    fn read(&mut self, offset: u64) -> u32 {
        self.lapic.read(offset, 4, self.now)
    }
    /// Starts the timer.
    fn timer(&mut self, lvt: u32, divide: u32, initial: u32) {
        self.write(reg::LVT_TIMER, lvt);
        self.write(reg::TIMER_DIVIDE, divide);
        self.write(reg::TIMER_INITIAL, initial);
    }
    fn message(&mut self, vector: u8, level: bool) {
        self.lapic.deliver(Message { destination: 0, logical: false, mode: 0, vector, level });
    }
    fn take(&mut self) -> Option<u8> {
        let vector = self.lapic.pending()?;
        self.lapic.acknowledge(vector, self.now, &mut self.events);
        Some(vector)
    }
    /// Advances time to `to` and handles each event that becomes due. Returns the number of expiries.
    fn advance(&mut self, to: u64) -> usize {
        let mut expiries = 0;
        while let Some((id, event)) = self.events.pop_due(to) {
            assert_eq!(event, Event::LapicTimer);
            self.now = id.vtime;
            self.lapic.timer_expired();
            expiries += 1;
        }
        self.now = to;
        expiries
    }
}

#[test]
fn reset_values_match_the_manual() {
    let mut rig = Rig::new();
    rig.lapic = Lapic::default();
    assert_eq!(rig.read(reg::VERSION), 0x0005_0014);
    assert_eq!(rig.read(reg::SVR), 0xff);
    assert_eq!(rig.read(reg::DFR), u32::MAX);
    for lvt in [reg::LVT_TIMER, reg::LVT_THERMAL, reg::LVT_ERROR] {
        assert_eq!(rig.read(lvt), LVT_MASKED);
    }
    rig.message(0x40, false);
    assert_eq!(rig.lapic.pending(), None, "a disabled APIC accepts nothing");
}

#[test]
fn priorities_nest() {
    let mut rig = Rig::new();
    rig.message(0x41, false);
    rig.message(0x62, false);
    rig.message(0x45, false);
    assert_eq!(rig.take(), Some(0x62));
    assert_eq!(rig.read(reg::PPR), 0x60);
    assert_eq!(rig.take(), None, "0x45 waits for the end of 0x62");
    rig.message(0x71, false);
    assert_eq!(rig.take(), Some(0x71));
    rig.write(reg::EOI, 0);
    rig.write(reg::EOI, 0);
    assert_eq!(rig.take(), Some(0x45));
    rig.write(reg::EOI, 0);
    rig.write(reg::TPR, 0x40);
    assert_eq!(rig.take(), None, "the task priority holds class 4 back");
    rig.write(reg::TPR, 0x3f);
    assert_eq!(rig.take(), Some(0x41));
}

#[test]
fn only_level_interrupts_broadcast_their_end() {
    let mut rig = Rig::new();
    rig.message(0x50, true);
    rig.message(0x60, false);
    rig.take();
    assert_eq!(rig.write(reg::EOI, 0), None);
    rig.take();
    assert_eq!(rig.write(reg::EOI, 0), Some(0x50));
    assert_eq!(rig.write(reg::EOI, 0), None, "nothing is in service");
}

#[test]
fn one_shot_expires_once_and_exactly() {
    let mut rig = Rig::new();
    rig.timer(0x30, 0x3, 1000);
    rig.now = 8_000;
    assert_eq!(rig.read(reg::TIMER_CURRENT), 500);
    assert_eq!(rig.advance(15_999), 0);
    assert_eq!(rig.read(reg::TIMER_CURRENT), 1);
    assert_eq!(rig.advance(16_000), 1);
    assert_eq!(rig.take(), Some(0x30));
    assert_eq!(rig.read(reg::TIMER_CURRENT), 0);
    assert_eq!(rig.advance(1 << 40), 0);
}

#[test]
fn periodic_expiries_coalesce_while_pending() {
    let mut rig = Rig::new();
    rig.timer(0x30 | 1 << 17, 0xb, 100);
    assert_eq!(rig.advance(1_050), 1, "the bit is set once, however often the counter wraps");
    assert_eq!(rig.read(reg::TIMER_CURRENT), 50);
    assert_eq!(rig.take(), Some(0x30));
    rig.write(reg::EOI, 0);
    assert_eq!(rig.advance(1_099), 0);
    assert_eq!(rig.advance(1_100), 1);
    assert_eq!(rig.read(reg::TIMER_CURRENT), 100);
}

#[test]
fn masked_time_passes_and_unmasking_does_not_fire_late() {
    let mut rig = Rig::new();
    rig.timer(0x30 | LVT_MASKED | 1 << 17, 0xb, 100);
    assert!(rig.events.is_empty());
    rig.now = 250;
    rig.write(reg::LVT_TIMER, 0x30 | 1 << 17);
    assert_eq!(rig.lapic.pending(), None);
    assert_eq!(rig.events.next_vtime(), Some(300));
    rig.write(reg::TIMER_INITIAL, 0);
    assert!(rig.events.is_empty());
}

#[test]
fn divisors_match_the_manual() {
    for (config, divisor) in [(0, 2), (1, 4), (2, 8), (3, 16), (8, 32), (9, 64), (10, 128), (11, 1)] {
        let mut rig = Rig::new();
        rig.timer(0x30, config, 10);
        assert_eq!(rig.events.next_vtime(), Some(10 * divisor), "{config:#x}");
    }
}

#[test]
fn changing_the_divisor_keeps_the_count() {
    let mut rig = Rig::new();
    rig.timer(0x30, 0xb, 100);
    rig.now = 40;
    rig.write(reg::TIMER_DIVIDE, 0x0);
    assert_eq!(rig.read(reg::TIMER_CURRENT), 60);
    assert_eq!(rig.events.next_vtime(), Some(160));
}

#[test]
fn self_ipis_arrive_and_illegal_vectors_are_errors() {
    let mut rig = Rig::new();
    rig.write(reg::LVT_ERROR, 0xfe);
    rig.write(reg::ICR_LOW, 0x000c_0000 | 0x80);
    assert_eq!(rig.lapic.pending(), None, "\"all excluding self\" has no receiver");
    rig.write(reg::ICR_LOW, 0x0004_0000 | 0x80);
    assert_eq!(rig.take(), Some(0x80));
    rig.write(reg::EOI, 0);
    rig.write(reg::LDR, 0x0100_0000);
    rig.write(reg::ICR_HIGH, 0x0100_0000);
    rig.write(reg::ICR_LOW, 1 << 11 | 0x81);
    assert_eq!(rig.take(), Some(0x81), "flat logical destination");
    rig.write(reg::EOI, 0);
    rig.write(reg::ICR_LOW, 0x0004_0000 | 0x05);
    assert_eq!(rig.take(), Some(0xfe), "the error interrupt");
    rig.write(reg::ESR, 0);
    assert_eq!(rig.read(reg::ESR), ESR_SEND_ILLEGAL);
    rig.write(reg::ESR, 0);
    assert_eq!(rig.read(reg::ESR), 0);
}

proptest! {
    /// Arbitrary accesses cause no panic and at most one pending event. The state is the same after serialisation.
    #[test]
    fn garbage_is_harmless(
        accesses in proptest::collection::vec((any::<u16>(), any::<u32>(), 0u8..4, 0u64..1_000, any::<bool>()), 1..300)
    ) {
        let mut rig = Rig::new();
        for (offset, value, kind, wait, aligned) in accesses {
            let offset = u64::from(offset) & if aligned { 0x3f0 } else { 0xfff };
            match kind {
                0 => { rig.read(offset); }
                1 => { rig.lapic.write(offset, (value & 7) as u8, value, rig.now, &mut rig.events); }
                2 => { rig.write(offset, value); }
                _ => { rig.take(); }
            }
            prop_assert!(rig.advance(rig.now + wait) <= 2, "one-shot once, periodic once while pending");
            prop_assert!(rig.events.len() <= 1);
        }
        let stored = postcard::to_stdvec(&rig.lapic).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Lapic>(&stored).unwrap(), rig.lapic);
    }
}
