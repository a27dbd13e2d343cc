//! Numbers of model-specific registers (SDM vol. 4). The KVM engine uses these constants, too.

/// Time stamp counter.
pub const TSC: u32 = 0x10;
/// Platform ID, which microcode updates are matched with.
pub const PLATFORM_ID: u32 = 0x17;
/// Address and enable bit of the local APIC.
pub const APIC_BASE: u32 = 0x1b;
/// Microcode revision.
pub const BIOS_SIGN_ID: u32 = 0x8b;
/// Capabilities of the MTRRs.
pub const MTRRCAP: u32 = 0xfe;
/// Immunities to speculation leaks.
pub const ARCH_CAPABILITIES: u32 = 0x10a;
/// Code segment selector that SYSENTER loads.
pub const SYSENTER_CS: u32 = 0x174;
/// Stack pointer that SYSENTER loads.
pub const SYSENTER_ESP: u32 = 0x175;
/// Target address of SYSENTER.
pub const SYSENTER_EIP: u32 = 0x176;
/// Miscellaneous features.
pub const MISC_ENABLE: u32 = 0x1a0;
/// Debug control.
pub const DEBUGCTL: u32 = 0x1d9;
/// First variable-range MTRR; bases and masks alternate.
pub const MTRR_VARIABLE: u32 = 0x200;
/// Last variable-range MTRR.
pub const MTRR_VARIABLE_LAST: u32 = 0x20f;
/// Page attribute table.
pub const PAT: u32 = 0x277;
/// Default memory type.
pub const MTRR_DEF_TYPE: u32 = 0x2ff;
/// Extended feature enable register.
pub const EFER: u32 = 0xc000_0080;
/// Selectors for SYSCALL and SYSRET.
pub const STAR: u32 = 0xc000_0081;
/// Target address of SYSCALL in 64-bit mode.
pub const LSTAR: u32 = 0xc000_0082;
/// Target address of SYSCALL in compatibility mode.
pub const CSTAR: u32 = 0xc000_0083;
/// Mask of the flags that SYSCALL clears.
pub const FMASK: u32 = 0xc000_0084;
/// Base address of FS.
pub const FS_BASE: u32 = 0xc000_0100;
/// Base address of GS.
pub const GS_BASE: u32 = 0xc000_0101;
/// Value that SWAPGS exchanges with the GS base.
pub const KERNEL_GS_BASE: u32 = 0xc000_0102;
/// Value that RDTSCP returns in ECX.
pub const TSC_AUX: u32 = 0xc000_0103;
/// Numbers of the fixed-range MTRRs, in the order of [`Msrs::mtrr_fixed`](crate::state::Msrs::mtrr_fixed).
pub const MTRR_FIXED: [u32; 11] =
    [0x250, 0x258, 0x259, 0x268, 0x269, 0x26a, 0x26b, 0x26c, 0x26d, 0x26e, 0x26f];
