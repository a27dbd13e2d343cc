//! The machine's own devices: interrupt controllers, UART, RTC and ACPI's fixed registers.
//! In clock modes `exit` and `branch` there are also the devices of an older PC ([`legacy`]). Virtio devices are in
//! `crate::virtio`.
//!
//! A device is plain state (serde) with functions on it. It knows its registers, and gets vtime as an argument; it
//! knows neither its address nor the CPU. It schedules its future events in the machine's event queue and exposes an
//! interrupt line, which the machine samples after each access and each event.
//!
//! **Invariant.** No guest input makes a device panic or exceed the documented bounds of its memory.

pub mod hpet;
pub mod interrupts;
pub mod ioapic;
pub mod lapic;
pub mod legacy;
pub mod power;
pub mod rtc;
pub mod uart;
