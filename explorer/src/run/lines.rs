//! The lines of `branches.jsonl`, one after the other, up to where the writer was cut off.
//!
//! What is torn is the last line: it has no end, or has one and is not what was written, since the pages of a file need not reach
//! the disk in order. Damage in any other line is an error.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::limits::LINE_BYTES_MAX;
use super::line::{self, Damage};
use super::problem::RunError;

/// A file and its name.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) file: Arc<File>,
    pub(super) path: PathBuf,
}

/// A line whose text is as it was written.
pub(super) struct Line {
    /// From 1.
    pub(super) number: u64,
    /// With its end.
    pub(super) bytes: Vec<u8>,
}

/// The lines of a file up to a length.
pub(super) struct Lines {
    source: Source,
    from: BufReader<At>,
    /// Where the next line begins; where whole lines end, once there are no more.
    offset: u64,
    number: u64,
    length: u64,
    over: bool,
}

impl Lines {
    /// The lines in the first `length` bytes.
    pub(super) fn new(source: Source, length: u64) -> Lines {
        let from = BufReader::new(At { file: Arc::clone(&source.file), offset: 0, length });
        Lines { source, from, offset: 0, number: 0, length, over: false }
    }

    /// Where whole lines end. Known once there are no more.
    pub(super) fn end(&self) -> u64 {
        self.offset
    }

    fn read(&mut self) -> Result<Option<Line>, RunError> {
        let mut bytes = Vec::new();
        // One more than a line has: what fills it is too long.
        let mut most = self.from.by_ref().take(LINE_BYTES_MAX as u64 + 1);
        most.read_until(b'\n', &mut bytes).map_err(RunError::io("read", &self.source.path))?;
        let (number, offset) = (self.number + 1, self.offset);
        let last = offset + bytes.len() as u64 >= self.length;
        let damage = match bytes.last() {
            _ if bytes.len() > LINE_BYTES_MAX => Damage::TooLong,
            None => return Ok(None),
            Some(b'\n') => match line::text(&bytes) {
                Ok(_) => {
                    (self.number, self.offset) = (number, offset + bytes.len() as u64);
                    return Ok(Some(Line { number, bytes }));
                }
                Err(_) if last => return Ok(None),
                Err(damage) => damage,
            },
            Some(_) => return Ok(None),
        };
        Err(RunError::Damaged { path: self.source.path.clone(), line: number, damage })
    }
}

impl Iterator for Lines {
    type Item = Result<Line, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let line = self.read().transpose();
        self.over = !matches!(line, Some(Ok(_)));
        line
    }
}

/// A file from an offset on: readers of one file do not move each other.
struct At {
    file: Arc<File>,
    offset: u64,
    length: u64,
}

impl Read for At {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let most = bytes.len().min(left);
        let read = match bytes.get_mut(..most) {
            Some(bytes) => self.file.read_at(bytes, self.offset)?,
            None => 0,
        };
        self.offset += read as u64;
        Ok(read)
    }
}
