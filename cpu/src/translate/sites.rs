//! Sites: positions in translated code at which the CPU may have to leave translated code. A site records its block and
//! instruction, and where the guest registers are.

use super::registers::Registers;
use crate::decode::block::BLOCK_INSTRUCTIONS_MAX;

/// Value of `Site::n` at the site where a block is left because the run must stop within it.
pub(super) const FULL: usize = BLOCK_INSTRUCTIONS_MAX;
/// Values of `Site::n` at the sites where a block is left because its first or second jump is not linked to a
/// translation yet.
pub(super) const WAYS: [usize; 2] = [FULL + 1, FULL + 2];

/// Data for leaving translated code at one position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    /// Offset of the site from the start of translated code. The site is usually the return address of a call of a
    /// shared routine. The routine either returns to the site or leaves translated code.
    at: u32,
    /// Number of the block's translation.
    pub block: u32,
    /// Index of the instruction in the block, [`FULL`], or one of [`WAYS`].
    pub n: u8,
    /// Guest registers whose value is only in their host register.
    dirty: u16,
    /// Host registers of the guest registers in `dirty`: four bits for each guest register.
    hosts: u64,
    /// XMM registers whose value is only in the host register of the same number.
    pub vectors: u16,
    /// YMM registers whose upper half is only in the host register of the same number.
    pub uppers: u16,
}

impl Site {
    /// Returns a site of instruction `n` of a block, with the guest registers where they are now. Its offset is not set.
    pub(super) fn new(block: u32, n: usize, registers: &Registers) -> Site {
        let (vectors, uppers) = (registers.vectors.dirty, registers.vectors.upper_dirty);
        let mut site = Site { at: 0, block, n: n as u8, dirty: 0, hosts: 0, vectors, uppers };
        for (guest, host) in registers.unsaved() {
            site.dirty |= 1 << guest;
            site.hosts |= u64::from(host.0) << (4 * guest);
        }
        site
    }
    /// Returns the guest registers whose value is only in a host register, each with the number of that host register.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (dirty, hosts) = (self.dirty, self.hosts);
        (0..16).filter(move |g| dirty & 1 << g != 0).map(move |g| (g, (hosts >> (4 * g) & 15) as usize))
    }
}

/// All sites, sorted by offset.
#[derive(Debug, Default)]
pub(super) struct Sites {
    sites: Vec<Site>,
    /// Index into `sites`, to find a site by its offset. For each stretch of `1 << STRETCH_SHIFT` bytes of translated
    /// code, it has the number of the first site in the stretch or after it.
    first: Vec<u32>,
}

/// Binary logarithm of the size of a stretch in bytes. A stretch has few sites, so a search in it is short.
const STRETCH_SHIFT: u8 = 8;

impl Sites {
    pub(super) fn clear(&mut self) {
        self.sites.clear();
        self.first.clear();
    }
    /// True if there are no sites.
    pub(super) fn is_empty(&self) -> bool {
        self.sites.is_empty() && self.first.is_empty()
    }
    /// Returns the number that the next site will get.
    pub(super) fn next(&self) -> u32 {
        self.sites.len() as u32
    }
    /// Appends a site with an offset. Sites must be added in the order of their offsets.
    pub(super) fn add(&mut self, at: u32, site: Site) {
        debug_assert!(self.sites.last().is_none_or(|last| last.at <= at));
        let stretch = (at >> STRETCH_SHIFT) as usize;
        if self.first.len() <= stretch {
            self.first.resize(stretch + 1, self.next());
        }
        self.sites.push(Site { at, ..site });
    }
    pub(super) fn get(&self, number: u32) -> Site {
        self.sites[number as usize]
    }
    /// Returns the site with this offset.
    ///
    /// # Panics
    /// Panics if no site has this offset.
    pub(super) fn find(&self, at: u32) -> Site {
        let first = self.first[(at >> STRETCH_SHIFT) as usize] as usize;
        let found = self.sites[first..].iter().take_while(|site| site.at <= at).find(|site| site.at == at);
        *found.expect("translated code is left only at its sites")
    }
}
