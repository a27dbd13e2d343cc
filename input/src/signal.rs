//! Names and numbers of Linux's signals, in the notation of container images and compose files.

/// Number of SIGKILL.
pub const KILL: i32 = 9;
/// Number of SIGTERM.
pub const TERM: i32 = 15;
/// Highest signal with a name of its own. All higher signals are real-time signals.
pub const NAMED_MAX: i32 = 31;

/// Numbers of signals on x86-64 (signal(7)).
const SIGNALS: [(&str, i32); 33] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("IOT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", KILL),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", TERM),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", NAMED_MAX),
    ("RTMIN", RTMIN),
];

/// First real-time signal that programs can use. glibc reserves 32 and 33.
const RTMIN: i32 = 34;
/// Number of the highest signal.
const MAX: i32 = 64;
/// Maximum number of characters of an unknown name that an error message shows.
const SHOWN_CHARS_MAX: usize = 32;

/// Returns the number of a signal, given as `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3` or `SIGRTMAX-1`.
///
/// # Errors
/// Returns a one-line message if there is no signal with this name or number.
pub fn number(name: &str) -> Result<i32, String> {
    let number = || {
        if let Some(number) = digits(name) {
            return Some(number);
        }
        let short = name.strip_prefix("SIG").unwrap_or(name);
        if let Some(below) = short.strip_prefix("RTMAX") {
            let below = if below.is_empty() { 0 } else { digits(below.strip_prefix('-')?)? };
            return MAX.checked_sub(below).filter(|number| *number >= RTMIN);
        }
        if let Some(above) = short.strip_prefix("RTMIN+") {
            return RTMIN.checked_add(digits(above)?);
        }
        SIGNALS.iter().find(|(known, _)| *known == short).map(|(_, number)| *number)
    };
    number().filter(|number| (1..=MAX).contains(number)).ok_or_else(|| {
        format!("there is no signal {:?}", name.chars().take(SHOWN_CHARS_MAX).collect::<String>())
    })
}

/// Parses a number that consists only of digits. Returns `None` for any other text, e.g. a number with a sign.
fn digits(text: &str) -> Option<i32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn names_and_numbers() {
        for (name, wanted) in [
            ("SIGTERM", 15),
            ("TERM", 15),
            ("15", 15),
            ("SIGRTMIN+3", 37),
            ("RTMIN", 34),
            ("SIGRTMAX-1", 63),
            ("RTMAX", 64),
            ("64", 64),
        ] {
            assert_eq!(number(name), Ok(wanted), "{name}");
        }
        for name in [
            "",
            "SIG",
            "0",
            "65",
            "-1",
            "+1",
            "SIGRTMAX-31",
            "RTMAX--1",
            "RTMIN+31",
            "RTMIN+-3",
            "RTMIN+99999999999",
            "term",
            "RTMAX+1",
        ] {
            assert_eq!(number(name), Err(format!("there is no signal {name:?}")));
        }
        assert!(number(&"x".repeat(99)).unwrap_err().len() < 60);
    }
}
