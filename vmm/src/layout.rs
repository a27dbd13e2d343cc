//! Guest-physical addresses, I/O ports and interrupt pins, in one table for the boot loader, the ACPI tables and the
//! dispatch of device accesses.
//!
//! ```text
//! 0x0000_0500  GDT                        0x000e_0000  ACPI tables (64 KiB)
//! 0x0000_7000  boot_params                0x000f_0000  VM generation ID page
//! 0x0000_9000  page tables (6 pages)      0x0010_0000  kernel and up
//! 0x0002_0000  command line               …            initramfs, at the top of RAM
//! 0x0002_1000  setup_data                 0xd000_0000  virtio-mmio slots, 4 KiB each
//!                                         0xfec0_0000  IOAPIC     0xfee0_0000  LAPIC
//! ```

/// Bytes in a page of guest memory.
pub const PAGE: u64 = 4096;

/// Minimum RAM of a machine, in bytes. A stock kernel with an initramfs needs at least this much to start.
pub const RAM_BYTES_MIN: u64 = 32 << 20;
/// Maximum RAM of a machine, in bytes. All RAM lies below the devices' addresses, so it is one region.
pub const RAM_BYTES_MAX: u64 = 3 << 30;

/// Global descriptor table of the boot state.
pub const GDT: u64 = 0x500;
/// The zero page (`struct boot_params`).
pub const BOOT_PARAMS: u64 = 0x7000;
/// First of the six pages of boot page tables: PML4, PDPT and four page directories.
pub const PAGE_TABLES: u64 = 0x9000;
/// The kernel's command line, zero-terminated.
pub const CMDLINE: u64 = 0x2_0000;
/// Bytes reserved for the command line with its terminator (COMMAND_LINE_SIZE on x86).
pub const CMDLINE_BYTES_MAX: usize = 2048;
/// `struct setup_data` with the seed for the kernel's random number generator.
pub const SETUP_DATA: u64 = 0x2_1000;
/// End of the low RAM that the guest may use. The memory from here to 640 KiB is the reserved EBDA.
pub const LOW_RAM_END: u64 = 0x9_fc00;
/// Start of the ACPI tables.
pub const ACPI: u64 = 0xe_0000;
/// Bytes reserved for the ACPI tables.
pub const ACPI_BYTES: u64 = 0x1_0000;
/// The page that holds the VM generation ID.
pub const GENERATION_ID: u64 = 0xf_0000;
/// Start of RAM above the legacy hole; kernels are loaded here or above.
pub const HIGH_RAM: u64 = 0x10_0000;

/// Address of the first virtio-mmio slot.
pub const VIRTIO: u64 = 0xd000_0000;
/// Bytes per virtio-mmio slot.
pub const VIRTIO_STRIDE: u64 = 0x1000;
/// Maximum number of virtio devices. Each needs an interrupt pin.
pub const VIRTIO_SLOTS_MAX: usize = 16;
/// Interrupt pin of each slot.
pub const VIRTIO_GSI: [u8; VIRTIO_SLOTS_MAX] = [16, 17, 18, 19, 20, 21, 22, 23, 10, 11, 12, 13, 14, 15, 5, 6];
/// Address of the IOAPIC registers.
pub const IOAPIC: u64 = 0xfec0_0000;
/// Address of the LAPIC registers.
pub const LAPIC: u64 = 0xfee0_0000;
/// Bytes of the IOAPIC's and of the LAPIC's register window.
pub const APIC_BYTES: u64 = 0x1000;

/// RTC index port. The data port follows it.
pub const RTC_PORT: u16 = 0x70;
/// First of the UART's (COM1) eight ports.
pub const UART_PORT: u16 = 0x3f8;
/// ACPI sleep control register (hardware-reduced), one byte.
pub const SLEEP_CONTROL_PORT: u16 = 0x600;
/// ACPI sleep status register, one byte.
pub const SLEEP_STATUS_PORT: u16 = 0x601;
/// ACPI reset register, one byte.
pub const RESET_PORT: u16 = 0x604;
/// Value that the guest writes to [`RESET_PORT`] to reset the machine.
pub const RESET_VALUE: u8 = 1;
/// ACPI PM timer, four bytes.
pub const PM_TIMER_PORT: u16 = 0x608;

/// Address of the HPET registers, in machines that have one.
pub const HPET: u64 = 0xfed0_0000;
/// Bytes of the HPET's register window.
pub const HPET_BYTES: u64 = 0x400;
/// ACPI's PM1 event block, four bytes, in machines that are not hardware-reduced.
pub const PM1_EVENT_PORT: u16 = 0x610;
/// ACPI's PM1 control block, two bytes, in machines that are not hardware-reduced.
pub const PM1_CONTROL_PORT: u16 = 0x614;
/// Command ports of the two PICs, in machines that have them. Each PIC's mask register is at the next port.
pub const PIC_PORTS: [u16; 2] = [0x20, 0xa0];
/// First of the PIT's four ports, in machines that have one.
pub const PIT_PORT: u16 = 0x40;
/// Interrupt pin of the SCI, in machines that are not hardware-reduced. No device drives it.
pub const SCI_GSI: u8 = 7;
/// Interrupt pin of the HPET, which replaces the PIT (ISA's IRQ 0): edge-triggered, active high.
pub const TIMER_GSI: u8 = 2;

/// Interrupt pin of the UART: edge-triggered, active high.
pub const UART_GSI: u8 = 4;
/// Interrupt pin of the RTC: edge-triggered, active high.
pub const RTC_GSI: u8 = 8;
/// Interrupt pin of the generic event device: edge-triggered, active high.
pub const EVENT_GSI: u8 = 9;
