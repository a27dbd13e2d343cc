//! Panics of the CPU's own code: a defect of Everett's, which ends the run and not the process.
//!
//! Handlers run below translated code, through which nothing can unwind, and on threads that have other machines. So a panic is
//! caught where translated code calls ([`crate::translate`]), and otherwise where a run begins. The CPU executes nothing from there
//! on: whatever was changed halfway is worth nothing.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::Core;

/// Calls `act`. None if it panics, or has before: [`Core::failure`] says with which message.
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

/// The first panic is the one that counts.
#[cold]
#[inline(never)]
fn note(core: &mut Core, payload: &(dyn Any + Send)) {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a message");
    core.failure.get_or_insert_with(|| text.into());
}
