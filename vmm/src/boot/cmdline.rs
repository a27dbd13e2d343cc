//! Command lines of the guest kernel.

use super::BootError;
use crate::layout::CMDLINE_BYTES_MAX;

/// Default command line.
///
/// - `console=ttyS0`: the UART is the only console. `8250.nr_uarts=1`: do not probe ports that do not exist.
/// - `reboot=acpi panic=-1`: a reboot or a panic writes to the ACPI reset register at once, which Everett recognises.
///   With `reboot=t`, the kernel reboots by a triple fault, which would look like a crash.
/// - `tsc=reliable no_timer_check`: do not check the TSC and the timer pin against a PIT, which does not exist. The
///   kernel calibrates nothing: CPUID leaves 0x15 and 0x16 state the frequencies, and loops per jiffy follow from the
///   TSC's frequency. A fixed `lpj=` would be wrong for kernels with another HZ.
/// - `mitigations=off cryptomgr.notests=1`: a simulated CPU needs no mitigations, and crypto self-tests make up most of
///   the instructions that a stock kernel executes at boot. Later arguments can switch either back on.
/// - `random.trust_bootloader=on`: the seed that Everett draws for the kernel initialises the kernel's random
///   generator.
/// - `pci=off`: the machine has no PCI, so the kernel need not probe its configuration ports.
pub const DEFAULT_CMDLINE: &str = "console=ttyS0 8250.nr_uarts=1 reboot=acpi panic=-1 tsc=reliable no_timer_check \
     mitigations=off cryptomgr.notests=1 random.trust_bootloader=on pci=off";

/// Addition to the command line in clock modes `exit` and `branch`, in which vtime counts exits or branches
/// (`clock.rs`).
///
/// In these modes, the TSC keeps its value until the machine stops the guest: at an exit, and in mode `branch` also when
/// an event is due. A kernel that waits in a loop for the TSC would therefore wait forever in mode `exit`, and until the
/// next event in mode `branch`.
///
/// - `clearcpuid=4`: do not use the TSC (bit 4 of CPUID's first feature word). The HPET then supplies the time, and
///   delays are loops;
/// - `lpj=`: number of delay loops per tick. Devices are ready at once, so a small number suffices;
/// - `nolapic_timer`: the HPET supplies the ticks. Without a TSC the kernel would measure the LAPIC timer against ticks
///   in a loop without exits. The ticks would come late in clock mode `branch`, and never in `exit`.
pub const EXIT_CMDLINE: &str = "clearcpuid=4 lpj=4096 nolapic_timer";

/// Returns a command line in the kernel's form: zero-terminated.
///
/// # Errors
/// Returns an error if the text does not fit into the kernel's buffer, or contains control characters. These would end
/// or split the command line.
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
