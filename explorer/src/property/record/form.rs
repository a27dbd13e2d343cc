//! Forms of records: how they begin, which lines belong to them, and where their causes are.

use std::sync::LazyLock;

use regex::Regex;

/// The cause of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Cause {
    /// Description, from the record's lines. Numbers and texts in it may vary.
    pub(in super::super) what: String,
    /// Place in the program, if the description may be that of several places. It does not vary.
    pub(in super::super) place: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Traceback of Python: frames, then the exception; then perhaps the traceback of an exception while it was handled.
    Python,
    /// Exception of Java or error of JavaScript, then its frames.
    Exception,
    /// Place of an error of node.js that nothing caught, then the source line and the error.
    NodeSource,
    /// Panic or fatal error of Go, then the stacks of goroutines.
    Go,
    /// Panic of Rust, then its message and perhaps a backtrace.
    Rust,
    /// Report of ASan, LSan, MSan, TSan or Go's race detector.
    Sanitizer,
    /// Report of UBSan, then perhaps a stack.
    Undefined,
}

/// A record under way: its form, and the lines with its cause.
#[derive(Debug)]
pub(super) struct Form {
    kind: Kind,
    head: String,
    /// The line that names the cause: Python's exception, Java's last `Caused by`, Rust's message, a sanitizer's summary.
    named: Option<String>,
    /// Top frame of the stack that is looked at.
    frame: Option<String>,
    /// True if the next line belongs to the record whatever it is.
    wants_line: bool,
    /// True if a line of Python has said that another traceback follows, or if its frames have begun.
    is_under_way: bool,
    is_whole: bool,
}

/// Class of an exception: a name that ends with one of these words, perhaps with packages before it, and its message.
static EXCEPTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[ \t(\[])((?:[A-Za-z_$][\w$]*\.)*(?:[A-Z][\w$]*)?(?:Exception|Error|Throwable))(?: \[\w+\])?(?::|$)").ok()
});
/// Place in a source of JavaScript, alone on its line.
static SOURCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:node:\S+|\S+\.(?:js|cjs|mjs|ts)):\d+$").ok());
/// Head of a panic of Rust.
static PANIC: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s*thread '.*' .*panicked at ").ok());
/// Head of a report of UBSan.
static UNDEFINED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r":\d+:\d+: runtime error: ").ok());

fn fits(regex: &LazyLock<Option<Regex>>, line: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(line))
}

const TRACEBACK: &str = "Traceback (most recent call last):";
/// Lines of Python between the tracebacks of one record.
const CHAINED: [&str; 2] =
    ["During handling of the above exception", "The above exception was the direct cause"];
/// First words of the reports of sanitizers, behind the number of the process.
const SANITIZERS: [&str; 8] = [
    "ERROR: AddressSanitizer",
    "ERROR: HWAddressSanitizer",
    "ERROR: LeakSanitizer",
    "ERROR: MemorySanitizer",
    "WARNING: MemorySanitizer",
    "ERROR: ThreadSanitizer",
    "WARNING: ThreadSanitizer",
    "WARNING: DATA RACE",
];
/// Line around the reports of ThreadSanitizer and of Go's race detector.
const RULE: &str = "==================";

impl Form {
    /// Returns the form of a record that begins with this line.
    pub(super) fn of(line: &str) -> Option<Form> {
        let kind = if line.contains(TRACEBACK) {
            Kind::Python
        } else if SANITIZERS.iter().any(|start| line.contains(start)) {
            Kind::Sanitizer
        } else if line.starts_with("panic: ") || line.starts_with("fatal error: ") {
            Kind::Go
        } else if fits(&PANIC, line) {
            Kind::Rust
        } else if fits(&UNDEFINED, line) {
            Kind::Undefined
        } else if fits(&SOURCE, line) {
            Kind::NodeSource
        } else if fits(&EXCEPTION, line) {
            Kind::Exception
        } else {
            return None;
        };
        let wants_line = match kind {
            Kind::Rust => line.ends_with(':'),
            kind => kind == Kind::NodeSource,
        };
        Some(Form {
            kind,
            head: line.to_owned(),
            named: None,
            frame: None,
            wants_line,
            is_under_way: false,
            is_whole: false,
        })
    }

    /// Returns true if the last line was a mark of the record's end.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns true if a line belongs to the record, and learns from it.
    pub(super) fn takes(&mut self, line: &str) -> bool {
        let was_wanted = std::mem::take(&mut self.wants_line);
        let is_indented = line.starts_with([' ', '\t']);
        let trimmed = line.trim();
        match self.kind {
            Kind::Python => self.python(line, is_indented, trimmed),
            Kind::Exception => self.exception(is_indented, trimmed),
            Kind::NodeSource => {
                if fits(&EXCEPTION, line) && !is_indented || trimmed.starts_with("Uncaught ") {
                    self.named.get_or_insert_with(|| trimmed.to_owned());
                    return true;
                }
                self.is_whole = line.starts_with("Node.js v");
                self.frame_at(trimmed);
                was_wanted || is_indented || trimmed.is_empty() || trimmed == "}" || self.is_whole
            }
            Kind::Go => self.go(line, trimmed),
            Kind::Rust => {
                if was_wanted {
                    self.named = Some(trimmed.to_owned());
                }
                let is_note = ["note: ", "stack backtrace:"].iter().any(|start| trimmed.starts_with(start));
                was_wanted || is_indented || is_note
            }
            Kind::Sanitizer => self.sanitizer(line, is_indented, trimmed),
            Kind::Undefined => {
                self.is_whole = line.starts_with("SUMMARY: ");
                is_indented || self.is_whole
            }
        }
    }

    fn python(&mut self, line: &str, is_indented: bool, trimmed: &str) -> bool {
        let in_frames = self.named.is_none();
        if line.contains(TRACEBACK) {
            let is_chained = !in_frames && self.is_under_way;
            if is_chained {
                (self.named, self.frame, self.is_under_way) = (None, None, false);
            }
            return is_chained;
        }
        // Tracebacks of groups of exceptions have rules before their lines.
        if is_indented || trimmed.starts_with(['|', '+']) {
            self.is_under_way |= in_frames;
            if in_frames && trimmed.trim_start_matches(['|', ' ']).starts_with("File \"") {
                // `File "x.py", line 3, in f`
                self.frame = trimmed.rsplit_once(", in ").map(|(_, function)| function.to_owned());
            }
            return in_frames;
        }
        if in_frames {
            // A traceback has frames; without any, the head was another line.
            if self.is_under_way && !trimmed.is_empty() {
                self.named = Some(trimmed.to_owned());
            }
            return std::mem::take(&mut self.is_under_way);
        }
        if CHAINED.iter().any(|start| line.starts_with(start)) {
            self.is_under_way = true;
            return true;
        }
        trimmed.is_empty()
    }

    fn exception(&mut self, is_indented: bool, trimmed: &str) -> bool {
        if trimmed.starts_with("Caused by: ") {
            (self.named, self.frame) = (Some(trimmed.to_owned()), None);
            return true;
        }
        self.is_whole = trimmed == "}" && !is_indented;
        self.frame_at(trimmed);
        is_indented && !trimmed.is_empty() || self.is_whole
    }

    fn go(&mut self, line: &str, trimmed: &str) -> bool {
        self.is_whole = line.starts_with("exit status ");
        let is_call = line.ends_with(')') && line.contains('(') && !line.starts_with('(');
        let is_of_runtime = line.starts_with("panic(") || line.starts_with("runtime.");
        if is_call && !is_of_runtime && self.frame.is_none() {
            self.frame = line.rsplit_once('(').map(|(function, _)| function.to_owned());
        }
        let starts = ["goroutine ", "[signal ", "created by ", "runtime", "panic: ", "\t", " ", "main."];
        let is_register = line.split_once(' ').is_some_and(|(name, rest)| {
            name.len() <= 6
                && name.bytes().all(|b| b.is_ascii_alphanumeric())
                && rest.trim().starts_with("0x")
        });
        let is_start = starts.iter().any(|start| line.starts_with(start));
        trimmed.is_empty() || is_start || is_call || is_register || self.is_whole
    }

    fn sanitizer(&mut self, line: &str, is_indented: bool, trimmed: &str) -> bool {
        let had_summary = self.named.is_some();
        if line.starts_with("SUMMARY: ") {
            self.named = Some(trimmed.to_owned());
            // AddressSanitizer prints its memory behind the summary, ThreadSanitizer a rule.
            return true;
        }
        let is_race = self.head.contains("DATA RACE");
        if self.frame.is_none() && is_indented {
            if is_race && trimmed.ends_with(')') {
                self.frame = trimmed.rsplit_once('(').map(|(function, _)| function.to_owned());
            }
            // The first frames of leaks are those of the allocator.
            let function =
                trimmed.split_once(" in ").filter(|_| trimmed.starts_with('#')).map(|(_, rest)| rest);
            let is_allocator = |name: &str| {
                ["malloc", "calloc", "realloc", "operator new", "__interceptor_", "__libc_"]
                    .iter()
                    .any(|own| name.starts_with(own))
            };
            if let Some(function) = function.filter(|name| !is_allocator(name)) {
                self.frame = Some(function.to_owned());
            }
        }
        self.is_whole = line.contains("==ABORTING") || line.starts_with(RULE);
        let is_memory = ["Shadow", "=>", "==", "  "].iter().any(|start| line.starts_with(start));
        !had_summary || is_memory
    }

    /// Keeps the first frame of a stack of Java or JavaScript, without the line's number.
    fn frame_at(&mut self, trimmed: &str) {
        if let (None, Some(frame)) = (&self.frame, trimmed.strip_prefix("at ")) {
            self.frame = Some(
                frame.split_once(" (").or_else(|| frame.split_once('(')).map_or(frame, |(f, _)| f).to_owned(),
            );
        }
    }

    /// Returns the cause; `None` if the record's lines do not name one.
    pub(super) fn cause(&self) -> Option<Cause> {
        let of = |what: &str, place: Option<&String>| Cause { what: what.to_owned(), place: place.cloned() };
        // An exception without a message says little without its place.
        let exception = |line: &str| of(line, self.frame.as_ref().filter(|_| !line.contains(": ")));
        let named = self.named.as_deref();
        Some(match self.kind {
            Kind::Python | Kind::NodeSource => exception(named?),
            Kind::Exception => match named {
                Some(named) => {
                    let Cause { what, place } = exception(named.trim_start_matches("Caused by: "));
                    Cause { what: format!("{}; caused by {what}", self.head.trim()), place }
                }
                None => exception(self.head.trim()),
            },
            Kind::Go => of(self.head.trim(), self.frame.as_ref()),
            Kind::Rust => {
                let (head, place) = self.head.rsplit_once(" panicked at ")?;
                match named {
                    Some(message) => of(
                        &format!("{} panicked: {message}", head.trim()),
                        Some(&place.trim_end_matches(':').to_owned()),
                    ),
                    None => of(self.head.trim(), None),
                }
            }
            Kind::Sanitizer => match named {
                Some(summary) if summary.contains(" in ") && !summary.contains(" leaked in ") => {
                    of(summary, None)
                }
                Some(summary) => of(summary, self.frame.as_ref()),
                None => of(self.head.trim(), self.frame.as_ref()),
            },
            Kind::Undefined => of(self.head.trim(), None),
        })
    }
}
