//! Cutting a program's output into lines of a bounded length.

/// A line, as it was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its bytes, without the newline.
    pub(crate) bytes: Vec<u8>,
    /// There was more than the bound; the rest is dropped.
    pub(crate) truncated: bool,
    /// The stream ended before a newline came.
    pub(crate) unfinished: bool,
}

/// Cuts a stream into lines.
#[derive(Debug)]
pub(crate) struct LineCutter {
    pending: Vec<u8>,
    /// The current line went over the bound: its rest is dropped.
    overflowed: bool,
    max: usize,
}

impl LineCutter {
    /// `max`: most bytes of a line.
    pub(crate) fn new(max: usize) -> Self {
        LineCutter { pending: Vec::new(), overflowed: false, max }
    }

    /// Takes bytes as they came and gives out the lines that are complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Line)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.take(&bytes[..end]);
            emit(self.cut(false));
            bytes = &bytes[end + 1..];
        }
        self.take(bytes);
    }

    /// The stream has ended: gives out what no newline followed.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(Line)) {
        if !self.pending.is_empty() || self.overflowed {
            emit(self.cut(true));
        }
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
}
