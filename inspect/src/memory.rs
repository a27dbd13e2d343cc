//! RAM, page tables, and address spaces.

use std::ops::Range;

use crate::Error;
use crate::limits::PAGE_ENTRIES_MAX;

/// Length of a page, in bytes.
pub const PAGE: u64 = 4096;

/// A machine's RAM.
pub trait Ram {
    /// Copies bytes from a guest-physical address. Returns false if a byte is outside of RAM.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// Bits of paging entries (SDM volume 3, 4.5).
mod bits {
    pub(super) const PRESENT: u64 = 1;
    pub(super) const LARGE: u64 = 1 << 7;
    pub(super) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
}

/// Linear memory: RAM behind four levels of page tables.
#[derive(Clone, Copy)]
pub struct AddressSpace<'r> {
    ram: &'r dyn Ram,
    /// Guest-physical address of the root table.
    root: u64,
}

impl<'r> AddressSpace<'r> {
    /// Returns the address space whose root table is at this guest-physical address.
    #[must_use]
    pub fn new(ram: &'r dyn Ram, root: u64) -> AddressSpace<'r> {
        AddressSpace { ram, root: root & bits::ADDRESS }
    }

    /// Returns the guest-physical address of the root table.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Returns the guest-physical address of a linear address. `None` if no page is mapped there.
    #[must_use]
    pub fn physical(&self, address: u64) -> Option<u64> {
        self.entry(address).0
    }

    /// Returns the guest-physical address of a linear address, and the number of bytes of the page or of the hole around
    /// it, as far as one entry of the page tables decides.
    fn entry(&self, address: u64) -> (Option<u64>, u64) {
        let is_canonical = matches!(address >> 47, 0 | 0x1ffff);
        let mut table = self.root;
        for level in (0..4).rev().filter(|_| is_canonical) {
            let shift = 12 + 9 * level;
            let mut entry = [0; 8];
            if !self.ram.read(table + (address >> shift & 0x1ff) * 8, &mut entry) {
                return (None, 1 << shift);
            }
            let entry = u64::from_le_bytes(entry);
            if entry & bits::PRESENT == 0 {
                return (None, 1 << shift);
            }
            let is_page = level == 0 || entry & bits::LARGE != 0;
            if is_page {
                let within = (1 << shift) - 1;
                // Pages of 512 GiB do not exist.
                let physical = (level < 3).then_some(entry & bits::ADDRESS & !within | address & within);
                return (physical, 1 << shift);
            }
            table = entry & bits::ADDRESS;
        }
        (None, PAGE)
    }

    /// Returns the parts of a range that are mapped to RAM, ascending and as whole pages. Adjacent parts are one part.
    ///
    /// # Errors
    /// Returns an error if more than `entries_left` entries of page tables must be read. Each call takes those that it
    /// has read.
    pub fn mapped(&self, range: Range<u64>, entries_left: &mut usize) -> Result<Vec<Range<u64>>, Error> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        let (mut page, end) = (range.start / PAGE, range.end.div_ceil(PAGE));
        while page < end {
            let too_many = Error::TooMany { what: "entries of page tables", max: PAGE_ENTRIES_MAX };
            *entries_left = entries_left.checked_sub(1).ok_or(too_many)?;
            let at = page * PAGE;
            let (physical, hole_bytes) = self.entry(at);
            let Some(physical) = physical else {
                page = (page | (hole_bytes / PAGE - 1)) + 1;
                continue;
            };
            // A large page can begin in RAM and end outside of it, so each of its small pages is looked at.
            page += 1;
            if self.ram.read(physical, &mut [0]) {
                let next = page.saturating_mul(PAGE);
                match parts.last_mut() {
                    Some(last) if last.end == at => last.end = next,
                    _ => parts.push(at..next),
                }
            }
        }
        Ok(parts)
    }

    /// Copies bytes from a linear address.
    ///
    /// # Errors
    /// Returns an error with the first address that is not mapped.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Error> {
        let read = self.read_some(address, into);
        if read == into.len() { Ok(()) } else { Err(Error::Unmapped(address.wrapping_add(read as u64))) }
    }

    /// Copies bytes from a linear address, up to the first byte that is not mapped. Returns the number of copied bytes.
    pub fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let in_page = (PAGE - at % PAGE) as usize;
            let end = into.len().min(done + in_page);
            match self.physical(at) {
                Some(physical) if self.ram.read(physical, &mut into[done..end]) => done = end,
                _ => break,
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RAM of 64 KiB.
    struct Small(Vec<u8>);

    impl Ram for Small {
        fn read(&self, address: u64, into: &mut [u8]) -> bool {
            let from = usize::try_from(address).ok().and_then(|at| self.0.get(at..)?.get(..into.len()));
            from.map(|from| into.copy_from_slice(from)).is_some()
        }
    }

    const TABLES: [u64; 4] = [0x1000, 0x2000, 0x3000, 0x4000];
    const HIGH: u64 = 0xffff_8000_0000_0000;

    fn ram() -> Small {
        let mut ram = Small((0..0x1_0000u32).map(|at| at as u8).collect());
        ram.0[0x1000..0x5000].fill(0);
        let mut put = |at: u64, entry: u64| ram.0[at as usize..][..8].copy_from_slice(&entry.to_le_bytes());
        let [root, third, second, first] = TABLES;
        put(root, third | 1);
        put(root + 256 * 8, third | 1);
        put(third, second | 1);
        put(second, first | 1);
        // Two adjacent pages that are not adjacent in RAM, then a page that is not mapped, and one outside RAM.
        put(first, 0x8000 | 1);
        put(first + 8, 0x6000 | 1);
        put(first + 16, 0x7000);
        put(first + 24, 0x10_0000 | 1);
        // A page of 2 MiB, which begins in RAM, and one of 1 GiB.
        put(second + 8, 1 << 7 | 1);
        put(third + 8, 1 << 7 | 1);
        ram
    }

    #[test]
    fn page_tables_of_all_levels_are_followed() {
        let ram = ram();
        let memory = AddressSpace::new(&ram, TABLES[0]);
        assert_eq!(memory.physical(0x123), Some(0x8123));
        assert_eq!(memory.physical(0x1fff), Some(0x6fff));
        assert_eq!(memory.physical(0x20_0123), Some(0x123));
        assert_eq!(memory.physical(0x4000_0123), Some(0x123));
        assert_eq!(memory.physical(HIGH + 0x123), Some(0x8123));
        assert_eq!(
            (memory.physical(0x2000), memory.physical(HIGH - 1), memory.physical(1 << 39)),
            (None, None, None)
        );
    }

    #[test]
    fn mapped_parts_are_whole_pages_in_ram() {
        let ram = ram();
        let memory = AddressSpace::new(&ram, TABLES[0]);
        let mapped = |range, mut left: usize| {
            let parts = memory.mapped(range, &mut left)?;
            Ok(parts.into_iter().map(|part| (part.start, part.end)).collect::<Vec<_>>())
        };
        // The page at 0x3000 lies outside RAM, and of the large page at 0x20_0000 only the first 64 KiB are RAM.
        assert_eq!(mapped(0..0x4000, 10), Ok(vec![(0, 0x2000)]));
        assert_eq!(mapped(0x1000..0x20_2000, 600), Ok(vec![(0x1000, 0x2000), (0x20_0000, 0x20_2000)]));
        assert_eq!(mapped(0x20_f000..0x21_2000, 10), Ok(vec![(0x20_f000, 0x21_0000)]));
        // A hole of 512 GiB is one entry.
        assert_eq!(mapped(1 << 39..3 << 39, 2), Ok(vec![]));
        let too_many = Error::TooMany { what: "entries of page tables", max: PAGE_ENTRIES_MAX };
        assert_eq!(mapped(1 << 39..3 << 39, 1), Err(too_many));
        assert_eq!(mapped(u64::MAX - 10..u64::MAX, 9), Ok(vec![]));
    }

    #[test]
    fn reading_stops_at_the_first_byte_that_is_not_mapped() {
        let ram = ram();
        let memory = AddressSpace::new(&ram, TABLES[0]);
        let mut bytes = [0; 4];
        memory.read(0xffe, &mut bytes).unwrap();
        assert_eq!(bytes, [ram.0[0x8ffe], ram.0[0x8fff], ram.0[0x6000], ram.0[0x6001]]);
        assert_eq!(memory.read(0x1ffe, &mut bytes), Err(Error::Unmapped(0x2000)));
        assert_eq!(memory.read_some(0x1ffd, &mut bytes), 3);
        assert_eq!(memory.read(0x3000, &mut bytes), Err(Error::Unmapped(0x3000)), "outside RAM");
        assert_eq!(memory.read_some(u64::MAX - 1, &mut bytes), 0);
    }
}
