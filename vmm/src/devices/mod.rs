//! The machine's own devices: interrupt controllers, UART, RTC, ACPI's fixed registers; and for clock mode
//! `exit` those of an older PC ([`legacy`]). Virtio is in `crate::virtio`.
//!
//! A device is plain state (serde) with functions on it. It knows its registers and vtime as an argument; it knows
//! neither its address nor the CPU. It schedules what will happen by itself in the machine's event queue and shows an
//! interrupt line; the machine samples the line after each access and event.
//!
//! **Invariant.** No guest input makes a device panic or keep more than its named bounds.

pub mod hpet;
pub mod interrupts;
pub mod ioapic;
pub mod lapic;
pub mod legacy;
pub mod power;
pub mod rtc;
pub mod uart;
