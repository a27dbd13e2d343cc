//! Numbers of model-specific registers (SDM vol. 4), for whoever else keeps them.

/// Time stamp counter.
pub const TSC: u32 = 0x10;
/// Which sockets the processor fits.
pub const PLATFORM_ID: u32 = 0x17;
/// Where the local APIC is, and whether it is on.
pub const APIC_BASE: u32 = 0x1b;
/// The microcode's revision.
pub const BIOS_SIGN_ID: u32 = 0x8b;
/// What memory type ranges there are.
pub const MTRRCAP: u32 = 0xfe;
/// What the processor does not speculate on.
pub const ARCH_CAPABILITIES: u32 = 0x10a;
/// SYSENTER's selector.
pub const SYSENTER_CS: u32 = 0x174;
/// SYSENTER's stack pointer.
pub const SYSENTER_ESP: u32 = 0x175;
/// SYSENTER's target.
pub const SYSENTER_EIP: u32 = 0x176;
/// Miscellaneous features.
pub const MISC_ENABLE: u32 = 0x1a0;
/// Debugging.
pub const DEBUGCTL: u32 = 0x1d9;
/// The first of the variable memory type ranges: bases and masks in turn.
pub const MTRR_VARIABLE: u32 = 0x200;
/// The last of them.
pub const MTRR_VARIABLE_LAST: u32 = 0x20f;
/// Page attributes.
pub const PAT: u32 = 0x277;
/// The default memory type.
pub const MTRR_DEF_TYPE: u32 = 0x2ff;
/// Extended features.
pub const EFER: u32 = 0xc000_0080;
/// SYSCALL's selectors.
pub const STAR: u32 = 0xc000_0081;
/// SYSCALL's target in 64-bit mode.
pub const LSTAR: u32 = 0xc000_0082;
/// SYSCALL's target in compatibility mode.
pub const CSTAR: u32 = 0xc000_0083;
/// Flags that SYSCALL clears.
pub const FMASK: u32 = 0xc000_0084;
/// FS's base.
pub const FS_BASE: u32 = 0xc000_0100;
/// GS's base.
pub const GS_BASE: u32 = 0xc000_0101;
/// What SWAPGS brings.
pub const KERNEL_GS_BASE: u32 = 0xc000_0102;
/// What RDTSCP returns in ECX.
pub const TSC_AUX: u32 = 0xc000_0103;
/// The fixed memory type ranges, in the order of [`Msrs::mtrr_fixed`](crate::state::Msrs::mtrr_fixed).
pub const MTRR_FIXED: [u32; 11] =
    [0x250, 0x258, 0x259, 0x268, 0x269, 0x26a, 0x26b, 0x26c, 0x26d, 0x26e, 0x26f];
