//! Varying parts of a line that start with a letter or a digit: times, addresses, numbers with units, ids. Each
//! function looks at the start of its text, and returns `None` if the part is not there.
//!
//! Each varying part except web addresses contains a digit. A template is a line in which marks such as `<n>` replace
//! the varying parts. It has neither digits nor web addresses, so it has no varying parts.

use super::{at, digits, is_word, run, timestamp};

/// Units of durations.
const DURATIONS: [&[u8]; 13] =
    [b"ns", b"us", b"ms", b"s", b"m", b"h", b"d", b"sec", b"secs", b"min", b"mins", b"usec", b"msec"];
/// Units of sizes.
const SIZES: [&[u8]; 17] = [
    b"B", b"b", b"K", b"k", b"KB", b"kB", b"kb", b"KiB", b"M", b"MB", b"MiB", b"G", b"GB", b"GiB", b"T",
    b"TB", b"TiB",
];
/// Minimum length of a word of hexadecimal digits that is taken for an id, in bytes.
const ID_BYTES_MIN: usize = 5;
/// Minimum number of separate runs of digits in a word that is taken for an id.
const ID_RUNS_MIN: usize = 3;
/// Maximum length of an IPv6 address, in bytes.
const ADDRESS_BYTES_MAX: usize = 39;
/// Maximum number of dot-separated groups in a number, and of parts in a duration. If a text turns out to be neither a
/// number nor a duration, it is scanned again from its second group on. Without a bound, this takes quadratic time.
const GROUPS_MAX: usize = 8;

/// Returns the length of the varying part at the start of `bytes`, and the mark that replaces it, such as `<n>`. `None`
/// if there is no varying part. The first byte of `bytes` must be the first byte of a word.
pub(super) fn lexeme(bytes: &[u8]) -> Option<(usize, &'static str)> {
    if at(bytes, 0).is_ascii_digit()
        && let Some(length) = timestamp::stamp(bytes)
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

/// Returns the length of a UUID: 8, 4, 4, 4 and 12 hexadecimal digits.
fn uuid(bytes: &[u8]) -> Option<usize> {
    let text = bytes.get(..36)?;
    let fits = text.iter().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (fits && has_digit(text) && !is_word(at(bytes, 36))).then_some(36)
}

/// Returns the length of an IPv6 address or a MAC address.
pub(super) fn colon_address(bytes: &[u8]) -> Option<usize> {
    let near = bytes.get(..ADDRESS_BYTES_MAX + 2).unwrap_or(bytes);
    let length = run(near, 0, |byte| byte.is_ascii_hexdigit() || byte == b':');
    // A single colon at the end belongs to the sentence, but two colons belong to the address.
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

/// Returns the length and the mark of an IPv4 address, a duration, a size, or a plain number.
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
    // For example, `1m3.5s` is a single duration.
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

/// Returns the length of an id: `0x…`, a long word of hexadecimal digits, or a word with several runs of digits.
fn id(bytes: &[u8]) -> Option<usize> {
    let length = run(bytes, 0, |byte| byte.is_ascii() && is_word(byte));
    let word = bytes.get(..length).filter(|word| has_digit(word))?;
    let prefixed = word.strip_prefix(b"0x").is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    let long = length >= ID_BYTES_MIN && word.iter().all(u8::is_ascii_hexdigit);
    let runs = word.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty()).count();
    (prefixed || long || runs >= ID_RUNS_MIN).then_some(length)
}

/// Returns the length of a web address such as `http://…`.
fn page(bytes: &[u8]) -> Option<usize> {
    let scheme = run(bytes, 0, |byte| byte.is_ascii_alphabetic());
    if scheme == 0
        || bytes.get(scheme..scheme + 3) != Some(b"://")
        || !at(bytes, scheme + 3).is_ascii_alphanumeric()
    {
        return None;
    }
    // A backslash ends the address, because it may escape a quote in a string and must be kept.
    let in_page = |byte: u8| byte.is_ascii_graphic() && !b"<>\"'()[]{},\\".contains(&byte);
    Some(scheme + 3 + run(bytes, scheme + 3, in_page))
}
