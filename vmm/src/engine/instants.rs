//! Random instants, counted in instructions. To find errors of the CPU, an engine can flush its caches at these
//! instants. It can also run a second CPU in lockstep, and compare the two CPUs at these instants. The guest notices
//! neither.

/// Pseudo-random sequence of instants. Short and long distances alternate at random.
#[derive(Debug)]
pub(super) struct Instants {
    interval: u64,
    state: u64,
    next: u64,
}

impl Instants {
    /// Returns a sequence whose first instant is after `now`. `interval` is the scale of the distances and must not be
    /// zero. A distance is a random number of up to twice the interval, divided by a random power of two of up to about
    /// a thousand.
    pub(super) fn new(interval: u64, seed: u64, now: u64) -> Instants {
        let mut instants = Instants { interval, state: seed, next: 0 };
        instants.advance(now);
        instants
    }
    /// Returns the next instant.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
    /// Moves to the next instant after `now`. The random generator is splitmix64.
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
