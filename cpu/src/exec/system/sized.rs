//! Loads of 2, 4 or 8 bytes, as the operand size demands.

use crate::core::Core;
use crate::stop::Stop;

/// Loads `size` bytes: 2, 4 or 8. The value is zero-extended.
pub(super) fn load_sized(core: &mut Core, at: u64, size: u16) -> Result<u64, Stop> {
    match size {
        2 => core.mem.load::<u16>(at).map(u64::from),
        4 => core.mem.load::<u32>(at).map(u64::from),
        _ => core.mem.load::<u64>(at),
    }
}
