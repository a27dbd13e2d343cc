//! Forms of records. A record is a message of several lines that a program prints about one failure, e.g. a stack
//! trace. The form tells how a record begins, which lines belong to it, and which lines name the cause.

use std::sync::LazyLock;

use regex::Regex;

/// Cause of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Cause {
    /// Description from the record's lines. It may contain numbers and texts that vary each time the cause occurs.
    pub(in super::super) what: String,
    /// Function or source position, which is the same each time the cause occurs. `None` if the description alone
    /// identifies the cause.
    pub(in super::super) place: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Traceback of Python: frames, then the exception. The traceback of a second exception may follow, which was
    /// raised because of the first exception or while it was handled.
    Python,
    /// Exception of Java or error of JavaScript, followed by frames.
    Exception,
    /// Uncaught error of node.js: the source position, the source line, then the error.
    NodeSource,
    /// Panic or fatal error of Go, followed by the stacks of goroutines.
    Go,
    /// Panic of Rust, followed by its message and possibly a backtrace.
    Rust,
    /// Report of ASan, LSan, MSan, TSan or Go's race detector.
    Sanitizer,
    /// Report of UBSan, possibly followed by a stack.
    Undefined,
}

/// State of an open record: its form, and the lines that name its cause.
#[derive(Debug)]
pub(super) struct Form {
    kind: Kind,
    head: String,
    /// Line that names the cause: Python's exception, Java's last `Caused by`, Rust's message, or a sanitizer's
    /// summary.
    named: Option<String>,
    /// Top frame of the stack that is being read.
    frame: Option<String>,
    /// True if the next line belongs to the record, whatever the line contains.
    wants_line: bool,
    /// True if frames of a Python traceback have begun, or if a line announced another traceback.
    is_under_way: bool,
    is_whole: bool,
}

/// Class of an exception: a name that ends with one of these words. Packages may precede the name, and a message may
/// follow.
static EXCEPTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[ \t(\[])((?:[A-Za-z_$][\w$]*\.)*(?:[A-Z][\w$]*)?(?:Exception|Error|Throwable))(?: \[\w+\])?(?::|$)").ok()
});
/// Position in a source file of JavaScript, alone on its line.
static SOURCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:node:\S+|\S+\.(?:js|cjs|mjs|ts)):\d+$").ok());
/// First line of a Rust panic.
static PANIC: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s*thread '.*' .*panicked at ").ok());
/// First line of a UBSan report.
static UNDEFINED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r":\d+:\d+: runtime error: ").ok());

fn fits(regex: &LazyLock<Option<Regex>>, line: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(line))
}

const TRACEBACK: &str = "Traceback (most recent call last):";
/// Lines between the tracebacks of one Python record.
const CHAINED: [&str; 2] =
    ["During handling of the above exception", "The above exception was the direct cause"];
/// First words of sanitizers' reports, after the process number.
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
/// Separator line around the reports of ThreadSanitizer and of Go's race detector.
const RULE: &str = "==================";

impl Form {
    /// Returns the form of the record that begins with this line, or `None` if no record does.
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

    /// Returns true if the last line marked the end of the record.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns true if a line belongs to the record. Remembers the line if it names the cause.
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
        // Tracebacks of exception groups have a `|` or `+` before their lines.
        if is_indented || trimmed.starts_with(['|', '+']) {
            self.is_under_way |= in_frames;
            if in_frames && trimmed.trim_start_matches(['|', ' ']).starts_with("File \"") {
                // Example: `File "x.py", line 3, in f`
                self.frame = trimmed.rsplit_once(", in ").map(|(_, function)| function.to_owned());
            }
            return in_frames;
        }
        if in_frames {
            // A real traceback has frames. Without frames, the first line was not the beginning of a record.
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
            // AddressSanitizer prints a memory dump after the summary, and ThreadSanitizer prints a separator line.
            return true;
        }
        let is_race = self.head.contains("DATA RACE");
        if self.frame.is_none() && is_indented {
            if is_race && trimmed.ends_with(')') {
                self.frame = trimmed.rsplit_once('(').map(|(function, _)| function.to_owned());
            }
            // The first frames of a leak's stack belong to the allocator, so they are skipped.
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

    /// Remembers the first frame of a Java or JavaScript stack, without the line number.
    fn frame_at(&mut self, trimmed: &str) {
        if let (None, Some(frame)) = (&self.frame, trimmed.strip_prefix("at ")) {
            self.frame = Some(
                frame.split_once(" (").or_else(|| frame.split_once('(')).map_or(frame, |(f, _)| f).to_owned(),
            );
        }
    }

    /// Returns the cause, or `None` if the record's lines do not name one.
    pub(super) fn cause(&self) -> Option<Cause> {
        let of = |what: &str, place: Option<&String>| Cause { what: what.to_owned(), place: place.cloned() };
        // An exception without a message says little, so its function is added.
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
