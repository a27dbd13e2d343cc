//! Builds kernel files of one segment with a few instructions. Tests and benches boot them in place of Linux.

/// Guest-physical address at which the code is loaded and entered.
pub const SMALL_KERNEL_ENTRY: u64 = 0x100_0000;
/// Offset of the code in the file: after the ELF header and one program header.
const CODE_OFFSET: u64 = 120;

/// Returns an ELF file that loads `code` at [`SMALL_KERNEL_ENTRY`], with `bss` bytes of zeroes after it.
pub fn small_kernel(code: &[u8], bss: u64) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for half in [2u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    for word in [SMALL_KERNEL_ENTRY, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for half in [1u32, 7] {
        file.extend(half.to_le_bytes());
    }
    let length = code.len() as u64;
    for word in [CODE_OFFSET, SMALL_KERNEL_ENTRY, SMALL_KERNEL_ENTRY, length, length + bss, 4096] {
        file.extend(word.to_le_bytes());
    }
    debug_assert_eq!(file.len() as u64, CODE_OFFSET);
    file.extend(code);
    file
}
