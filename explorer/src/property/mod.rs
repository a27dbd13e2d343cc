//! Properties: what must not be seen on a timeline.
//!
//! - `kernel`: what Linux prints when something is wrong with it, or with a program
//! - `excuse`: what of that faults explain
//!
//! Not here: operation histories ([`crate::history`]), and what a workload's own checks say.

mod excuse;
mod kernel;

pub use excuse::{Excuses, WATCHDOG_NS};
pub use kernel::{Trouble, trouble};
