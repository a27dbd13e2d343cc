//! Drawn instants at which something is done that no guest can see: a test of exactly that.

/// Instants one after the other, near and far.
#[derive(Debug)]
pub(super) struct Instants {
    interval: u64,
    state: u64,
    next: u64,
}

impl Instants {
    /// The first one is after `now`. The scale of the distances is `interval`, which is not zero: some are twice this, as many
    /// are a half, a quarter, down to a thousandth of that, so that long stretches and quick successions both occur.
    pub(super) fn new(interval: u64, seed: u64, now: u64) -> Instants {
        let mut instants = Instants { interval, state: seed, next: 0 };
        instants.advance(now);
        instants
    }
    /// The instant that comes next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
    /// The next one after `now` (splitmix64).
    pub(super) fn advance(&mut self, now: u64) {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let distance = (z % (2 * self.interval)) >> ((z >> 32) % 11);
        self.next = now + 1 + distance;
    }
}
