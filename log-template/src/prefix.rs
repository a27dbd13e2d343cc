//! Prefixes that logging libraries print before a message: times, process ids, levels, tags. A function that returns a
//! length returns `None` if its kind of prefix is not at the place where it looks.

use super::{at, digits, run, timestamp};

/// Maximum length of a tag, in bytes. A tag is the name of a program, usually followed by its process id.
const TAG_BYTES_MAX: usize = 64;

/// Severity of a line. All levels below a warning are `Plain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Plain,
    Warn,
    Error,
    Fatal,
}

impl Severity {
    /// Returns the text with which the template of a line of this severity begins. A template is a line with
    /// placeholders in place of its varying parts.
    pub(super) fn label(self) -> &'static str {
        match self {
            Severity::Plain => "",
            Severity::Warn => "warn:",
            Severity::Error => "error:",
            Severity::Fatal => "fatal:",
        }
    }

    /// Returns the level that a word names. `None` if the word is not a level.
    pub(super) fn of(word: &str) -> Option<Severity> {
        Some(match word.to_ascii_lowercase().as_str() {
            "trace" | "debug" | "verbose" | "info" | "information" | "notice" | "log" => Severity::Plain,
            "warn" | "warning" => Severity::Warn,
            "err" | "error" => Severity::Error,
            "fatal" | "crit" | "critical" | "panic" | "dpanic" | "alert" | "emerg" => Severity::Fatal,
            _ => return None,
        })
    }

    /// Returns the level that a letter stands for in lines of etcd and klog. `None` for other letters.
    fn of_letter(letter: u8) -> Option<Severity> {
        Some(match letter {
            b'D' | b'I' | b'N' => Severity::Plain,
            b'W' => Severity::Warn,
            b'E' => Severity::Error,
            b'C' | b'F' => Severity::Fatal,
            _ => return None,
        })
    }
}

/// Line without its prefixes.
pub(super) struct Stripped<'t> {
    pub(super) severity: Severity,
    pub(super) rest: &'t str,
}

/// Removes all prefixes from a line.
pub(super) fn strip(text: &str) -> Stripped<'_> {
    let mut stripped = Stripped { severity: Severity::Plain, rest: text };
    let mut stamped = false;
    while let Some((length, severity)) = one(stripped.rest, stamped) {
        let Some(rest) = stripped.rest.get(length..) else { break };
        stripped.rest = rest.trim_start();
        stripped.severity = stripped.severity.max(severity.unwrap_or(Severity::Plain));
        // A level does not set `stamped`. So a letter or sign directly after a level is part of the message, and not a
        // second level.
        stamped |= severity.is_none();
    }
    stripped
}

/// Returns the length of the first prefix, and its severity if the prefix is a level. Some short levels look like
/// words. They are recognised only after another prefix such as a time (`stamped`).
fn one(text: &str, stamped: bool) -> Option<(usize, Option<Severity>)> {
    let bytes = text.as_bytes();
    let unlevelled = |length| (length, None);
    let first = at(bytes, 0);
    if first.is_ascii_digit() {
        return redis_role(bytes).or_else(|| timestamp::stamp(bytes)).map(unlevelled);
    }
    if first == b'<' {
        let priority = digits(bytes, 1);
        return (priority > 0 && at(bytes, priority + 1) == b'>').then_some((priority + 2, None));
    }
    if first == b'[' {
        return bracket_number(bytes).map(unlevelled).or_else(|| bracket_level(text));
    }
    if stamped && let Some(found) = after_time(text) {
        return Some(found);
    }
    syslog(bytes)
        .or_else(|| tag(bytes, 0, true))
        .map(unlevelled)
        .or_else(|| klog(bytes))
        .or_else(|| level_colon(text))
}

/// Returns the length of Redis's process id and role, e.g. `12:M `.
fn redis_role(bytes: &[u8]) -> Option<usize> {
    let pid = digits(bytes, 0);
    let fits = at(bytes, pid) == b':'
        && matches!(at(bytes, pid + 1), b'M' | b'S' | b'C' | b'X')
        && at(bytes, pid + 2) == b' ';
    fits.then_some(pid + 3)
}

/// Returns the length of `[123]`, or of the kernel's `[   12.345678]` and `[ T1]`.
fn bracket_number(bytes: &[u8]) -> Option<usize> {
    let mut index = 1 + run(bytes, 1, |byte| byte == b' ');
    if matches!(at(bytes, index), b'T' | b'C') {
        index += 1;
    }
    let whole = digits(bytes, index);
    index += whole;
    if at(bytes, index) == b'.' {
        index += 1 + digits(bytes, index + 1);
    }
    (whole > 0 && at(bytes, index) == b']').then_some(index + 1)
}

/// Returns the length and severity of a level in brackets, e.g. `[warning]`.
fn bracket_level(text: &str) -> Option<(usize, Option<Severity>)> {
    let letters = run(text.as_bytes(), 1, |byte| byte.is_ascii_alphabetic());
    let severity = Severity::of(text.get(1..=letters)?)?;
    (at(text.as_bytes(), letters + 1) == b']').then_some((letters + 2, Some(severity)))
}

/// Returns the length of a syslog prefix: `Jan  1 00:00:00 host tag[12]:`.
fn syslog(bytes: &[u8]) -> Option<usize> {
    let time = timestamp::month_first(bytes)?;
    if at(bytes, time) != b' ' {
        return Some(time);
    }
    let host = run(bytes, time + 1, |byte| byte != b' ');
    let tagged = tag(bytes, time + 1 + host + 1, false);
    Some(tagged.unwrap_or(time))
}

/// Returns the end of the tag `name[12]:`. If `numbered` is false, the tag may also be `name:`.
fn tag(bytes: &[u8], from: usize, numbered: bool) -> Option<usize> {
    let in_tag = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./()@".contains(&byte);
    let name = run(bytes.get(..from + TAG_BYTES_MAX).unwrap_or(bytes), from, in_tag);
    if name == 0 {
        return None;
    }
    let mut end = from + name;
    if at(bytes, end) == b'[' {
        let pid = digits(bytes, end + 1);
        if pid == 0 || at(bytes, end + 1 + pid) != b']' {
            return None;
        }
        end += pid + 2;
    } else if numbered {
        return None;
    }
    (at(bytes, end) == b':').then_some(end + 1)
}

/// Returns the length and severity of a klog prefix: `I0102 15:04:05.000000   12 file.go:34]`.
fn klog(bytes: &[u8]) -> Option<(usize, Option<Severity>)> {
    let severity = Severity::of_letter(at(bytes, 0))?;
    if digits(bytes, 1) != 4 || at(bytes, 5) != b' ' {
        return None;
    }
    let clock = 6 + timestamp::stamp(bytes.get(6..)?)?;
    let place = run(bytes.get(..clock + TAG_BYTES_MAX).unwrap_or(bytes), clock, |byte| byte != b']');
    (at(bytes, clock + place) == b']').then_some((clock + place + 1, Some(severity)))
}

/// Returns the length and severity of a level after a time: `* ` of Redis, `I | ` of etcd, or `WARN ` of many programs.
fn after_time(text: &str) -> Option<(usize, Option<Severity>)> {
    let bytes = text.as_bytes();
    if at(bytes, 1) == b' ' {
        match at(bytes, 0) {
            b'*' | b'-' | b'.' => return Some((2, Some(Severity::Plain))),
            b'#' => return Some((2, Some(Severity::Warn))),
            letter if bytes.get(1..4) == Some(b" | ") => {
                return Some((4, Some(Severity::of_letter(letter)?)));
            }
            _ => {}
        }
    }
    let letters = run(bytes, 0, |byte| byte.is_ascii_uppercase());
    let severity = Severity::of(text.get(..letters)?)?;
    matches!(at(bytes, letters), b' ' | 0).then_some((letters, Some(severity)))
}

/// Returns the length and severity of a level such as `ERROR:`. The word is not a level if it is a URL scheme, part of
/// a module path, or followed by the placeholder of a varying part, as in `ERROR:<n>`.
fn level_colon(text: &str) -> Option<(usize, Option<Severity>)> {
    let bytes = text.as_bytes();
    let letters = run(bytes, 0, |byte| byte.is_ascii_alphabetic());
    let severity = Severity::of(text.get(..letters)?)?;
    let colon = at(bytes, letters) == b':' && !matches!(at(bytes, letters + 1), b':' | b'/' | b'<');
    colon.then_some((letters + 1, Some(severity)))
}
