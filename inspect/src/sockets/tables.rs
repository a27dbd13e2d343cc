//! The kernel's hash tables of sockets.

use std::collections::BTreeSet;

use everett_symbols::kernel::btf::Field;

use crate::limits::{BUCKETS_MAX, BUCKETS_OF_GUEST_MAX, SOCKETS_MAX};
use crate::memory::PAGE;
use crate::{Error, Guest};

/// Hash table: an array of buckets, each with a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Address of the first bucket.
    pub(super) at: u64,
    /// Number of buckets.
    pub(super) buckets: u64,
    /// Length of a bucket, in bytes.
    pub(super) bucket_bytes: u64,
    /// Offset of the list's head in a bucket.
    pub(super) head: u64,
    /// Place of the list's node in a socket.
    pub(super) node: Field,
}

/// Walks lists of sockets. No socket is in two lists of one kind, so a node that is met again is a lie.
pub(super) struct Walk<'g> {
    guest: Guest<'g>,
    tables: BTreeSet<u64>,
    nodes: BTreeSet<u64>,
    buckets_left: u64,
}

impl<'g> Walk<'g> {
    pub(super) fn new(guest: Guest<'g>) -> Walk<'g> {
        Walk { guest, tables: BTreeSet::new(), nodes: BTreeSet::new(), buckets_left: BUCKETS_OF_GUEST_MAX }
    }

    /// Adds the sockets of all lists of a table to `found`. Does nothing if the table was walked before: network
    /// namespaces share tables.
    pub(super) fn table(&mut self, table: Table, found: &mut Vec<u64>) -> Result<(), Error> {
        if !self.tables.insert(table.at) {
            return Ok(());
        }
        let too_many = |max: u64| Error::TooMany { what: "buckets of a hash table", max: max as usize };
        if table.buckets > BUCKETS_MAX {
            return Err(too_many(BUCKETS_MAX));
        }
        self.buckets_left =
            self.buckets_left.checked_sub(table.buckets).ok_or_else(|| too_many(BUCKETS_OF_GUEST_MAX))?;
        // A structure of the kernel's has less than a page.
        let bytes = table.bucket_bytes.clamp(8, PAGE);
        let at_once = PAGE / bytes;
        let mut buffer = vec![0; (at_once * bytes) as usize];
        for start in (0..table.buckets).step_by(at_once as usize) {
            let count = at_once.min(table.buckets - start);
            let part = &mut buffer[..(count * bytes) as usize];
            self.guest.memory().read(table.at.wrapping_add(start * bytes), part)?;
            for bucket in part.chunks_exact(bytes as usize) {
                let head = bucket.get(table.head as usize..).and_then(|bytes| bytes.first_chunk());
                let first = head.map(|bytes| u64::from_le_bytes(*bytes));
                self.list(first.unwrap_or(0), table.node, found)?;
            }
        }
        Ok(())
    }

    /// Adds the sockets of a list to `found`. `first` is the node in the first socket. The list ends with 0, or with an
    /// odd number (`hlist_nulls`).
    pub(super) fn list(&mut self, first: u64, node: Field, found: &mut Vec<u64>) -> Result<(), Error> {
        let mut next = first;
        while next != 0 && next & 1 == 0 {
            if !self.nodes.insert(next) {
                return Err(Error::Loop("sockets"));
            }
            if self.nodes.len() > SOCKETS_MAX {
                return Err(Error::TooMany { what: "sockets", max: SOCKETS_MAX });
            }
            let following = self.guest.word(next)?;
            found.push(next.wrapping_sub(node.offset()));
            next = following;
        }
        Ok(())
    }
}
