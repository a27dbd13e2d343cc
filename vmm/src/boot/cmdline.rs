//! The kernel's command line.

use super::BootError;
use crate::layout::CMDLINE_BYTES_MAX;

/// The default command line.
///
/// - `console=ttyS0`: the UART is the only console. `8250.nr_uarts=1`: no probing of ports that do not exist.
/// - `reboot=acpi panic=-1`: a reboot or a panic ends in the ACPI reset register at once, which is an exit of its own;
///   `reboot=t` would look like a real triple fault.
/// - `tsc=reliable no_timer_check`: neither the TSC nor the timer pin is checked against a PIT, which does not exist.
///   Timekeeping needs nothing else: CPUID leaves 0x15 and 0x16 state the frequencies, so nothing is calibrated, and
///   loops per jiffy follow from the TSC's frequency for any HZ of the kernel (a fixed `lpj=` would be wrong for
///   another HZ).
/// - `mitigations=off cryptomgr.notests=1`: these cost time and have no effect in a simulated CPU; most instructions
///   of a stock boot are crypto self-tests. A later argument can switch both back on.
/// - `random.trust_bootloader=on`: the kernel's seed comes from the world's entropy stream and initialises the kernel's
///   generator.
/// - `pci=off`: this machine has no PCI, so configuration ports are not probed for it.
pub const DEFAULT_CMDLINE: &str = "console=ttyS0 8250.nr_uarts=1 reboot=acpi panic=-1 tsc=reliable no_timer_check \
     mitigations=off cryptomgr.notests=1 random.trust_bootloader=on pci=off";

/// Addition to the command line in clock modes `exit` and `branch`.
/// In these modes a kernel that waits for the TSC would wait forever, or until some other event is due.
///
/// - `clearcpuid=4`: do not use the TSC (bit 4 of CPUID's first feature word). Time then comes from the HPET, and
///   delays are loops;
/// - `lpj=`: number of delay loops per tick. Devices are ready at once, so a small number suffices;
/// - `nolapic_timer`: ticks come from the HPET. Without a TSC the kernel would measure the LAPIC timer against ticks
///   in a loop without exits: ticks would come late in clock mode `branch`, and never in `exit`.
pub const EXIT_CMDLINE: &str = "clearcpuid=4 lpj=4096 nolapic_timer";

/// Returns a command line as the kernel reads it, with its terminator.
///
/// # Errors
/// Returns an error if the text does not fit into the kernel's buffer, or holds control characters, which would end or
/// split it.
pub fn checked_cmdline(text: &str) -> Result<Vec<u8>, BootError> {
    if text.len() >= CMDLINE_BYTES_MAX {
        return Err(BootError::Cmdline("longer than 2047 bytes"));
    }
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err(BootError::Cmdline("control characters are not allowed"));
    }
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    Ok(bytes)
}
