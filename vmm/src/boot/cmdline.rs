//! The kernel's command line.

use super::BootError;
use crate::layout::CMDLINE_BYTES_MAX;

/// The default command line.
///
/// - `console=ttyS0`: the UART is the only console. `8250.nr_uarts=1`: no probing of ports that are not there.
/// - `reboot=acpi panic=-1`: a reboot or a panic ends in the ACPI reset register at once, which is an exit of its own;
///   `reboot=t` would look like a real triple fault.
/// - `tsc=reliable no_timer_check`: neither the TSC nor the timer pin is watched against a PIT that is not there. Nothing
///   else is needed for time: CPUID leaves 0x15 and 0x16 state the frequencies, so nothing is calibrated, and loops per jiffy
///   follow from the TSC's frequency, whatever HZ the kernel has (a fixed `lpj=` would be wrong for another HZ).
/// - `mitigations=off cryptomgr.notests=1`: cost without effect in a simulated CPU: most of a stock boot's instructions are
///   crypto self-tests. Both can be switched back on by a later argument.
/// - `random.trust_bootloader=on`: the boot seed comes from the world's entropy stream and initialises the kernel's generator.
/// - `pci=off`: there is no PCI; do not probe configuration ports for it.
pub const DEFAULT_CMDLINE: &str = "console=ttyS0 8250.nr_uarts=1 reboot=acpi panic=-1 tsc=reliable no_timer_check \
     mitigations=off cryptomgr.notests=1 random.trust_bootloader=on pci=off";

/// What clock modes `exit` and `branch` add to it, where a kernel that waits for the TSC would wait for ever, or until something
/// else is due.
///
/// - `clearcpuid=4`: do not use the TSC (bit 4 of CPUID's first feature word). Time then comes from the HPET, and delays are loops;
/// - `lpj=`: how many of these make a tick. Devices are ready at once, so few will do;
/// - `nolapic_timer`: ticks come from the HPET. Without a TSC the kernel would measure the LAPIC timer against ticks, in a loop that
///   has no exit: they would come late in clock mode `branch`, and never in `exit`.
pub const EXIT_CMDLINE: &str = "clearcpuid=4 lpj=4096 nolapic_timer";

/// A command line as the kernel reads it, with its terminator.
///
/// # Errors
/// When it is longer than the kernel's buffer, or holds characters that would end or split it.
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
