//! Questions about everything that happened in a span of a timeline, such as all system calls of a process.
//!
//! A cursor runs through the span with breakpoints at functions of the kernel, and observers read the machines there. The
//! guests execute nothing for it, and nothing in them changes.
//!
//! - [`limits`]: bounds on what is kept of a guest
//! - [`place`]: a machine at a breakpoint
//! - [`follow`]: runs through a span
//! - [`syscalls`]: system calls
//! - [`syncs`]: writes to files, and calls that make them durable
//! - [`futexes`]: waits at futexes
//! - [`samples`]: stacks of what is executed
//! - [`steps`]: context switches, page faults, signals, wakes of futexes and requests to disks
//! - [`everything`]: system calls and these steps together

pub mod everything;
pub mod follow;
pub mod futexes;
pub mod limits;
pub mod place;
pub mod samples;
pub mod steps;
pub mod syncs;
pub mod syscalls;
