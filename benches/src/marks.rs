//! Parser of marks: lines on a guest's console that say when a piece of work begins or ends.
//!
//! The marks are `everett-bench: begin NAME`, `everett-bench: end NAME` and `everett-bench: failed NAME`.
//! `everett-bench: result TEXT` gives the result of the work that has just ended, and `everett-bench: done` is the
//! last mark. Other console output is ignored.

/// Prefix of a mark.
const START: &str = "everett-bench: ";
/// Maximum length of a line, in bytes. Longer lines are truncated; marks are shorter.
const MARK_LINE_BYTES_MAX: usize = 256;

/// Piece of work, with readings of the clocks at its beginning and end.
#[derive(Debug, Clone, PartialEq)]
pub struct Span<T> {
    /// Name of the work.
    pub name: String,
    /// Reading at the beginning.
    pub begin: T,
    /// Reading at the end.
    pub end: T,
    /// Result of the work. Equal on every machine that runs the same guest.
    pub result: String,
}

impl<T> Span<T> {
    /// Applies `reading` to the readings of the clocks.
    pub fn map<U>(self, reading: impl Fn(T) -> U) -> Span<U> {
        Span { name: self.name, begin: reading(self.begin), end: reading(self.end), result: self.result }
    }
}

/// Parser of a console's output.
#[derive(Debug)]
pub struct Marks<T> {
    line: Vec<u8>,
    begun: Option<(String, T)>,
    spans: Vec<Span<T>>,
}

impl<T> Default for Marks<T> {
    fn default() -> Self {
        Marks { line: Vec::new(), begun: None, spans: Vec::new() }
    }
}

impl<T: Copy> Marks<T> {
    /// Reads output of the guest. `now` is the reading of the clocks when the output arrived. Returns true when the
    /// guest is done.
    ///
    /// # Errors
    /// Returns a one-line message if the guest reports failed work, ends work that it did not begin, or reports a
    /// result before any work has ended.
    pub fn hear(&mut self, said: &[u8], now: T) -> Result<bool, String> {
        for &byte in said {
            if byte != b'\n' {
                if self.line.len() < MARK_LINE_BYTES_MAX {
                    self.line.push(byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
            // Kernel output may precede the mark on its line.
            if let Some((_, mark)) = line.split_once(START)
                && self.mark(mark.trim_end(), now)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn mark(&mut self, mark: &str, now: T) -> Result<bool, String> {
        match mark.split_once(' ') {
            Some(("begin", name)) => self.begun = Some((name.to_owned(), now)),
            Some(("end", name)) => match self.begun.take() {
                Some((begun, begin)) if begun == name => {
                    self.spans.push(Span { name: begun, begin, end: now, result: String::new() });
                }
                _ => return Err(format!("the guest ended {name}, which it had not begun")),
            },
            Some(("result", text)) => match self.spans.last_mut() {
                Some(span) => text.clone_into(&mut span.result),
                None => return Err(String::from("the guest reports a result before any work has ended")),
            },
            Some(("failed", name)) => return Err(format!("{name} failed in the guest")),
            _ => return Ok(mark == "done"),
        }
        Ok(false)
    }

    /// Returns the finished pieces of work, in order.
    #[must_use]
    pub fn into_spans(self) -> Vec<Span<T>> {
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::{Marks, Span};

    #[test]
    fn spans_are_between_marks_that_come_in_pieces() {
        let mut marks = Marks::default();
        assert_eq!(marks.hear(b"Linux\r\neverett-be", 1), Ok(false));
        assert_eq!(marks.hear(b"nch: begin a\r\nnoise\r\n", 2), Ok(false));
        assert_eq!(
            marks
                .hear(b"[1.0] x everett-bench: end a\r\neverett-bench: result x y\r\neverett-bench: done", 3),
            Ok(false)
        );
        assert_eq!(marks.hear(b"\n", 4), Ok(true));
        let (name, result) = (String::from("a"), String::from("x y"));
        assert_eq!(marks.into_spans(), [Span { name, begin: 2, end: 3, result }]);
    }

    #[test]
    fn failed_and_unpaired_work_is_an_error() {
        let heard = |said: &str| Marks::default().hear(said.as_bytes(), 0);
        assert_eq!(heard("everett-bench: failed a\n"), Err(String::from("a failed in the guest")));
        assert!(heard("everett-bench: end a\n").is_err());
        assert!(heard("everett-bench: result a\n").is_err());
        assert!(heard("everett-bench: begin b\neverett-bench: end a\n").is_err());
    }
}
