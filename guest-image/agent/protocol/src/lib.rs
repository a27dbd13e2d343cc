//! The protocol between the host and the agent (the guest's PID 1), and the ports that carry it.
//!
//! One virtio-console device with named ports ([`Port`]) connects the agent and the host. The numbers of the ports are
//! part of the machine version. Two ports carry this protocol as JSON lines (one JSON value, then `\n`):
//!
//! - `everett.control`, in both directions: the host sends [`Request`]s, the agent sends [`Message`]s.
//! - `everett.log`, only from the agent to the host: [`Output`]s, the lines of services and of some commands.
//!
//! A third port, `everett.history`, carries lines of guest programs in any format. Linux lets only one process open a
//! port. So the agent opens the port, and passes it as descriptor [`HISTORY_FD`] to the programs that the host selects
//! ([`Service::history`], [`Exec::history`]). A program's write to the port returns when the host has the bytes.
//!
//! The usual sequence: the agent sends [`Message::Hello`], and the host requests [`Operation::Mount`]. The machine is
//! then at its *restart point*: its state does not depend on when or how often it was started, or on its data disks.
//! The host then requests [`Operation::Join`], puts files, and requests [`Operation::Start`]. The agent sends
//! [`Message::Ready`] when all services are ready, and serves requests until [`Operation::PowerOff`].
//!
//! The modules: the types ([`request`], [`message`]), their bounds ([`limits`]), encoding ([`codec`]), validation of
//! values ([`check`]), and splitting of program output into lines ([`LineCutter`]). This crate does no input and
//! output. The agent and the host each do their own.
//!
//! **Invariants.** A line never exceeds its port's bound. Decoding never panics, whatever the bytes. A message contains
//! no time. The host records the virtual time at which the message arrives.

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

/// Version of this protocol. The agent sends its version in [`Hello`]. A host refuses every version except its own.
pub const VERSION: u32 = 5;

/// Serial number of the virtio-blk device that holds the root filesystem.
pub const ROOT_DISK_SERIAL: &str = "everett-root";

/// Serial number of the virtio-blk device that the host usually names in [`Operation::Pack`] as the destination.
pub const OUT_DISK_SERIAL: &str = "everett-out";

/// Descriptor of the history port in the programs to which the agent passes the port.
pub const HISTORY_FD: i32 = 3;

/// Environment variable with the history port's descriptor number ([`HISTORY_FD`]), for programs that get the port.
pub const HISTORY_VARIABLE: &str = "EVERETT_HISTORY";
