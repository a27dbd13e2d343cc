//! Times that the kernel keeps in ticks, as times of its monotonic clock.

use crate::{Error, Guest};

/// Relation between the kernel's ticks and its monotonic clock. A CPU without work does not count ticks, so the last
/// counted tick can be long ago.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    /// Duration of a tick, in nanoseconds.
    pub(super) tick_ns: u64,
    /// Number of the last counted tick.
    last: u64,
    /// Time of the last counted tick on the monotonic clock, in nanoseconds.
    last_ns: u64,
}

impl Ticks {
    /// Returns the time of a tick on the monotonic clock, in nanoseconds. `None` for times before the clock began.
    pub(super) fn time_ns(&self, tick: u64) -> Option<u64> {
        self.at(tick.wrapping_sub(self.last) as i64)
    }

    /// Returns the time of a tick of which only the lower 32 bits are known.
    pub(super) fn time_of_low_ns(&self, tick: u32) -> Option<u64> {
        self.at(i64::from(tick.wrapping_sub(self.last as u32) as i32))
    }

    fn at(&self, ticks: i64) -> Option<u64> {
        self.last_ns.checked_add_signed(ticks.checked_mul(i64::try_from(self.tick_ns).ok()?)?)
    }
}

impl Guest<'_> {
    /// Reads the relation. The length of a tick is a constant of the kernel's build, and the factor of the clock that
    /// counts ticks contains it.
    pub(super) fn ticks(&self) -> Result<Ticks, Error> {
        /// Longest and shortest tick (1,000 Hz and 24 Hz), in nanoseconds.
        const TICKS_NS: std::ops::RangeInclusive<u64> = 1_000_000..=41_666_667;
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let clock = self.kernel.symbol("clocksource_jiffies")?;
        let field = |field: Option<_>| self.number(clock, field.ok_or(Error::Field("clocksource.mult"))?);
        let (factor, shift) = (field(places.clock_factor)?, field(places.clock_shift)?);
        let tick_ns = u32::try_from(shift).ok().and_then(|shift| factor.checked_shr(shift)).unwrap_or(0);
        if !TICKS_NS.contains(&tick_ns) {
            return Err(Error::Field("clocksource.mult"));
        }
        Ok(Ticks {
            tick_ns,
            last: self.word(self.kernel.symbol("jiffies_64")?)?,
            last_ns: self.word(self.kernel.symbol("last_jiffies_update")?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_before_and_after_the_last_one_have_times() {
        let ticks = Ticks { tick_ns: 4_000_000, last: (1 << 32) + 1, last_ns: 10_000_000 };
        assert_eq!(ticks.time_ns(1 << 32), Some(6_000_000));
        assert_eq!(ticks.time_of_low_ns(u32::MAX), Some(2_000_000));
        assert_eq!(ticks.time_of_low_ns(3), Some(18_000_000));
        assert_eq!((ticks.time_ns(0), ticks.time_ns(1 << 63)), (None, None));
    }
}
