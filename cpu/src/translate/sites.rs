//! Places in translated code from which there may be no way on: which instruction of which block that is, and where its guest
//! registers are.

use super::registers::Registers;
use crate::decode::block::BLOCK_INSTRUCTIONS_MAX;

/// No instruction: the block does not fit before the limit.
pub(super) const FULL: usize = BLOCK_INSTRUCTIONS_MAX;
/// Nor are these: nothing is known of where the block leads.
pub(super) const WAYS: [usize; 2] = [FULL + 1, FULL + 2];

/// What has to be known where an instruction cannot be executed here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    /// The offset of the code behind it: where it would go on.
    at: u32,
    /// The number of its block's translation.
    pub block: u32,
    /// The instruction of the block, or [`FULL`] or one of [`WAYS`].
    pub n: u8,
    /// Guest registers whose value is in their host register only.
    dirty: u16,
    /// Which host register that is: four bits for each guest register.
    hosts: u64,
    /// XMM registers of which the same is true. They are in their namesakes.
    pub vectors: u16,
}

impl Site {
    /// Guest registers and the host registers that they are in, where only those have their values.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (dirty, hosts) = (self.dirty, self.hosts);
        (0..16).filter(move |g| dirty & 1 << g != 0).map(move |g| (g, (hosts >> (4 * g) & 15) as usize))
    }
}

/// All sites, in the order of their code.
#[derive(Debug, Default)]
pub(super) struct Sites {
    sites: Vec<Site>,
    /// By stretch of code, the number of its first site or of a later one's.
    first: Vec<u32>,
}

/// The binary logarithm of a stretch's bytes: a few sites.
const STRETCH_SHIFT: u8 = 8;

impl Sites {
    pub(super) fn clear(&mut self) {
        self.sites.clear();
        self.first.clear();
    }
    pub(super) fn is_empty(&self) -> bool {
        self.sites.is_empty() && self.first.is_empty()
    }
    /// The number that the next site gets.
    pub(super) fn next(&self) -> u32 {
        self.sites.len() as u32
    }
    /// Add a site behind all others.
    pub(super) fn add(&mut self, at: u32, block: u32, n: usize, registers: &Registers) {
        debug_assert!(self.sites.last().is_none_or(|last| last.at <= at));
        let vectors = registers.vectors.dirty;
        let mut site = Site { at, block, n: n as u8, dirty: 0, hosts: 0, vectors };
        for (guest, host) in registers.unsaved() {
            site.dirty |= 1 << guest;
            site.hosts |= u64::from(host.0) << (4 * guest);
        }
        let stretch = (at >> STRETCH_SHIFT) as usize;
        if self.first.len() <= stretch {
            self.first.resize(stretch + 1, self.next());
        }
        self.sites.push(site);
    }
    pub(super) fn get(&self, number: u32) -> Site {
        self.sites[number as usize]
    }
    /// The site whose code goes on at an offset.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn find(&self, at: u32) -> Site {
        let first = self.first[(at >> STRETCH_SHIFT) as usize] as usize;
        let found = self.sites[first..].iter().take_while(|site| site.at <= at).find(|site| site.at == at);
        *found.expect("translated code came back from where it was called")
    }
}
