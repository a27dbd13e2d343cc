//! Devices of a machine except the virtio devices: interrupt controllers, UART, RTC and ACPI's fixed registers.
//!
//! In clock modes `exit` and `branch`, machines also have the devices of an older PC ([`legacy`]). Virtio devices are
//! in `crate::virtio`.
//!
//! A device is plain state (serde) with functions on it. It gets vtime as an argument and does not know the CPU.
//! `power` and `legacy` are accessed by port number. All other devices are accessed by an offset and do not know their
//! base address. Devices schedule future events in the machine's event queue. UART and RTC have an interrupt line,
//! which the machine reads after each access, event and input.
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
