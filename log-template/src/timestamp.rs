//! Times and dates. A function returns `None` if the time or date is not at the place where it looks.

use super::{at, digits, is_word};

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Returns the length of the date, the time of day, or both at the start of `bytes`.
pub(super) fn stamp(bytes: &[u8]) -> Option<usize> {
    let date = date(bytes).or_else(|| written_date(bytes));
    let length = match date {
        Some(length) => match at(bytes, length) {
            b'T' | b' ' => clock(bytes, length + 1).map_or(length, |clock| length + 1 + clock),
            _ => length,
        },
        None => clock(bytes, 0)?,
    };
    // A MAC address starts like a time of day.
    let goes_on = at(bytes, length) == b':' && is_word(at(bytes, length + 1));
    (!goes_on && !is_word(at(bytes, length))).then_some(length)
}

/// Returns the length of a time such as `Jan  1 00:00:00`.
pub(super) fn month_first(bytes: &[u8]) -> Option<usize> {
    let month = bytes.get(..3)?;
    let day = digits(bytes, 4);
    if !MONTHS.contains(&month) || at(bytes, 3) != b' ' || !(1..=2).contains(&day) {
        return None;
    }
    let clock_at = 4 + day + 1;
    (at(bytes, clock_at - 1) == b' ').then_some(clock_at + clock(bytes, clock_at)?)
}

/// Returns the length of `2026-01-01` or `2026/01/01`.
fn date(bytes: &[u8]) -> Option<usize> {
    let separator = at(bytes, 4);
    let fits = digits(bytes, 0) == 4
        && (separator == b'-' || separator == b'/')
        && digits(bytes, 5) == 2
        && at(bytes, 7) == separator
        && digits(bytes, 8) == 2;
    fits.then_some(10)
}

/// Returns the length of `01 Jan 2026`.
fn written_date(bytes: &[u8]) -> Option<usize> {
    let fits = digits(bytes, 0) == 2
        && at(bytes, 2) == b' '
        && MONTHS.contains(&bytes.get(3..6)?)
        && at(bytes, 6) == b' '
        && digits(bytes, 7) == 4;
    fits.then_some(11)
}

/// Returns the length of `00:00:00`, with an optional fraction and zone.
fn clock(bytes: &[u8], from: usize) -> Option<usize> {
    let pairs = [0, 3, 6].iter().all(|pair| digits(bytes, from + pair) == 2);
    if !pairs || at(bytes, from + 2) != b':' || at(bytes, from + 5) != b':' {
        return None;
    }
    let mut length = 8;
    if matches!(at(bytes, from + length), b'.' | b',') {
        let fraction = digits(bytes, from + length + 1);
        length += if fraction > 0 { 1 + fraction } else { 0 };
    }
    Some(length + zone(bytes, from + length))
}

/// Returns the length of the zone `Z`, `+0000`, `+00:00`, ` UTC` or ` GMT`, or 0.
fn zone(bytes: &[u8], from: usize) -> usize {
    let length = match at(bytes, from) {
        b'Z' => 1,
        b'+' | b'-' if digits(bytes, from + 1) == 4 => 5,
        b'+' | b'-' if colon_offset(bytes, from + 1) => 6,
        b' ' if matches!(bytes.get(from + 1..from + 4), Some(b"UTC" | b"GMT")) => 4,
        _ => 0,
    };
    if is_word(at(bytes, from + length)) { 0 } else { length }
}

/// Returns true if `00:00` starts at `from`.
fn colon_offset(bytes: &[u8], from: usize) -> bool {
    digits(bytes, from) == 2 && at(bytes, from + 2) == b':' && digits(bytes, from + 3) == 2
}
