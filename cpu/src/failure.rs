//! Containment of panics in the CPU's own code. Such a panic is a defect of Everett; it ends the run, not the
//! process.
//!
//! Handlers run below translated code, through which nothing can unwind, and on threads that also run other machines.
//! So panics below translated code are caught in the functions that it calls ([`crate::translate`]), and all other
//! panics where a run begins. After a panic the CPU executes nothing more, because its state may be half changed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::Core;

/// Calls `act`. Returns `None` if it panics; [`Core::failure`] then holds the message of the first panic.
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

/// Stores the message of a panic, unless an earlier one is stored already.
#[cold]
#[inline(never)]
fn note(core: &mut Core, payload: &(dyn Any + Send)) {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a message");
    core.failure.get_or_insert_with(|| text.into());
}
