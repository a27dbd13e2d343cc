//! What the host and the guest's agent say to each other, and over which ports.
//!
//! The agent and the host are joined by one virtio-console device with named ports ([`Port`]), in an order that is
//! part of the machine version. Two of them carry this protocol, both as JSON lines (one JSON value, then `\n`):
//!
//! - `everett.control`, both ways: the host sends [`Request`]s, the agent sends [`Message`]s.
//! - `everett.log`, agent to host only: one [`Output`] for each line that a service printed.
//!
//! A third, `everett.history`, is for programs: lines of their own, of whatever form, which the agent does not see. Linux lets
//! one process open a port at a time, so the agent opens it and hands it to the programs of which the host says so
//! ([`Service::history`], [`Exec::history`]), as descriptor [`HISTORY_FD`]. A write to it returns when the host has the bytes.
//!
//! The usual course: the agent says [`Message::Hello`]; the host asks for [`Operation::Mount`], after which the machine
//! is at its *restart point*: nothing of it depends on when, how often or with which disks it was started. Then
//! [`Operation::Join`], files, and [`Operation::Start`]; the agent reports [`Message::Ready`] when each service is
//! ready, and serves requests until [`Operation::PowerOff`].
//!
//! What is here: the types ([`request`], [`message`]), their bounds ([`limits`]), encoding ([`codec`]), checks of what types
//! cannot say ([`check`]), and the cutting of what programs write into lines ([`LineCutter`]). What is not: any input or
//! output. Both ends bring their own.
//!
//! **Invariants.** A line never exceeds its port's bound; decoding never panics, whatever the bytes; a message says
//! nothing about time (the host stamps a message with the vtime at which it arrived).

pub mod check;
pub mod codec;
pub mod limits;
mod lines;
pub mod message;
mod port;
pub mod request;
pub mod text;

pub use codec::{Error, encode_request};
pub use codec::{
    LineSplitter, PartialLine, decode_message, decode_output, decode_request, encode_message, encode_output,
};
pub use lines::{Line, LineCutter};
pub use message::{Exit, Exited, Hello, Message, Output, Reply, Response, Stream, Unit};
pub use port::Port;
pub use request::{
    DataDisk, Exec, ExecOutput, HostEntry, Interface, Join, Mount, Operation, Pack, PutFile, Readiness,
    ReadyCheck, Request, Restart, Root, Service, WallClock,
};
pub use text::{Bytes, LineText};

/// Version of this protocol. The agent says its own in [`Hello`]; a host refuses any other than its own.
pub const VERSION: u32 = 5;

/// Serial number of the virtio-blk device that holds the root filesystem.
pub const ROOT_DISK_SERIAL: &str = "everett-root";

/// Serial number of the virtio-blk device that [`Operation::Pack`] writes to by convention.
pub const OUT_DISK_SERIAL: &str = "everett-out";

/// The descriptor of the history port in programs that have it.
pub const HISTORY_FD: i32 = 3;

/// The variable that says so to them: it holds [`HISTORY_FD`].
pub const HISTORY_VARIABLE: &str = "EVERETT_HISTORY";
