//! Catches panics of the CPU's own code. A panic is a defect of Everett; it ends the run, not the process.
//!
//! Translated code calls handlers, and a panic cannot unwind through translated code. A panic must not end the thread
//! either, because the thread also runs other machines. Every function that translated code calls therefore catches
//! panics itself ([`crate::translate`]). All other panics are caught in `Cpu::run`, `Cpu::interrupt` and
//! `Cpu::exception`. After a panic the CPU executes
//! nothing more, because its state may be inconsistent.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::Core;

/// Calls `act`. If `act` panics, returns `None`; [`Core::failure`] then contains the message of the first panic.
#[inline]
pub(crate) fn caught<T>(core: &mut Core, act: impl FnOnce(&mut Core) -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(|| act(core))) {
        Ok(value) => Some(value),
        Err(payload) => {
            note(core, &*payload);
            None
        }
    }
}

/// Stores the message of a panic, unless an earlier message is stored.
#[cold]
#[inline(never)]
fn note(core: &mut Core, payload: &(dyn Any + Send)) {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a message");
    core.failure.get_or_insert_with(|| text.into());
}
