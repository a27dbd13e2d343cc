//! Formats numbers for people, with three significant digits and a unit.

/// Formats a count. Counts below a million are written in full, with commas.
#[must_use]
pub fn count(n: u64) -> String {
    const NAMES: [(&str, u64); 5] = [
        ("quintillion", 1_000_000_000_000_000_000),
        ("quadrillion", 1_000_000_000_000_000),
        ("trillion", 1_000_000_000_000),
        ("billion", 1_000_000_000),
        ("million", 1_000_000),
    ];
    match NAMES.into_iter().find(|(_, unit)| n >= *unit) {
        Some((name, unit)) => format!("{} {name}", three_digits(n, unit)),
        None => commas(n),
    }
}

/// Formats a count with its noun, such as `1 branch` or `2 branches`.
#[must_use]
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Formats a duration in the largest suitable unit.
#[must_use]
pub fn duration(ns: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    // Durations below two minutes stay in seconds, which are easier to compare.
    let large = |unit: u64| if unit >= UNITS[1].1 { 2 * unit } else { unit };
    match UNITS.into_iter().find(|(_, unit)| ns >= large(*unit)) {
        Some(("ns", _)) | None => format!("{ns} ns"),
        Some((name, unit)) => format!("{} {name}", three_digits(ns, unit)),
    }
}

/// Formats a vtime as runs print it: in seconds since power-on.
#[must_use]
pub fn vtime(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Formats a share in parts per million as a percentage.
#[must_use]
pub fn percent(ppm: u32) -> String {
    match ppm {
        1..1_000 => "< 0.1 %".to_owned(),
        _ => format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1_000),
    }
}

/// Formats a rate as a bare number. The caller adds the unit.
#[must_use]
pub fn rate(rate: f64) -> String {
    match rate {
        ..0.01 => format!("{rate:.1e}"),
        ..10.0 => format!("{rate:.2}"),
        ..1_000_000.0 => format!("{rate:.0}"),
        _ => format!("{rate:.2e}"),
    }
}

fn commas(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{},{:03}", commas(n / 1_000), n % 1_000) }
}

/// Formats `n / unit` with three significant digits.
fn three_digits(n: u64, unit: u64) -> String {
    let rounded = |scale: u64| (u128::from(n) * u128::from(scale) + u128::from(unit) / 2) / u128::from(unit);
    let (hundredths, tenths) = (rounded(100), rounded(10));
    if hundredths < 1_000 {
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    } else if tenths < 1_000 {
        format!("{}.{}", tenths / 10, tenths % 10)
    } else {
        commas(u64::try_from(rounded(1)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (999_999, "999,999"),
            (1_000_000, "1.00 million"),
            (2_011_000_000, "2.01 billion"),
            (28_540_000_000, "28.5 billion"),
            (999_999_999_999, "1,000 billion"),
            (u64::MAX, "18.4 quintillion"),
        ] {
            assert_eq!(count(n), text);
        }
        assert_eq!(counted(1, "branch", "branches"), "1 branch");
        assert_eq!(counted(0, "branch", "branches"), "0 branches");
    }

    #[test]
    fn durations() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.50 us"),
            (12_140_000_000, "12.1 s"),
            (119_000_000_000, "119 s"),
            (120_000_000_000, "2.00 min"),
            (7_200_000_000_000, "2.00 h"),
            (u64::MAX, "5,124,096 h"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(vtime(7_210_000_001), "7.210000001");
    }

    #[test]
    fn shares_and_rates() {
        assert_eq!([0, 1, 31_400, 1_000_000].map(percent), ["0.0 %", "< 0.1 %", "3.1 %", "100.0 %"]);
        assert_eq!([0.0012, 0.5, 12.3, 2e7].map(rate), ["1.2e-3", "0.50", "12", "2.00e7"]);
    }
}
