//! The local APIC in xAPIC mode (SDM vol. 3A, chapter 11): the MMIO registers of one CPU with APIC ID 0.
//!
//! It has neither x2APIC mode nor TSC-deadline mode. Software can program the LINT, thermal and performance entries,
//! but no device triggers them. `devices::interrupts` connects the local APIC to the IOAPIC.

mod timer;
mod vectors;

use serde::{Deserialize, Serialize};

use crate::events::EventQueue;
use timer::Timer;
use vectors::Vectors;

/// Register offsets (SDM vol. 3A, table 11-1).
pub(crate) mod reg {
    pub(crate) const ID: u64 = 0x20;
    pub(crate) const VERSION: u64 = 0x30;
    pub(crate) const TPR: u64 = 0x80;
    pub(crate) const PPR: u64 = 0xa0;
    pub(crate) const EOI: u64 = 0xb0;
    pub(crate) const LDR: u64 = 0xd0;
    pub(crate) const DFR: u64 = 0xe0;
    pub(crate) const SVR: u64 = 0xf0;
    pub(crate) const ISR: u64 = 0x100;
    pub(crate) const TMR: u64 = 0x180;
    pub(crate) const IRR: u64 = 0x200;
    pub(crate) const ESR: u64 = 0x280;
    pub(crate) const ICR_LOW: u64 = 0x300;
    pub(crate) const ICR_HIGH: u64 = 0x310;
    pub(crate) const LVT_TIMER: u64 = 0x320;
    pub(crate) const LVT_THERMAL: u64 = 0x330;
    /// Offset of the error entry. The entries for performance counters, LINT0 and LINT1 lie between `LVT_THERMAL` and
    /// this entry.
    pub(crate) const LVT_ERROR: u64 = 0x370;
    pub(crate) const TIMER_INITIAL: u64 = 0x380;
    pub(crate) const TIMER_CURRENT: u64 = 0x390;
    pub(crate) const TIMER_DIVIDE: u64 = 0x3e0;
}

/// Version register: version 0x14 with six local vector table entries.
const VERSION: u32 = 0x0005_0014;
/// Mask bit in an entry of the local vector table (LVT).
pub(crate) const LVT_MASKED: u32 = 1 << 16;
/// Bit of the spurious vector register that enables the APIC.
const SVR_ENABLE: u32 = 1 << 8;
/// ESR bit: the APIC received an illegal vector.
const ESR_RECEIVE_ILLEGAL: u32 = 1 << 6;
/// ESR bit: software tried to send an illegal vector.
const ESR_SEND_ILLEGAL: u32 = 1 << 5;
/// ESR bit: software accessed a reserved register.
const ESR_ILLEGAL_REGISTER: u32 = 1 << 7;

/// Interrupt message, which the IOAPIC or the CPU itself (an IPI) sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Destination field: an APIC ID or a logical mask.
    pub destination: u8,
    /// True for logical destination mode.
    pub logical: bool,
    /// Delivery mode, 0-7. Only the modes fixed (0) and lowest priority (1) interrupt this CPU.
    pub mode: u8,
    /// Interrupt vector, 0-255. Vectors below 16 are illegal.
    pub vector: u8,
    /// True for level-triggered, false for edge-triggered.
    pub level: bool,
}

/// The local APIC and its timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lapic {
    id: u32,
    tpr: u32,
    ldr: u32,
    dfr: u32,
    svr: u32,
    isr: Vectors,
    tmr: Vectors,
    irr: Vectors,
    esr: u32,
    esr_latched: u32,
    icr_low: u32,
    icr_high: u32,
    /// LVT entries of thermal, performance, LINT0, LINT1 and error.
    lvt: [u32; 5],
    timer: Timer,
    /// Number of received messages with a delivery mode that this LAPIC does not implement (NMI, SMI, INIT, start-up,
    /// ExtINT). It ignores them.
    unmodelled: u64,
}

impl Default for Lapic {
    /// Returns the state after a reset (SDM vol. 3A, 11.4.7.1).
    fn default() -> Lapic {
        Lapic {
            id: 0,
            tpr: 0,
            ldr: 0,
            dfr: u32::MAX,
            svr: 0xff,
            isr: Vectors::default(),
            tmr: Vectors::default(),
            irr: Vectors::default(),
            esr: 0,
            esr_latched: 0,
            icr_low: 0,
            icr_high: 0,
            lvt: [LVT_MASKED; 5],
            timer: Timer::default(),
            unmodelled: 0,
        }
    }
}

impl Lapic {
    /// Reads a register. Only aligned doublewords are defined; any other access returns zero.
    pub fn read(&mut self, offset: u64, size: u8, now: u64) -> u32 {
        if size != 4 || !offset.is_multiple_of(16) {
            return 0;
        }
        match offset {
            reg::ID => self.id,
            reg::VERSION => VERSION,
            reg::TPR => self.tpr,
            reg::PPR => u32::from(self.ppr()),
            reg::LDR => self.ldr,
            reg::DFR => self.dfr,
            reg::SVR => self.svr,
            reg::ISR..=0x170 => self.isr.word((offset - reg::ISR) / 16),
            reg::TMR..=0x1f0 => self.tmr.word((offset - reg::TMR) / 16),
            reg::IRR..=0x270 => self.irr.word((offset - reg::IRR) / 16),
            reg::ESR => self.esr_latched,
            reg::ICR_LOW => self.icr_low,
            reg::ICR_HIGH => self.icr_high,
            reg::LVT_TIMER => self.timer.lvt(),
            reg::LVT_THERMAL..=reg::LVT_ERROR => self.lvt[((offset - reg::LVT_THERMAL) / 16) as usize],
            reg::TIMER_INITIAL => self.timer.initial(),
            reg::TIMER_CURRENT => self.timer.current(now),
            reg::TIMER_DIVIDE => self.timer.divide_config(),
            // APR, RRD and EOI read as zero and raise no error.
            0x90 | 0xb0 | 0xc0 => 0,
            _ => {
                self.error(ESR_ILLEGAL_REGISTER);
                0
            }
        }
    }

    /// Writes a register. If the write ends a level-triggered interrupt, returns its vector, which the caller must pass
    /// on to the IOAPIC.
    pub fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u32,
        now: u64,
        events: &mut EventQueue,
    ) -> Option<u8> {
        if size != 4 || !offset.is_multiple_of(16) {
            return None;
        }
        match offset {
            reg::ID => self.id = value & 0xff00_0000,
            reg::TPR => self.tpr = value & 0xff,
            reg::EOI => return self.end_of_interrupt(),
            reg::LDR => self.ldr = value & 0xff00_0000,
            reg::DFR => self.dfr = value | 0x0fff_ffff,
            reg::SVR => self.set_svr(value, now, events),
            reg::ESR => {
                // A write to ESR makes the errors since the last write readable (11.5.3).
                self.esr_latched = self.esr;
                self.esr = 0;
            }
            reg::ICR_LOW => self.send(value),
            reg::ICR_HIGH => self.icr_high = value & 0xff00_0000,
            reg::LVT_TIMER => {
                let masked = if self.enabled() { 0 } else { LVT_MASKED };
                self.timer.set_lvt(value | masked, now, &self.irr, events);
            }
            reg::LVT_THERMAL..=reg::LVT_ERROR => {
                let index = ((offset - reg::LVT_THERMAL) / 16) as usize;
                // LINT entries also have polarity, remote IRR and trigger bits. Other entries have only vector, mode
                // and mask.
                let writable = if (2..=3).contains(&index) { 0x1_a7ff } else { 0x1_07ff };
                let masked = if self.enabled() { 0 } else { LVT_MASKED };
                self.lvt[index] = value & writable | masked;
            }
            reg::TIMER_INITIAL => self.timer.set_initial(value, now, &self.irr, events),
            reg::TIMER_DIVIDE => self.timer.set_divide_config(value, now, &self.irr, events),
            // Read-only registers ignore writes.
            reg::VERSION | 0x90 | reg::PPR | 0xc0 | reg::ISR..=0x270 | reg::TIMER_CURRENT => {}
            _ => self.error(ESR_ILLEGAL_REGISTER),
        }
        None
    }

    /// Handles a due expiry of the timer.
    pub fn timer_expired(&mut self) {
        if let Some(vector) = self.timer.expired() {
            self.accept(vector, false);
        }
    }

    /// Returns the vector to deliver now: the highest requested one, if its class is above the processor priority.
    pub fn pending(&self) -> Option<u8> {
        if !self.enabled() {
            return None;
        }
        self.irr.highest().filter(|&vector| vector >> 4 > self.ppr() >> 4)
    }

    /// Moves `vector`, which [`Lapic::pending`] returned, from requested to in service, because the CPU takes it.
    pub fn acknowledge(&mut self, vector: u8, now: u64, events: &mut EventQueue) {
        self.irr.clear(vector);
        self.isr.set(vector);
        // The timer schedules no periodic expiry while its interrupt is requested. If `vector` is the timer's, that
        // state has just ended, and the timer must schedule the next expiry.
        self.timer.taken(vector, now, &self.irr, events);
    }

    /// Handles a message. Ignores a message for another APIC.
    pub fn deliver(&mut self, message: Message) {
        if !self.is_destination(message.destination, message.logical) {
            return;
        }
        match message.mode {
            0 | 1 => self.accept(message.vector, message.level),
            _ => self.unmodelled = self.unmodelled.saturating_add(1),
        }
    }

    /// Returns the number of received messages with a delivery mode that this LAPIC does not implement.
    pub fn unmodelled(&self) -> u64 {
        self.unmodelled
    }

    /// Drops the highest requested interrupt. Only tests of the determinism checks use this, to plant a defect
    /// ([`crate::leak::Leak::lapic_bit`]).
    pub(crate) fn lose_request(&mut self, now: u64, events: &mut EventQueue) {
        if let Some(vector) = self.irr.highest() {
            self.irr.clear(vector);
            self.timer.taken(vector, now, &self.irr, events);
        }
    }

    fn enabled(&self) -> bool {
        self.svr & SVR_ENABLE != 0
    }

    /// Returns the processor priority (11.8.3.1): the higher class of the task priority and of the highest vector in
    /// service.
    fn ppr(&self) -> u8 {
        let task = self.tpr as u8;
        let service = self.isr.highest().unwrap_or(0);
        if task >> 4 >= service >> 4 { task } else { service & 0xf0 }
    }

    fn accept(&mut self, vector: u8, level: bool) {
        if !self.enabled() {
            return;
        }
        if vector < 16 {
            self.error(ESR_RECEIVE_ILLEGAL);
            return;
        }
        self.irr.set(vector);
        if level {
            self.tmr.set(vector);
        } else {
            self.tmr.clear(vector);
        }
    }

    fn end_of_interrupt(&mut self) -> Option<u8> {
        let vector = self.isr.highest()?;
        self.isr.clear(vector);
        self.tmr.get(vector).then_some(vector)
    }

    fn set_svr(&mut self, value: u32, now: u64, events: &mut EventQueue) {
        // Only the vector and the enable bit are stored. EOI-broadcast suppression and focus checking do not exist.
        self.svr = value & 0x1ff;
        if !self.enabled() {
            // Disabling the APIC masks all LVT entries (11.4.7.2).
            for entry in &mut self.lvt {
                *entry |= LVT_MASKED;
            }
            self.timer.set_lvt(self.timer.lvt() | LVT_MASKED, now, &self.irr, events);
        }
    }

    fn is_destination(&self, destination: u8, logical: bool) -> bool {
        if destination == 0xff {
            return true;
        }
        if !logical {
            return destination == (self.id >> 24) as u8;
        }
        let own = (self.ldr >> 24) as u8;
        if self.dfr >> 28 == 0xf {
            own & destination != 0
        } else {
            own >> 4 == destination >> 4 && own & destination & 0xf != 0
        }
    }

    /// Sends an IPI, because software wrote the low half of the interrupt command register (11.6.1).
    fn send(&mut self, value: u32) {
        // Delivery status (bit 12) always reads idle, because a message arrives before the next instruction.
        self.icr_low = value & 0x000c_cfff;
        let vector = value as u8;
        let mode = (value >> 8 & 7) as u8;
        if mode <= 1 && vector < 16 {
            self.error(ESR_SEND_ILLEGAL);
            return;
        }
        let message = Message {
            destination: (self.icr_high >> 24) as u8,
            logical: value & 1 << 11 != 0,
            mode,
            vector,
            level: false,
        };
        match value >> 18 & 3 {
            0 => self.deliver(message),
            1 | 2 => self.deliver(Message { destination: 0xff, ..message }),
            // The destination is "all excluding self", and there is no other CPU.
            _ => {}
        }
    }

    fn error(&mut self, bit: u32) {
        self.esr |= bit;
        let entry = self.lvt[4];
        if entry & LVT_MASKED == 0 && entry as u8 >= 16 {
            self.accept(entry as u8, false);
        }
    }
}

#[cfg(test)]
mod tests;
