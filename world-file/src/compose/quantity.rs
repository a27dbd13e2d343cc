//! Parsers for durations and sizes in the notation of compose files.

/// Parses a duration such as `90s`, `1m30s` or `1.5h`. Returns nanoseconds.
pub(super) fn duration_ns(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let unit_ns: u64 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60 * 1_000_000_000,
            "h" => 3_600 * 1_000_000_000,
            _ => return None,
        };
        total = total.checked_add(decimal(number, unit_ns)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

/// Parses a size such as `1024`, `512m`, `1.5gb` or `64MiB`. Returns bytes. A `k` is 1024 bytes.
pub(super) fn size_bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let unit = unit.strip_suffix('i').unwrap_or(unit);
    let bytes: u64 = match unit {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    decimal(number, bytes)
}

/// Multiplies a decimal number by `unit` and rounds the result down.
fn decimal(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 9 || fraction.contains('.') {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / scale;
    whole.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::{duration_ns, size_bytes};

    #[test]
    fn durations() {
        for (text, ns) in [
            ("0", 0),
            ("90s", 90_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1.5s", 1_500_000_000),
            ("10ms", 10_000_000),
            ("2us", 2_000),
        ] {
            assert_eq!(duration_ns(text), Some(ns), "{text}");
        }
        for text in ["", "5", "s", "5 s", "-1s", "1d", "1..5s", "99999999999999999999s", "9999999999h"] {
            assert_eq!(duration_ns(text), None, "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("1024", 1024),
            ("512m", 512 << 20),
            ("512M", 512 << 20),
            ("64mb", 64 << 20),
            ("64MiB", 64 << 20),
            ("1.5g", 3 << 29),
            ("10b", 10),
        ] {
            assert_eq!(size_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "m", "-1", "1x", "1.2.3m", "99999999999t"] {
            assert_eq!(size_bytes(text), None, "{text}");
        }
    }
}
