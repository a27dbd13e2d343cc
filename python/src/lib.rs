//! The Python package `everett`: a thin layer over `everett_scripting`.
//!
//! `everett/__init__.pyi` has the documentation and the types that users see.
//!
//! Each module uses only modules above it:
//! - `errors`: exceptions
//! - `calls`: calls that can take long: without the global interpreter lock, and ended by Ctrl-C
//! - `guest`: things in a guest: processes, stacks, sockets, files
//! - `timeline`: things that happened on a timeline: events, messages, violations, results of commands
//! - `recorded`: the classes `Finding` and `Branch`
//! - `arguments`: arguments of calls
//! - `machines`: the common base class of `Moment` and `Fork`
//! - `fork`: the class `Fork`
//! - `moment`: the class `Moment`
//! - `world`: the class `World`
//! - `run`: the class `Run`

mod arguments;
mod calls;
mod errors;
mod fork;
mod guest;
mod machines;
mod moment;
mod recorded;
mod run;
mod timeline;
mod world;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::errors::{EverettError, NoEndError, UnmappedError};
    #[pymodule_export]
    use super::fork::Fork;
    #[pymodule_export]
    use super::guest::{Frame, Mapping, OpenFile, Process, Socket, Stack, Thread};
    #[pymodule_export]
    use super::moment::Moment;
    #[pymodule_export]
    use super::recorded::{Branch, Finding};
    #[pymodule_export]
    use super::run::{Run, open};
    #[pymodule_export]
    use super::timeline::{Event, Finished, Judged, Message, Violation};
    #[pymodule_export]
    use super::world::{World, boot};
}
