//! Things that vary and start with a letter or a digit: times, addresses, numbers with units, ids.
//!
//! But for the address of a page, each has a digit: so no template, which has none, holds one.

use super::{at, digits, is_word, run, stamp};

const DURATIONS: [&[u8]; 13] =
    [b"ns", b"us", b"ms", b"s", b"m", b"h", b"d", b"sec", b"secs", b"min", b"mins", b"usec", b"msec"];
const SIZES: [&[u8]; 17] = [
    b"B", b"b", b"K", b"k", b"KB", b"kB", b"kb", b"KiB", b"M", b"MB", b"MiB", b"G", b"GB", b"GiB", b"T",
    b"TB", b"TiB",
];
/// The least length of a word of hexadecimal digits that is an id.
const ID_BYTES_MIN: usize = 5;
/// The least number of separate runs of digits that make a word an id.
const ID_RUNS_MIN: usize = 3;
/// The most bytes of an address of IPv6.
const ADDRESS_BYTES_MAX: usize = 39;
/// The most groups of a number, with dots between them, and parts of a duration. What looks like one is looked at again from
/// its second group on if it is none: without a bound that would take quadratic time.
const GROUPS_MAX: usize = 8;

/// The thing at the start of these bytes, which start a word: its length and its mark.
pub(super) fn lexeme(bytes: &[u8]) -> Option<(usize, &'static str)> {
    if at(bytes, 0).is_ascii_digit()
        && let Some(length) = stamp::stamp(bytes)
    {
        return Some((length, "<time>"));
    }
    uuid(bytes)
        .map(|length| (length, "<id>"))
        .or_else(|| colon_address(bytes).map(|length| (length, "<addr>")))
        .or_else(|| number(bytes))
        .or_else(|| id(bytes).map(|length| (length, "<id>")))
        .or_else(|| page(bytes).map(|length| (length, "<path>")))
}

fn has_digit(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit)
}

/// Eight, four, four, four and twelve hexadecimal digits.
fn uuid(bytes: &[u8]) -> Option<usize> {
    let text = bytes.get(..36)?;
    let fits = text.iter().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (fits && has_digit(text) && !is_word(at(bytes, 36))).then_some(36)
}

/// An address of IPv6, or of a network card.
pub(super) fn colon_address(bytes: &[u8]) -> Option<usize> {
    let near = bytes.get(..ADDRESS_BYTES_MAX + 2).unwrap_or(bytes);
    let length = run(near, 0, |byte| byte.is_ascii_hexdigit() || byte == b':');
    // A colon at the end is the sentence's, unless it is the second of two.
    let length = match bytes.get(..length)? {
        [.., b':', b':'] => length,
        [.., b':'] => length - 1,
        _ => length,
    };
    let text = bytes.get(..length).filter(|text| text.len() <= ADDRESS_BYTES_MAX && has_digit(text))?;
    if is_word(at(bytes, length)) {
        return None;
    }
    let groups: Vec<&[u8]> = text.split(|byte| *byte == b':').collect();
    let shortened = text.windows(2).filter(|pair| pair == b"::").count();
    let card = groups.len() == 6 && groups.iter().all(|group| group.len() == 2);
    let in_full = groups.len() == 8 && shortened == 0;
    let address = groups.iter().all(|group| group.len() <= 4) && groups.len() >= 3;
    (card || address && (in_full || shortened == 1 && groups.len() <= 8)).then_some(length)
}

/// A number: an address of IPv4, a duration, a size, or just how many.
fn number(bytes: &[u8]) -> Option<(usize, &'static str)> {
    let mut end = digits(bytes, 0);
    if end == 0 {
        return None;
    }
    let mut groups = 1;
    while groups < GROUPS_MAX && at(bytes, end) == b'.' && digits(bytes, end + 1) > 0 {
        end += 1 + digits(bytes, end + 1);
        groups += 1;
    }
    if !is_word(at(bytes, end)) {
        let octet = |part: &[u8]| part.len() <= 3;
        let text = bytes.get(..end)?;
        if groups != 4 || !text.split(|byte| *byte == b'.').all(octet) {
            return Some((end, "<n>"));
        }
        let port = digits(bytes, end + 1);
        let with_port = at(bytes, end) == b':' && port > 0 && !is_word(at(bytes, end + 1 + port));
        return Some((if with_port { end + 1 + port } else { end }, "<addr>"));
    }
    let unit = |from: usize| {
        let micro = if bytes.get(from..).is_some_and(|b| b.starts_with("µs".as_bytes())) { 3 } else { 0 };
        let length = run(bytes, from, |byte| byte.is_ascii_alphabetic());
        if micro > 0 {
            (micro, b"us".as_slice())
        } else {
            (length, bytes.get(from..from + length).unwrap_or_default())
        }
    };
    let (length, name) = unit(end);
    if SIZES.contains(&name) && !is_word(at(bytes, end + length)) {
        return Some((end + length, "<n>"));
    }
    // `1m3.5s` is one duration.
    for _ in 0..GROUPS_MAX {
        let (length, name) = unit(end);
        if !DURATIONS.contains(&name) {
            return None;
        }
        end += length;
        let more = digits(bytes, end);
        if more == 0 {
            return (!is_word(at(bytes, end))).then_some((end, "<time>"));
        }
        end += more;
        if at(bytes, end) == b'.' {
            end += 1 + digits(bytes, end + 1);
        }
    }
    None
}

/// A word that is an id by its looks: `0x…`, many hexadecimal digits, or digits here and there.
fn id(bytes: &[u8]) -> Option<usize> {
    let length = run(bytes, 0, |byte| byte.is_ascii() && is_word(byte));
    let word = bytes.get(..length).filter(|word| has_digit(word))?;
    let prefixed = word.strip_prefix(b"0x").is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    let long = length >= ID_BYTES_MIN && word.iter().all(u8::is_ascii_hexdigit);
    let runs = word.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty()).count();
    (prefixed || long || runs >= ID_RUNS_MIN).then_some(length)
}

/// `http://…`.
fn page(bytes: &[u8]) -> Option<usize> {
    let scheme = run(bytes, 0, |byte| byte.is_ascii_alphabetic());
    if scheme == 0
        || bytes.get(scheme..scheme + 3) != Some(b"://")
        || !at(bytes, scheme + 3).is_ascii_alphanumeric()
    {
        return None;
    }
    // No backslash: it would be missing where it keeps a quote from ending a string.
    let in_page = |byte: u8| byte.is_ascii_graphic() && !b"<>\"'()[]{},\\".contains(&byte);
    Some(scheme + 3 + run(bytes, scheme + 3, in_page))
}
