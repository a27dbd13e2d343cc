//! A socket as JSON and as text.

use std::collections::BTreeMap;

use everett_inspect::sockets::address::Address;
use everett_inspect::sockets::{Owner, Socket};
use serde::Serialize;

/// A socket in a line of `--json`.
#[derive(Serialize)]
pub(super) struct SocketLine<'a> {
    namespace: u32,
    netid: &'static str,
    state: &'static str,
    receive_queue: u64,
    send_queue: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<u8>,
    local: AddressLine<'a>,
    remote: AddressLine<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    interface: u32,
    inode: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    waits_for_accept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timer: Option<TimerLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<InfoLine<'a>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Address of one end.
#[derive(Serialize)]
#[serde(untagged)]
enum AddressLine<'a> {
    Ip { address: String, port: u16 },
    Unix { name: Option<&'a str>, inode: u64 },
    Card { protocol: u16, interface: u32 },
    None {},
}

#[derive(Serialize)]
struct TimerLine {
    kind: &'static str,
    expires_ns: Option<u64>,
}

#[derive(Serialize)]
struct InfoLine<'a> {
    retransmits: u64,
    congestion: Option<&'a str>,
    #[serde(flatten)]
    numbers: BTreeMap<&'static str, u64>,
}

/// Process that has a socket open.
#[derive(Serialize)]
pub(super) struct OwnerLine<'a> {
    pid: u32,
    name: &'a str,
    fd: u32,
}

impl OwnerLine<'_> {
    pub(super) fn of(owner: &Owner) -> OwnerLine<'_> {
        OwnerLine { pid: owner.pid, name: &owner.name, fd: owner.descriptor }
    }
}

impl AddressLine<'_> {
    fn of(address: &Address) -> AddressLine<'_> {
        match address {
            Address::Ip(address) => {
                AddressLine::Ip { address: address.ip().to_string(), port: address.port() }
            }
            Address::Unix { name, inode } => AddressLine::Unix { name: name.as_deref(), inode: *inode },
            Address::Card { protocol, index } => AddressLine::Card { protocol: *protocol, interface: *index },
            Address::None => AddressLine::None {},
        }
    }
}

impl SocketLine<'_> {
    /// Returns the line of a socket. Details of TCP connections are in it if `with_info` is true.
    pub(super) fn of(socket: &Socket, with_info: bool) -> SocketLine<'_> {
        let timer =
            socket.timer.map(|timer| TimerLine { kind: timer.kind.name(), expires_ns: timer.expires_ns });
        let info = socket.details.as_ref().filter(|_| with_info).map(|details| InfoLine {
            retransmits: socket.retransmits,
            congestion: details.congestion.as_deref(),
            numbers: details.numbers.iter().copied().collect(),
        });
        SocketLine {
            namespace: socket.namespace,
            netid: socket.kind.name(),
            state: socket.state.name(),
            receive_queue: socket.receive_queue,
            send_queue: socket.send_queue,
            ip: matches!(socket.local, Address::Ip(_)).then_some(if socket.is_version_6 { 6 } else { 4 }),
            local: AddressLine::of(&socket.local),
            remote: AddressLine::of(&socket.remote),
            interface: socket.interface,
            inode: socket.inode,
            user: socket.user,
            waits_for_accept: socket.waits_for_accept,
            timer,
            info,
        }
    }
}

/// Returns the text for `--info`: the timer and the details of a TCP connection, as far as they are not 0. `None` if the
/// socket has neither.
pub(super) fn info(socket: &Socket) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(timer) = socket.timer {
        let expires = match timer.expires_ns {
            Some(ns) => format!("{}.{:03}s", ns / 1_000_000_000, ns / 1_000_000 % 1_000),
            None => "unknown".to_owned(),
        };
        parts.push(format!("timer:{} expires:{expires}", timer.kind.name()));
    }
    if let Some(details) = &socket.details {
        parts.extend(details.congestion.clone());
        let retransmits = [("retransmits", socket.retransmits)];
        let numbers = retransmits.iter().chain(&details.numbers).filter(|(_, number)| *number != 0);
        parts.extend(numbers.map(|(name, number)| format!("{name}:{number}")));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}
