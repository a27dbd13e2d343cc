//! Splitting of program output into lines of bounded length.
//!
//! Lines of the protocol itself use [`crate::LineSplitter`], which reports a line that is too long as an error.

use crate::check;
use crate::codec::{Error, PartialLine};

/// A line of program output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Bytes of the line, without the newline.
    pub bytes: Vec<u8>,
    /// True if the line was longer than the bound. The bytes after the bound are lost.
    pub truncated: bool,
    /// True if the stream ended before a newline.
    pub unfinished: bool,
}

/// Splitter of program output into lines. The sizes of the received chunks do not change the lines.
#[derive(Debug, Clone)]
pub struct LineCutter {
    pending: Vec<u8>,
    /// True if the current line exceeded the bound. The cutter drops the remaining bytes of the line.
    overflowed: bool,
    max: usize,
}

impl LineCutter {
    /// Returns a cutter for lines of at most `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        LineCutter { pending: Vec::new(), overflowed: false, max }
    }

    /// Appends received bytes, and emits each line that is now complete.
    pub fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Line)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.take(&bytes[..end]);
            emit(self.cut(false));
            bytes = &bytes[end + 1..];
        }
        self.take(bytes);
    }

    /// Emits the unfinished last line, if there is one. Call this at the end of the stream.
    pub fn finish(&mut self, mut emit: impl FnMut(Line)) {
        if !self.pending.is_empty() || self.overflowed {
            emit(self.cut(true));
        }
    }

    /// Returns the saved state: the line that has no newline yet.
    #[must_use]
    pub fn partial(&self) -> PartialLine {
        PartialLine { bytes: self.pending.clone(), skipping: self.overflowed }
    }

    /// Restores the state that a cutter with the same bound has saved.
    ///
    /// # Errors
    /// Returns an error with the reason if no cutter with this bound can have saved this state.
    pub fn restore(&mut self, partial: PartialLine) -> Result<(), Error> {
        let PartialLine { bytes, skipping } = partial;
        let refuse = |problem: String| {
            Err(Error::Invalid(check::Error { field: String::from("beginning of a line"), problem }))
        };
        if bytes.len() > self.max {
            return refuse(format!("{} bytes; at most {}", bytes.len(), self.max));
        }
        if bytes.contains(&b'\n') {
            return refuse(String::from("it holds a newline"));
        }
        if skipping && bytes.len() < self.max {
            return refuse(String::from("it was cut before it was full"));
        }
        (self.pending, self.overflowed) = (bytes, skipping);
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = self.max - self.pending.len();
        self.overflowed |= bytes.len() > room;
        self.pending.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn cut(&mut self, unfinished: bool) -> Line {
        let truncated = std::mem::take(&mut self.overflowed);
        Line { bytes: std::mem::take(&mut self.pending), truncated, unfinished }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, LineCutter};
    use crate::PartialLine;
    use proptest::prelude::*;

    fn cut(chunks: &[&[u8]], max: usize) -> Vec<Line> {
        let mut cutter = LineCutter::new(max);
        let mut lines = Vec::new();
        for chunk in chunks {
            cutter.push(chunk, |line| lines.push(line));
        }
        cutter.finish(|line| lines.push(line));
        lines
    }

    fn line(text: &str, truncated: bool, unfinished: bool) -> Line {
        Line { bytes: text.as_bytes().to_vec(), truncated, unfinished }
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let whole = cut(&[b"one\n\ntwo\r\nrest"], 100);
        assert_eq!(
            whole,
            [
                line("one", false, false),
                line("", false, false),
                line("two\r", false, false),
                line("rest", false, true)
            ]
        );
        for at in 0..14 {
            let (left, right) = b"one\n\ntwo\r\nrest".split_at(at);
            assert_eq!(cut(&[left, right], 100), whole);
        }
    }

    #[test]
    fn a_long_line_is_cut_at_the_bound_and_said_to_be() {
        let lines = cut(&[b"abc", b"def", b"ghi\nabcd\nabcde"], 4);
        assert_eq!(lines, [line("abcd", true, false), line("abcd", false, false), line("abcd", true, true)]);
    }

    #[test]
    fn nothing_after_the_last_newline_is_no_line() {
        assert_eq!(cut(&[b"a\n"], 4), [line("a", false, false)]);
        assert_eq!(cut(&[], 4), []);
    }

    #[test]
    fn what_no_cutter_keeps_is_refused() {
        let refused = |bytes: &[u8], skipping| {
            LineCutter::new(4).restore(PartialLine { bytes: bytes.to_vec(), skipping }).is_err()
        };
        assert!(refused(b"a\n", false));
        assert!(refused(b"abcde", false));
        assert!(refused(b"abc", true));
        assert!(!refused(b"abcd", true));
        assert!(!refused(b"abcd", false));
        assert!(!refused(b"", false));
    }

    proptest! {
        /// A [`PartialLine`] is the complete state of a cutter between two writes. This test restores a new cutter
        /// after each write, and expects the same lines as from one cutter that got all bytes at once.
        #[test]
        fn a_cutter_goes_on_from_what_it_kept(stream in "[ab\n]{0,60}", sizes in prop::collection::vec(1usize..9, 60)) {
            let mut rest = stream.as_bytes();
            let mut cutter = LineCutter::new(4);
            let mut lines = Vec::new();
            for size in sizes {
                let (chunk, behind) = rest.split_at(size.min(rest.len()));
                rest = behind;
                let mut next = LineCutter::new(4);
                next.restore(cutter.partial()).unwrap();
                cutter = next;
                cutter.push(chunk, |line| lines.push(line));
                prop_assert!(cutter.partial().bytes.len() <= 4);
            }
            cutter.finish(|line| lines.push(line));
            prop_assert_eq!(lines, cut(&[stream.as_bytes()], 4));
        }
    }
}
