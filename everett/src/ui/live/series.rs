//! Growing totals over host time, in bounded memory.

/// Maximum number of samples.
const SAMPLES_MAX: usize = 480;

/// Totals over time. When the buffer is full, every second sample is dropped and the distance between samples
/// doubles.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// Samples: host time in seconds, and the total at that time. Times increase.
    samples: Vec<(f64, u64)>,
    /// Minimum distance between two samples, in seconds.
    stride_s: f64,
    /// Latest time and total, even if `samples` does not contain them.
    last: Option<(f64, u64)>,
}

impl Series {
    /// Adds the total at a host time. Ignores times before the latest one.
    pub(super) fn add(&mut self, seconds: f64, total: u64) {
        if self.last.is_some_and(|(last, _)| last >= seconds) {
            return;
        }
        self.last = Some((seconds, total));
        if self.samples.last().is_none_or(|(last, _)| seconds - last >= self.stride_s) {
            self.samples.push((seconds, total));
        }
        if self.samples.len() > SAMPLES_MAX {
            let mut even = false;
            self.samples.retain(|_| {
                even = !even;
                even
            });
            let span = seconds - self.samples.first().map_or(seconds, |(first, _)| *first);
            self.stride_s = 2.0 * span / SAMPLES_MAX as f64;
        }
    }

    /// Returns the total of the last sample at or before a host time. 0 before the first sample.
    fn at(&self, seconds: f64) -> u64 {
        if let Some((last, total)) = self.last
            && seconds >= last
        {
            return total;
        }
        let after = self.samples.partition_point(|(at, _)| *at <= seconds);
        after.checked_sub(1).and_then(|at| self.samples.get(at)).map_or(0, |(_, total)| *total)
    }

    /// Returns the totals at the ends of `width` equal parts of the elapsed time.
    pub(super) fn totals(&self, width: usize) -> Vec<u64> {
        let Some((last, _)) = self.last else { return vec![0; width] };
        (1..=width).map(|part| self.at(last * part as f64 / width as f64)).collect()
    }

    /// Returns the growth in each of `width` equal parts of the elapsed time. If there are fewer samples than parts,
    /// the growth between two samples is spread over the parts between them.
    pub(super) fn growth(&self, width: usize) -> Vec<u64> {
        let Some((last, _)) = self.last else { return vec![0; width] };
        let at = |seconds: f64| {
            let after = self.samples.partition_point(|(at, _)| *at <= seconds);
            let before = after.checked_sub(1).and_then(|at| self.samples.get(at)).copied();
            let (from_s, from) = before.unwrap_or((0.0, self.samples.first().map_or(0, |(_, first)| *first)));
            let (to_s, to) = self.samples.get(after).copied().or(self.last).unwrap_or((from_s, from));
            if to_s <= from_s {
                return to as f64;
            }
            from as f64 + (to.saturating_sub(from)) as f64 * ((seconds - from_s) / (to_s - from_s)).min(1.0)
        };
        // Growth is multiplied by 1000, because the growth of a short part can be below one.
        let part = |part: usize| at(last * part as f64 / width as f64);
        (0..width).map(|n| ((part(n + 1) - part(n)) * 1_000.0).max(0.0) as u64).collect()
    }

    /// Returns the growth over the last `window_s` seconds, and the actual length of the window in seconds. The window
    /// starts at a sample, so it can be longer than `window_s`. It is shorter if less time has elapsed.
    pub(super) fn recent(&self, window_s: f64) -> (u64, f64) {
        let Some((last, total)) = self.last else { return (0, 0.0) };
        let from = (last - window_s).max(0.0);
        let before = self.samples.iter().rev().find(|(at, _)| *at <= from).copied();
        let (from, before) = before.unwrap_or((0.0, self.samples.first().map_or(total, |(_, first)| *first)));
        (total.saturating_sub(before), last - from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_growth_over_time() {
        let mut series = Series::default();
        assert_eq!(
            (series.totals(2), series.growth(2), series.recent(60.0)),
            (vec![0, 0], vec![0, 0], (0, 0.0))
        );
        for second in 0..=100 {
            series.add(f64::from(second), u64::try_from(second).unwrap() * 10);
        }
        assert_eq!(series.totals(4), [250, 500, 750, 1000]);
        assert_eq!(series.growth(4), [250_000; 4]);
        assert_eq!(series.recent(20.0), (200, 20.0));
        // A time before the latest one is ignored.
        series.add(50.0, 7);
        assert_eq!(series.totals(1), [1000]);
    }

    #[test]
    fn memory_is_bounded_and_the_shape_stays() {
        let mut series = Series::default();
        for step in 0..100_000u32 {
            series.add(f64::from(step) / 4.0, u64::from(step));
        }
        assert!(series.samples.len() <= SAMPLES_MAX);
        for (part, total) in (1..).zip(series.totals(10)) {
            assert!(total.abs_diff(part * 10_000) < 500, "{part}: {total}");
        }
        let (grown, span) = series.recent(60.0);
        assert!((grown as f64 / span - 4.0).abs() < 0.1, "{grown} in {span} s");
    }
}
