//! Formatting of durations, sizes and vtimes.

use std::fmt;

/// A vtime in nanoseconds. It is shown as `seconds.nanoseconds`. Spaces pad the seconds to four characters, so columns
/// stay aligned up to 9,999 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vtime(pub u64);

impl fmt::Display for Vtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, ns) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        f.pad(&format!("{s:>4}.{ns:09}"))
    }
}

/// Formats a size in the largest binary unit in which it is at least one: `812.0 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// Formats a span of vtime or host time with at most two decimals: `20 s`, `1.25 s`, `350 ms`.
pub fn show_duration_ns(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => (ns as f64, "ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let text = format!("{value:.2}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown() {
        assert_eq!(Vtime(1_234_000_005).to_string(), "   1.234000005");
        assert_eq!(show_bytes(512), "512 B");
        assert_eq!(show_bytes(3 << 29), "1.5 GiB");
        assert_eq!(show_duration_ns(20_000_000_000), "20 s");
        assert_eq!(show_duration_ns(1_250_000_000), "1.25 s");
    }
}
