//! Scales and ticks of charts.

/// Linear scale from values to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    pub(super) fn new((low, high): (f64, f64), (from, to): (f64, f64)) -> Scale {
        Scale { low, high: if high > low { high } else { low + 1.0 }, from, to }
    }

    /// Returns the position of a value, in pixels with one decimal.
    pub(super) fn at(self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        ((self.from + share * (self.to - self.from)) * 10.0).round() / 10.0
    }

    /// Returns about `wanted` round values within the scale.
    pub(super) fn ticks(self, wanted: u32) -> Vec<f64> {
        let rough = (self.high - self.low) / f64::from(wanted.max(1));
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|k| k * power).find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(power * 10.0);
        let first = (self.low / step).ceil();
        let all = (0..=2 * wanted).map(|i| (first + f64::from(i)) * step);
        all.take_while(|tick| *tick <= self.high + step * 1e-9).collect()
    }
}

/// Returns the SVG path of a line through these points.
pub(super) fn line(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        path.push_str(if path.is_empty() { "M" } else { "L" });
        path.push_str(&format!("{x} {y}"));
    }
    path
}

/// Formats a number without unnecessary decimals.
pub(super) fn tick(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_scale() {
        let scale = Scale::new((0.63, 12.4), (0.0, 100.0));
        assert_eq!(scale.ticks(6), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!(Scale::new((0.0, 1.0), (0.0, 1.0)).ticks(4), [0.0, 0.5, 1.0]);
        assert_eq!(Scale::new((5.0, 5.0), (0.0, 10.0)).at(5.0), 0.0);
        assert_eq!((tick(0.5), tick(12.0), tick(0.0)), ("0.5".to_owned(), "12".to_owned(), "0".to_owned()));
    }

    #[test]
    fn lines() {
        assert_eq!(line([(0.0, 1.0), (2.5, 3.0)]), "M0 1L2.5 3");
        assert_eq!(line([]), "");
    }
}
