//! Draws a growth curve as one line of text.

use super::kind_coverage::{GrowthPoint, points_at};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum width of a curve, in characters.
const WIDTH_MAX: u64 = 24;

/// Returns the curve over all branches. Empty if there are no samples.
pub(super) fn sparkline(growth: &[GrowthPoint]) -> String {
    let Some(last) = growth.last() else { return String::new() };
    let width = last.branches.min(WIDTH_MAX);
    let top = LEVELS.len() as u128 - 1;
    (1..=width)
        .filter_map(|column| {
            let branches = u128::from(last.branches) * u128::from(column) / u128::from(width);
            let points = points_at(growth, u64::try_from(branches).unwrap_or(u64::MAX));
            let most = u128::from(last.points.max(1));
            let level = (u128::from(points) * top + most / 2) / most;
            LEVELS.get(usize::try_from(level.min(top)).ok()?)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[u64]) -> String {
        let growth: Vec<GrowthPoint> =
            (1..).zip(points).map(|(branches, points)| GrowthPoint { branches, points: *points }).collect();
        sparkline(&growth)
    }

    #[test]
    fn curves() {
        assert_eq!(curve(&[]), "");
        assert_eq!(curve(&[0, 0]), "▁▁");
        assert_eq!(curve(&[1, 2, 3, 4, 5, 6, 7]), "▂▃▄▅▆▇█");
        assert_eq!(curve(&[9; 100]), "█".repeat(24));
        assert_eq!(curve(&(1..=48).collect::<Vec<u64>>()).chars().count(), 24);
        // Between two samples, the curve keeps the value of the first.
        let few = [GrowthPoint { branches: 4, points: 1 }, GrowthPoint { branches: 8, points: 2 }];
        assert_eq!(sparkline(&few), "▁▁▁▅▅▅▅█");
    }
}
