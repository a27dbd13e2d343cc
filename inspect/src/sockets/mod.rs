//! Sockets of all network namespaces, and the processes that own them.
//!
//! The kernel's hash tables and lists say which sockets exist, so connections that no process has open are found, too:
//! those in TIME-WAIT, those that a program has closed before all data was sent, and those that a server has not yet
//! accepted. Bound Unix sockets and the others are in one table. Sockets of TCP and UDP that are not bound are in no
//! table. Only [`Guest::socket`] reads them.
//!
//! - [`state`]: states and kinds
//! - [`address`]: addresses of both ends
//! - `tables`: the kernel's hash tables
//! - `clock`: times that the kernel keeps in ticks
//! - [`tcp`]: timers and details of TCP connections
//! - `unix`: names and queues of Unix sockets
//! - `socket`: reads one socket

use std::collections::{BTreeMap, BTreeSet};

use self::address::Address;
use self::socket::Reader;
use self::state::{Kind, State};
use self::tables::{Table, Walk};
use self::tcp::{Details, Timer};
use crate::limits::{FILES_OF_GUEST_MAX, NAMESPACES_MAX, SOCKETS_MAX};
use crate::task::Process;
use crate::{Error, Guest};

pub mod address;
mod clock;
mod socket;
pub mod state;
mod tables;
pub mod tcp;
mod unix;

/// Number of lists in the table of Unix sockets (`UNIX_HASH_SIZE`).
const UNIX_LISTS: u64 = 512;

/// A socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// Address of its structure.
    pub sock: u64,
    /// Number of its network namespace, as in `/proc/PID/ns/net`.
    pub namespace: u32,
    /// Kind.
    pub kind: Kind,
    /// True if its addresses are of IP version 6.
    pub is_version_6: bool,
    /// State.
    pub state: State,
    /// Number of bytes that the program has not read. Of a listening socket, the number of connections that the program
    /// has not accepted. Of UDP, raw and packet sockets, the memory in use for packets. Of Unix datagrams, the length of
    /// the first one.
    pub receive_queue: u64,
    /// Number of bytes that the peer has not confirmed. Of a listening socket, the maximum number of connections that
    /// the program has not accepted. Of others, the memory in use for data.
    pub send_queue: u64,
    /// Local address.
    pub local: Address,
    /// Address of the peer.
    pub remote: Address,
    /// Index of the network card to which it is bound. 0 if it is bound to none.
    pub interface: u32,
    /// Number of its inode. 0 if it belongs to no file.
    pub inode: u64,
    /// User ID of its owner; of a connection request, of the listening socket's owner.
    pub user: Option<u32>,
    /// Timer of a TCP connection.
    pub timer: Option<Timer>,
    /// Number of times that TCP has sent the oldest data again without an answer.
    pub retransmits: u64,
    /// Details of a TCP connection. `None` for listening sockets, and for connections that no program has open or that
    /// are not yet complete.
    pub details: Option<Details>,
    /// True if it is a connection that its server has not accepted.
    pub waits_for_accept: bool,
    /// Processes that have it open.
    pub owners: Vec<Owner>,
}

/// Process that has a socket open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Process ID.
    pub pid: u32,
    /// Name of the process's first thread.
    pub name: String,
    /// Descriptor.
    pub descriptor: u32,
}

/// Sockets of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sockets {
    /// Sockets that were read, sorted by namespace, kind, state and addresses.
    pub found: Vec<Socket>,
    /// Reasons why parts cannot be read, each with the ID of its process if it is one of a process.
    pub unreadable: Vec<(Option<u32>, Error)>,
}

/// Addresses of sockets that were found in tables.
#[derive(Default)]
struct Tables {
    /// Sockets of TCP. They can have smaller structures than a `sock`.
    tcp: Vec<u64>,
    /// Others.
    others: Vec<u64>,
    unreadable: Vec<Error>,
}

impl<'g> Guest<'g> {
    /// Returns all sockets of TCP, UDP, raw IP, packets and Unix that are in the kernel's tables. `processes` are all
    /// processes of the guest.
    ///
    /// # Errors
    /// Returns an error if the kernel lacks a field of sockets, or if the list of network namespaces cannot be read.
    pub fn sockets(&self, processes: &[Process]) -> Result<Sockets, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let head = self.kernel.symbol("net_namespace_list")?;
        let namespaces = self.list(head, places.net_list, "network namespaces", NAMESPACES_MAX)?;
        let tables = self.tables(&namespaces);
        let (mut owners, mut unreadable) = self.owners(processes);
        unreadable.extend(tables.unreadable.into_iter().map(|error| (None, error)));

        let mut reader = Reader::new(*self);
        let mut found = Vec::new();
        let reading = Error::reading("a socket");
        let tcp = tables.tcp.iter().map(|sock| (*sock, true));
        for (sock, is_tcp) in tcp.chain(tables.others.iter().map(|sock| (*sock, false))) {
            let read = if is_tcp { reader.tcp(sock) } else { reader.full(sock) };
            match read {
                Ok(socket) => found.push(socket),
                Err(error) => unreadable.push((None, reading(error))),
            }
        }
        let listening =
            found.iter().filter(|socket| socket.kind == Kind::Tcp && socket.state == State::Listen);
        let listening: Vec<u64> = listening.map(|socket| socket.sock).collect();
        let waiting = self.waiting_for_accept(&listening).unwrap_or_else(|error| {
            unreadable.push((None, Error::reading("a queue of connections")(error)));
            BTreeSet::new()
        });
        for socket in &mut found {
            socket.owners = owners.remove(&socket.sock).unwrap_or_default();
            socket.waits_for_accept = waiting.contains(&socket.sock);
        }
        found.sort_by(|a, b| {
            let key = |s: &Socket| (s.namespace, s.kind, s.is_version_6, s.state);
            key(a)
                .cmp(&key(b))
                .then_with(|| (&a.local, &a.remote, a.sock).cmp(&(&b.local, &b.remote, b.sock)))
        });
        Ok(Sockets { found, unreadable })
    }

    /// Reads the socket of an open file.
    ///
    /// # Errors
    /// Returns an error if a structure of the kernel cannot be read.
    pub fn socket(&self, sock: u64) -> Result<Socket, Error> {
        Reader::new(*self).full(sock).map_err(Error::reading("a socket"))
    }

    /// Finds the sockets in the tables of all network namespaces.
    fn tables(&self, namespaces: &[u64]) -> Tables {
        let mut tables = Tables::default();
        let mut walk = Walk::new(*self);
        let (mut tcp, mut others, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        let mut note = |what, result: Result<(), Error>| {
            unreadable.extend(result.map_err(Error::reading(what)).err());
        };
        note("the table of TCP sockets", self.walk_tcp(namespaces, &mut walk, &mut tcp));
        note("the table of UDP sockets", self.walk_udp(namespaces, &mut walk, &mut others));
        note("the table of raw sockets", self.walk_raw(&mut walk, &mut others));
        note("the tables of Unix and packet sockets", self.walk_others(namespaces, &mut walk, &mut others));
        (tables.tcp, tables.others, tables.unreadable) = (tcp, others, unreadable);
        tables
    }

    fn walk_tcp(&self, namespaces: &[u64], walk: &mut Walk<'_>, found: &mut Vec<u64>) -> Result<(), Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let mut tables = BTreeSet::from([self.kernel.symbol("tcp_hashinfo")?]);
        if let Some(field) = places.net_tcp {
            for namespace in namespaces {
                tables.insert(self.number(*namespace, field)?);
            }
        }
        for table in tables {
            let read = |field| self.number(table, field);
            let connected = Table {
                at: read(places.hash_buckets)?,
                buckets: read(places.hash_mask)? + 1,
                bucket_bytes: 8,
                head: 0,
                node: places.nulls_node,
            };
            walk.table(connected, found)?;
            let listening = Table {
                at: read(places.listen_buckets)?,
                buckets: read(places.listen_mask)? + 1,
                bucket_bytes: places.listen_bucket_bytes,
                head: places.listen_head.offset(),
                node: places.listen_node.unwrap_or(places.nulls_node),
            };
            walk.table(listening, found)?;
        }
        Ok(())
    }

    fn walk_udp(&self, namespaces: &[u64], walk: &mut Walk<'_>, found: &mut Vec<u64>) -> Result<(), Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let mut tables = BTreeSet::from([self.kernel.symbol("udp_table")?]);
        // Kernels without UDP-Lite have no such table.
        tables.extend(self.kernel.values.get("udplite_table"));
        if let Some(field) = places.net_udp {
            for namespace in namespaces {
                tables.insert(self.number(*namespace, field)?);
            }
        }
        for table in tables {
            let table = Table {
                at: self.number(table, places.udp_buckets)?,
                buckets: self.number(table, places.udp_mask)? + 1,
                bucket_bytes: places.udp_bucket_bytes,
                head: places.udp_head.offset(),
                node: places.node,
            };
            walk.table(table, found)?;
        }
        Ok(())
    }

    fn walk_raw(&self, walk: &mut Walk<'_>, found: &mut Vec<u64>) -> Result<(), Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let heads = places.raw_heads.ok_or(Error::Field("raw_hashinfo.ht"))?;
        for name in ["raw_v4_hashinfo", "raw_v6_hashinfo"] {
            // A kernel without IP version 6, or with it in a module, has no second table.
            let Some(table) = self.kernel.values.get(name) else { continue };
            let at = table.wrapping_add(heads.offset());
            let table = Table { at, buckets: heads.bytes() / 8, bucket_bytes: 8, head: 0, node: places.node };
            walk.table(table, found)?;
        }
        Ok(())
    }

    fn walk_others(
        &self,
        namespaces: &[u64],
        walk: &mut Walk<'_>,
        found: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let table = |at| Table { at, buckets: UNIX_LISTS, bucket_bytes: 8, head: 0, node: places.node };
        match places.net_unix {
            Some(field) => {
                for namespace in namespaces {
                    let at = self.number(*namespace, field)?;
                    walk.table(table(at), found)?;
                }
            }
            // Before Linux 6.0, all network namespaces shared one table.
            None => walk.table(table(self.kernel.symbol("unix_socket_table")?), found)?,
        }
        if let Some(field) = places.net_packet {
            for namespace in namespaces {
                walk.list(self.number(*namespace, field)?, places.node, found)?;
            }
        }
        Ok(())
    }

    /// Returns the sockets of connections that no program has accepted.
    fn waiting_for_accept(&self, listening: &[u64]) -> Result<BTreeSet<u64>, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let (mut waiting, mut requests) = (BTreeSet::new(), BTreeSet::new());
        for listener in listening {
            let mut request = self.number(*listener, places.accept_first)?;
            while request != 0 {
                if !requests.insert(request) {
                    return Err(Error::Loop("connections"));
                }
                if requests.len() > SOCKETS_MAX {
                    return Err(Error::TooMany { what: "connections", max: SOCKETS_MAX });
                }
                waiting.insert(self.number(request, places.request_sock)?);
                request = self.number(request, places.request_next)?;
            }
        }
        Ok(waiting)
    }

    /// Returns the processes that have each socket open, and why some processes cannot be read.
    #[expect(clippy::type_complexity, reason = "used once")]
    fn owners(&self, processes: &[Process]) -> (BTreeMap<u64, Vec<Owner>>, Vec<(Option<u32>, Error)>) {
        let mut owners = BTreeMap::<u64, Vec<Owner>>::new();
        let mut unreadable = Vec::new();
        let mut files_left = FILES_OF_GUEST_MAX;
        for process in processes {
            let Some(first) = process.threads.first() else { continue };
            let mut sockets = || {
                let files = self.descriptors(process)?;
                let too_many = Error::TooMany { what: "open files", max: FILES_OF_GUEST_MAX };
                files_left = files_left.checked_sub(files.len()).ok_or(too_many)?;
                for file in files {
                    let Some(sock) = self.sock_of(file.file)? else { continue };
                    let owner = Owner { pid: process.pid, name: first.name.clone(), descriptor: file.number };
                    owners.entry(sock).or_default().push(owner);
                }
                Ok(())
            };
            let reading = Error::reading("the open files of a process");
            unreadable.extend(sockets().map_err(reading).err().map(|error| (Some(process.pid), error)));
        }
        (owners, unreadable)
    }
}
