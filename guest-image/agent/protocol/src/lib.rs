//! The protocol between the host and the agent (the guest's PID 1), and the ports that carry it.
//!
//! The agent and the host are connected by one virtio-console device with named ports ([`Port`]). Their order is part
//! of the machine version. Two of the ports carry this protocol as JSON lines (one JSON value, then `\n`):
//!
//! - `everett.control`, both ways: the host sends [`Request`]s, the agent sends [`Message`]s.
//! - `everett.log`, agent to host only: one [`Output`] for each line that a service printed.
//!
//! A third port, `everett.history`, carries the programs' own lines in any format. Linux lets one process open a port
//! at a time. So the agent opens it, never reads it, and passes it as descriptor [`HISTORY_FD`] to the programs that
//! the host selects ([`Service::history`], [`Exec::history`]). A write to it returns when the host has the bytes.
//!
//! The usual sequence: the agent sends [`Message::Hello`], and the host requests [`Operation::Mount`]. The machine is
//! then at its *restart point*: nothing in it depends on when, how often or with which disks it was started. The host
//! then requests [`Operation::Join`], puts files, and requests [`Operation::Start`]. The agent reports
//! [`Message::Ready`] when all services are ready, and serves requests until [`Operation::PowerOff`].
//!
//! The modules: the types ([`request`], [`message`]), their bounds ([`limits`]), encoding ([`codec`]), checks beyond
//! the types ([`check`]), and the splitting of program output into lines ([`LineCutter`]). Not here: input and output,
//! which each end does for itself.
//!
//! **Invariants.** A line never exceeds its port's bound. Decoding never panics, whatever the bytes. A message carries
//! no time: the host stamps it with the vtime of its arrival.

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

/// Version of this protocol. The agent sends its version in [`Hello`]; a host refuses any other version than its own.
pub const VERSION: u32 = 5;

/// Serial number of the virtio-blk device that holds the root filesystem.
pub const ROOT_DISK_SERIAL: &str = "everett-root";

/// Serial number of the virtio-blk device that [`Operation::Pack`] writes to, by convention.
pub const OUT_DISK_SERIAL: &str = "everett-out";

/// Descriptor of the history port in programs that get the port.
pub const HISTORY_FD: i32 = 3;

/// Environment variable with the number of this descriptor, for these programs; its value is [`HISTORY_FD`].
pub const HISTORY_VARIABLE: &str = "EVERETT_HISTORY";
