//! Pages and branch targets of a guest program, to which the generator refers while it writes code.

use crate::layout::*;
use crate::rng::Rng;

/// Pages, units and functions that code may refer to.
#[derive(Debug)]
pub(crate) struct World {
    /// Initial paging entries of the window, i.e. of the pages from linear address `WINDOW` on. An entry consists of an
    /// address and rights. `None` if the page is not mapped.
    pub(crate) window: Vec<Option<u64>>,
    /// Linear addresses of units, i.e. the loops of the program.
    pub(crate) units: Vec<u64>,
    /// Linear addresses of functions, which end with RET.
    pub(crate) functions: Vec<u64>,
    /// True if the program starts in ring 3.
    pub(crate) user: bool,
    /// True if the code contains vector instructions.
    pub(crate) vectors: bool,
    /// True if the CPU has the model `v3` with all extras, and the code contains its instructions.
    pub(crate) extended: bool,
}

impl World {
    /// Draws the mappings of the pages from `WINDOW` on. These pages have all kinds of contents and rights.
    pub(crate) fn new(rng: &mut Rng, user: bool, vectors: bool, extended: bool) -> World {
        let owner = if user || rng.one_in(2) { USER } else { 0 };
        // Neighbouring pages often map successive pages of code, so that an instruction across the end of a page
        // continues with its own bytes.
        let mut next = 0;
        let window = (0..WINDOW_PAGES)
            .map(|n| {
                if n < VIEW_PAGES {
                    next = if rng.one_in(3) { rng.below(CODE_PAGES) } else { (next + 1) % CODE_PAGES };
                }
                let page = match rng.below(if n < VIEW_PAGES { 40 } else { 12 }) {
                    0 => return None,
                    1 => RAM_LEN as u64 + rng.below(3) * 4096,
                    2 => PML4 + rng.below(4) * 4096,
                    3 | 4 if n >= VIEW_PAGES => PT,
                    5 | 6 if n >= VIEW_PAGES => CODE + rng.below(CODE_PAGES) * 4096,
                    _ if n < VIEW_PAGES => CODE + next * 4096,
                    _ => DATA + rng.below(DATA_PAGES) * 4096,
                };
                Some(page | rights(rng, owner))
            })
            .collect();
        let mut world = World { window, units: vec![], functions: vec![], user, vectors, extended };
        world.units = (0..12 + rng.below(12)).map(|_| world.place(rng)).collect();
        world.functions = (0..8).map(|_| world.place(rng)).collect();
        world
    }
    /// Returns an address for code, often shortly before the end of a page.
    fn place(&self, rng: &mut Rng) -> u64 {
        let page = loop {
            let page = rng.below(VIEW_PAGES);
            if self.code_page(page).is_some() || rng.one_in(50) {
                break page;
            }
        };
        let offset = match rng.below(4) {
            0 | 1 => 4095 - rng.below(60),
            2 => rng.below(16),
            _ => rng.below(4096),
        };
        WINDOW + page * 4096 + offset
    }
    /// Returns the guest-physical address to which page number `page` of the window is initially mapped. `None` if
    /// there is no code.
    pub(crate) fn code_page(&self, page: u64) -> Option<u64> {
        let gpa = self.window.get(page as usize).copied().flatten()? & 0xf_ffff_f000;
        (CODE..DATA).contains(&gpa).then_some(gpa)
    }
    /// Returns the guest-physical address to which linear address `la` of the window is initially mapped. `None` if
    /// there is no code.
    pub(crate) fn code_at(&self, la: u64) -> Option<u64> {
        Some(self.code_page(la.checked_sub(WINDOW)? >> 12)? | la & 0xfff)
    }
    /// Returns a linear address below 2^31 that is initially mapped to the same code as `la`. It may be `la` itself.
    pub(crate) fn alias(&self, rng: &mut Rng, la: u64) -> u64 {
        let Some(gpa) = self.code_at(la) else { return la };
        if rng.one_in(4) {
            return LARGE + gpa;
        }
        let same = |page: &u64| self.code_page(*page) == Some(gpa & !0xfff);
        let pages: Vec<u64> = (0..WINDOW_PAGES).filter(same).collect();
        WINDOW + rng.pick(&pages) * 4096 + (gpa & 0xfff)
    }
    /// Returns a branch target: a unit, the middle of a unit, a function, or any address.
    pub(crate) fn target(&self, rng: &mut Rng) -> u64 {
        let unit = rng.pick(&self.units);
        match rng.below(12) {
            0..=6 => unit,
            7..=9 => unit + rng.below(40),
            10 => rng.pick(&self.functions) + rng.below(6),
            _ => somewhere(rng),
        }
    }
    /// Returns the address of a function, or of a byte shortly after its beginning.
    pub(crate) fn function(&self, rng: &mut Rng) -> u64 {
        let function = rng.pick(&self.functions);
        let function = if rng.one_in(3) { self.alias(rng, function) } else { function };
        function + if rng.one_in(3) { rng.below(20) } else { 0 }
    }
}

fn rights(rng: &mut Rng, owner: u64) -> u64 {
    let mut rights = PRESENT | owner;
    if !rng.one_in(4) {
        rights |= WRITABLE;
    }
    if rng.one_in(12) {
        rights ^= USER;
    }
    if rng.one_in(12) {
        rights |= NO_EXECUTE;
    }
    rights
}

/// Returns an address that is likely to reach an edge case. It may be non-canonical.
pub(crate) fn somewhere(rng: &mut Rng) -> u64 {
    match rng.below(16) {
        0 => LARGE + rng.below(RAM_LEN as u64 + 0x4000),
        1 => LARGE + PT + rng.below(WINDOW_PAGES * 8),
        2 => FAR + rng.below(FAR_PAGES * 4096),
        3 => LOW_EDGE + 0xff0 + rng.below(0x20),
        4 => (HIGH_EDGE + 0xff0).wrapping_add(rng.below(0x20)),
        5 => FIXED + rng.below(4096),
        6..=10 => data_edge(rng),
        _ => WINDOW + rng.below(WINDOW_PAGES * 4096),
    }
}

/// Returns an address close to the beginning of a page of the window. Most of these pages contain data.
pub(crate) fn data_edge(rng: &mut Rng) -> u64 {
    let page = if rng.one_in(4) { 0 } else { VIEW_PAGES };
    WINDOW + (page + 1 + rng.below(WINDOW_PAGES - page)) * 4096 - 20 + rng.below(30)
}
