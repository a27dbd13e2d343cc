//! Loads whose size is that of the operand.

use crate::core::Core;
use crate::stop::Stop;

/// Loads a value of the operand size in bytes.
pub(super) fn load_sized(core: &mut Core, at: u64, size: u16) -> Result<u64, Stop> {
    match size {
        2 => core.mem.load::<u16>(at).map(u64::from),
        4 => core.mem.load::<u32>(at).map(u64::from),
        _ => core.mem.load::<u64>(at),
    }
}
