//! The way into translated code, back, and to what it calls.
#![allow(unsafe_code)]

use super::{INTERPRET, NEXT, STOP_SHIFT, Translator, lazy};
use crate::core::Core;
use crate::op::{Op, slot};
use crate::stop::Stop;

/// How translated code came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// RIP and the count are what they should be. The cell, if not 0, may lead there.
    Next { cell: u32 },
    /// The rest of a block is to be interpreted: where its operations begin, how many there are, and the next one.
    Interpret { ops_start: u32, count: u16, n: usize },
    /// An operation of a block has ended it.
    Stopped { ops_start: u32, n: usize, stop: Stop },
}

impl Translator {
    /// Execute a translation and whatever it leads to. RIP is the block's.
    #[inline]
    pub(super) fn run(&mut self, core: &mut Core, id: u32, generation: u32, ops: *const Op) -> Back {
        self.generations[id as usize] = generation;
        let page = core.rip & !0xfff;
        core.regs[slot::PAGE as usize] = page;
        core.regs[slot::PAGE_FAR as usize] = page.wrapping_add(1 << 30);
        core.native.left = core.limit - core.icount;
        core.native.ops = ops as u64;
        core.native.generations = core.mem.generations_address();
        core.native.jumps = self.jumps.as_ptr() as u64;
        let code = self.get(id).code;
        // SAFETY: `enter` is the way in, which takes these arguments and keeps to the ABI: what it has to save it saves,
        // and the stack is as it was. `code` is a translation, of which the module's head tells why it stays within
        // `core` and its tables. `core` is borrowed exclusively, and so is all that it owns.
        let word = unsafe {
            let enter: extern "sysv64" fn(*mut Core, u64) -> u64 =
                std::mem::transmute(self.enter as *const ());
            enter(&raw mut *core, code)
        };
        core.icount = core.limit - core.native.left;
        lazy::settle(core);
        let id = (word >> 8) as u32;
        if word as u8 == NEXT {
            return Back::Next { cell: id };
        }
        let block = *self.get(id);
        let n = (word >> 40 & 0xff) as usize;
        // It was counted when it was entered.
        core.icount -= u64::from(block.count);
        let begin = core.regs[slot::PAGE as usize].wrapping_add(u64::from(block.offset));
        core.rip = begin.wrapping_add(u64::from(block.len));
        if word as u8 == INTERPRET {
            return Back::Interpret { ops_start: block.ops_start, count: block.count, n };
        }
        let stop = match word >> STOP_SHIFT as u32 {
            1 => Stop::Leave,
            2 => Stop::Fault,
            3 => Stop::Exit,
            _ => Stop::Single,
        };
        Back::Stopped { ops_start: block.ops_start, n, stop }
    }
}

/// Have a handler execute an operation of a block with `count` instructions. 0, or why it stopped.
pub(super) extern "sysv64" fn call_op(core: *mut Core, op: u64, count: u64) -> u64 {
    // SAFETY: translated code passes on the `core` that it was entered with, which `run` has borrowed exclusively and does
    // not touch meanwhile.
    let core = unsafe { &mut *core };
    lazy::settle(core);
    core.icount = core.limit - core.native.left - count;
    // SAFETY: `native.ops` is where the cache's operations begin, and `op` is the index of one of a block's, which was
    // there when the block was translated. The cache is only ever cleared together with all translations, and not now.
    let op = unsafe { &*(core.native.ops as *const Op).add(op as usize) };
    match (op.run)(core, op) {
        Ok(()) => 0,
        Err(Stop::Leave) => 1,
        Err(Stop::Fault) => 2,
        Err(Stop::Exit) => 3,
        Err(Stop::Single) => 4,
    }
}

/// The arithmetic flags as RFLAGS has them.
pub(super) extern "sysv64" fn read_flags(core: *mut Core) -> u64 {
    // SAFETY: as in `call_op`.
    let core = unsafe { &mut *core };
    lazy::settle(core);
    core.flags.to_bits() | 2
}
