//! Places in translated code from which there may be no way on: which instruction of which block that is, and where its guest
//! registers are.

use super::registers::Registers;

/// What has to be known where an instruction cannot be executed here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    /// The offset of the code behind it: where it would go on.
    at: u32,
    /// The number of its block's translation.
    pub block: u32,
    /// The instruction of the block.
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
pub(super) struct Sites(Vec<Site>);

impl Sites {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
    /// The number that the next site gets.
    pub(super) fn next(&self) -> u32 {
        self.0.len() as u32
    }
    /// Add a site behind all others.
    pub(super) fn add(&mut self, at: u32, block: u32, n: usize, registers: &Registers) {
        debug_assert!(self.0.last().is_none_or(|last| last.at <= at));
        let vectors = registers.vectors.dirty;
        let mut site = Site { at, block, n: n as u8, dirty: 0, hosts: 0, vectors };
        for (guest, host) in registers.unsaved() {
            site.dirty |= 1 << guest;
            site.hosts |= u64::from(host.0) << (4 * guest);
        }
        self.0.push(site);
    }
    pub(super) fn get(&self, number: u32) -> Site {
        self.0[number as usize]
    }
    /// The site whose code goes on at an offset.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn find(&self, at: u32) -> Site {
        let found = self.0.binary_search_by_key(&at, |site| site.at);
        self.0[found.expect("translated code came back from where it was called")]
    }
}
