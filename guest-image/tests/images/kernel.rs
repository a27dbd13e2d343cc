//! Makes the smallest file that Everett accepts as a kernel.

/// Returns an ELF header and one empty loadable segment.
pub(crate) fn vmlinux() -> Vec<u8> {
    let mut elf = vec![0u8; 64 + 56];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[18..20].copy_from_slice(&62u16.to_le_bytes());
    elf[32..40].copy_from_slice(&64u64.to_le_bytes());
    elf[54..56].copy_from_slice(&56u16.to_le_bytes());
    elf[56..58].copy_from_slice(&1u16.to_le_bytes());
    elf[64..68].copy_from_slice(&1u32.to_le_bytes());
    elf
}
