//! The table of recorded branch edges, i.e. pairs of a branch and the instruction executed after it ([`crate::edges`]).

use crate::zeroed::Zeroed;

/// Maximum number of edges recorded between two calls of [`Cpu::forget_edges`](crate::Cpu::forget_edges). Further new
/// edges are not recorded. Only a guest that keeps generating new code reaches this number.
pub const EDGES_MAX: usize = 1 << 19;
/// Number of entries with which the edge table begins. It grows so that at least half of its entries stay free, and
/// never has more than twice [`EDGES_MAX`]. A small table stays in the host's caches.
const ENTRIES_MIN: usize = 1 << 15;
/// Binary logarithm of the size of a table entry in bytes.
pub(crate) const TABLE_SHIFT: u8 = 3;
/// Number of bits by which [`number`] rotates an edge's source to the left.
pub(crate) const NUMBER_ROTATION: u8 = 13;
/// Mask of the bits of a [`CodeLocation`] that hold the offset in the page.
pub(crate) const OFFSET: u64 = 0xfff;

/// Identity of a guest instruction: 52 bits of a digest of its page's contents, and its offset in that page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeLocation(u64);

impl CodeLocation {
    /// Returns the page's name, as computed by [`page_name`].
    #[must_use]
    pub fn page(self) -> u64 {
        self.0 >> 12
    }
    /// Returns the instruction's offset in its page, in bytes.
    #[must_use]
    pub fn offset(self) -> u16 {
        (self.0 & OFFSET) as u16
    }
    /// Returns the location as one word: the page's name in bits 12 to 63, the offset in bits 0 to 11.
    #[must_use]
    pub fn word(self) -> u64 {
        self.0
    }
}

/// Returns the name by which a [`CodeLocation`] identifies a page of code: 52 bits of the BLAKE3 digest of its 4096
/// bytes.
#[must_use]
pub fn page_name(bytes: &[u8]) -> u64 {
    let digest = blake3::hash(bytes);
    u64::from_le_bytes(std::array::from_fn(|i| digest.as_bytes()[i])) >> 12
}

/// A branch edge: a near branch and the instruction that was executed after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Location of the branch.
    pub from: CodeLocation,
    /// Location of the next executed instruction. If the branch was not taken, this instruction directly follows the
    /// branch.
    pub to: CodeLocation,
    /// Linear address of `to`.
    pub address: u64,
    /// True if the next instruction was executed at CPL 3.
    pub user: bool,
}

/// Number of checks that translated code can have ([`Edges::known`]).
pub(crate) const CHECKS: usize = 1 << 20;
/// Index mask of the table of edges that were looked up last ([`Edges::recent`]).
pub(crate) const RECENT_MASK: usize = (1 << 13) - 1;

/// The branch edges that one CPU has recorded.
#[derive(Debug)]
pub(crate) struct Edges {
    /// Hash table of the edges' numbers ([`number`]), with linear probing from [`first_slot`]. 0 is an empty entry.
    table: Zeroed<u64>,
    /// Numbers of all recorded edges.
    seen: Vec<u64>,
    fresh: Vec<Edge>,
    /// By number of a check in translated code: 1 if all edges that it stands for are recorded, otherwise 0. The entries
    /// of one place in the code are side by side, and code that the guest executes has few, so the host's caches hold
    /// more of them than of `table`. Number 0 stands for no check.
    pub known: Zeroed<u8>,
    /// Numbers of recorded edges that translated code looked up last, by the same hash as in `table`. It is small, so it
    /// stays in the host's caches.
    pub recent: Zeroed<u64>,
    /// Number of checks that translated code had when it last ran, i.e. the length of what `known` contains.
    pub checks: usize,
}

const _: () = assert!(size_of::<u64>() == 1 << TABLE_SHIFT);

/// Returns the number (a hash) that stands for an edge in the table. Two edges between the same two pages never have
/// the same number: the rotation moves the offsets into different bits. Other edges collide only by chance.
/// `translate::routines::edges` computes the same number.
pub(crate) fn number(from: u64, to: u64) -> u64 {
    from.rotate_left(u32::from(NUMBER_ROTATION)) ^ to
}

/// Returns the index at which the search of a table with `entries` entries begins. `translate::routines::edges` computes
/// the same index.
pub(crate) fn first_slot(number: u64, entries: usize) -> usize {
    (number ^ number >> 12) as usize & (entries - 1)
}

impl Edges {
    pub(crate) fn new() -> Edges {
        Edges {
            table: Zeroed::new(ENTRIES_MIN),
            seen: Vec::new(),
            fresh: Vec::new(),
            known: Zeroed::new(CHECKS),
            recent: Zeroed::new(RECENT_MASK + 1),
            checks: 0,
        }
    }
    /// Returns the host address of the table, and its index mask. Translated code reads the table itself.
    pub(crate) fn table(&self) -> (u64, u64) {
        (self.table.as_ptr() as u64, self.table.len() as u64 - 1)
    }
    /// Returns the edges recorded since the last call, in execution order.
    pub(crate) fn take(&mut self) -> Vec<Edge> {
        std::mem::take(&mut self.fresh)
    }
    /// Forgets all recorded edges, so that each is recorded again when the guest next executes it.
    pub(crate) fn forget(&mut self) {
        if !self.seen.is_empty() {
            self.table.fill(0);
            self.seen.clear();
        }
        self.fresh.clear();
        self.recent.fill(0);
        self.forget_checks();
    }
    /// Forgets which checks stand for recorded edges, because the code with these checks was dropped, or because no edge
    /// is recorded any more.
    pub(crate) fn forget_checks(&mut self) {
        let checks = std::mem::take(&mut self.checks);
        self.known[..checks].fill(0);
    }
    /// Returns the table's entry of a number, or the empty entry that it would have.
    fn slot(&self, number: u64) -> usize {
        let mut slot = first_slot(number, self.table.len());
        while self.table[slot] != 0 && self.table[slot] != number {
            slot = (slot + 1) & (self.table.len() - 1);
        }
        slot
    }
    /// Inserts an edge number. Returns true if the number is new and the table has room. Number 0 marks an empty entry,
    /// so an edge with this number is never recorded. Translated code treats 0 in the same way.
    fn insert(&mut self, number: u64) -> bool {
        if number == 0 {
            return false;
        }
        let slot = self.slot(number);
        let new = self.table[slot] == 0 && self.seen.len() < EDGES_MAX;
        if new {
            self.table[slot] = number;
            self.seen.push(number);
            if 2 * self.seen.len() > self.table.len() {
                self.grow();
            }
        }
        new
    }
    fn grow(&mut self) {
        self.table = Zeroed::new(2 * self.table.len());
        for at in 0..self.seen.len() {
            let slot = self.slot(self.seen[at]);
            self.table[slot] = self.seen[at];
        }
    }
    pub(crate) fn note(&mut self, from: u64, to: u64, address: u64, user: bool) {
        if self.insert(number(from, to)) {
            self.fresh.push(Edge { from: CodeLocation(from), to: CodeLocation(to), address, user });
        }
    }
}

/// Returns the [`CodeLocation`] word for `offset` in the page with this name. Only the low 12 bits of `offset` are
/// used.
pub(crate) fn word(page_name: u64, offset: u64) -> u64 {
    page_name << 12 | offset & OFFSET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_with_the_same_first_slot_are_recorded_once_each() {
        let mut edges = Edges::new();
        let a = (word(5, 0x10), word(5, 0x20));
        let b = (1..).map(|n| (a.0, word(n, 0x20)));
        let slot = |edge: (u64, u64)| first_slot(number(edge.0, edge.1), ENTRIES_MIN);
        let b = b.filter(|b| *b != a).find(|b| slot(*b) == slot(a));
        let b = b.expect("the table is finite");
        for _ in 0..3 {
            edges.note(a.0, a.1, 1, true);
            edges.note(b.0, b.1, 2, false);
        }
        let taken: Vec<_> = edges.take().iter().map(|e| (e.from.word(), e.to.word(), e.address)).collect();
        assert_eq!(taken, [(a.0, a.1, 1), (b.0, b.1, 2)]);
        assert!(edges.take().is_empty());
        edges.forget();
        edges.note(a.0, a.1, 1, true);
        assert_eq!(edges.take().len(), 1);
    }

    #[test]
    fn the_number_0_is_never_new() {
        let mut edges = Edges::new();
        let from = word(5, 0x10);
        edges.note(from, from.rotate_left(u32::from(NUMBER_ROTATION)), 1, true);
        assert!(edges.take().is_empty());
    }

    #[test]
    fn no_edge_is_new_when_the_table_is_full() {
        let mut edges = Edges::new();
        for _ in 0..2 {
            // The table grows, and still has its edges afterwards.
            for n in 1..=ENTRIES_MIN as u64 {
                edges.note(word(n, 0x10), word(n, 0x20), n, true);
            }
            assert_eq!(edges.seen.len(), ENTRIES_MIN);
        }
        for n in 1..=EDGES_MAX as u64 + 5 {
            edges.note(word(n, 0x10), word(n, 0x20), n, true);
        }
        assert_eq!((edges.take().len(), edges.table.len()), (EDGES_MAX, 2 * EDGES_MAX));
        edges.note(word(1, 0x10), word(1, 0x20), 1, true);
        assert!(edges.take().is_empty());
        edges.forget();
        edges.note(word(1, 0x10), word(1, 0x20), 1, true);
        assert_eq!(edges.take().len(), 1);
    }

    #[test]
    fn what_translated_code_knows_is_forgotten() {
        let mut edges = Edges::new();
        edges.checks = 3;
        edges.known[2] = 1;
        edges.recent[1] = 5;
        edges.forget();
        assert_eq!((edges.known[2], edges.recent[1], edges.checks), (0, 0, 0));
    }

    #[test]
    fn a_page_is_named_after_its_bytes() {
        let mut page = [0; 4096];
        let zero = page_name(&page);
        page[4095] = 1;
        assert_ne!(page_name(&page), zero);
        let place = CodeLocation(word(zero, 0x123));
        assert_eq!((place.page(), place.offset()), (zero, 0x123));
    }
}
