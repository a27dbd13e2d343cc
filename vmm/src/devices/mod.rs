//! The machine's own devices: interrupt controllers, UART, RTC and ACPI's fixed registers.
//! In clock modes `exit` and `branch` there are also the devices of an older PC ([`legacy`]). Virtio devices are in
//! `crate::virtio`.
//!
//! A device is plain state (serde) with functions on it. It knows its registers, gets vtime as an argument, and does
//! not know the CPU. `power` and `legacy` are accessed by port, all others by an offset from an address that they do
//! not know. Devices schedule their future events in the machine's event queue. UART and RTC expose an interrupt line,
//! which the machine samples after each access, event and input.
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
