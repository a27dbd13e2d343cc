//! History lines up to a moment, as a chain of segments that children of one moment share.
//!
//! **Invariant.** The lines of a chain have at most [`HISTORY_BYTES_MAX`] bytes. Later ones are dropped, and the chain
//! says where.

use std::sync::Arc;

use everett_linearizability::HistoryLine;
use everett_linearizability::limits::HISTORY_BYTES_MAX;

/// Memory of a line besides its texts, in bytes, approximately: the line, and the heads of its two blocks on the heap.
const LINE_BYTES: u64 = size_of::<HistoryLine>() as u64 + 32;

/// Lines of histories, oldest first.
#[derive(Debug, Clone, Default)]
pub struct HistoryChain(Option<Arc<HistorySegment>>);

#[derive(Debug)]
struct HistorySegment {
    before: HistoryChain,
    lines: Vec<HistoryLine>,
    /// Number of lines in this segment and all before it.
    count: usize,
    /// Memory of this segment and all before it, in bytes, approximately.
    bytes: u64,
    /// First line that was dropped, without its text.
    dropped: Option<HistoryLine>,
}

impl Drop for HistorySegment {
    /// Drops the segments before this one in a loop, because a path of many forks has thousands.
    fn drop(&mut self) {
        let mut next = self.before.0.take();
        while let Some(mut segment) = next.and_then(Arc::into_inner) {
            next = segment.before.0.take();
        }
    }
}

impl HistoryChain {
    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |segment| segment.count)
    }

    /// Returns true if there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of all lines, in bytes, approximately.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |segment| segment.bytes)
    }

    /// Returns the first line that was dropped because the history was too large, without its text.
    #[must_use]
    pub fn dropped(&self) -> Option<&HistoryLine> {
        self.0.as_ref()?.dropped.as_ref()
    }

    /// Iterates over the lines.
    pub fn lines(&self) -> impl Iterator<Item = &HistoryLine> {
        let mut segments = Vec::new();
        let mut next = self;
        while let HistoryChain(Some(segment)) = next {
            segments.push(segment);
            next = &segment.before;
        }
        segments.into_iter().rev().flat_map(|segment| &segment.lines)
    }
}

/// A chain that grows.
#[derive(Debug)]
pub struct HistoryWriter {
    chain: HistoryChain,
    /// Lines after the chain.
    new_lines: Vec<HistoryLine>,
    /// Memory of the chain and of the new lines, in bytes, approximately.
    bytes: u64,
    bytes_max: u64,
    dropped: Option<HistoryLine>,
}

impl HistoryWriter {
    /// Continues a chain.
    #[must_use]
    pub fn after(chain: &HistoryChain) -> HistoryWriter {
        HistoryWriter::bounded(chain, HISTORY_BYTES_MAX)
    }

    fn bounded(chain: &HistoryChain, bytes_max: u64) -> HistoryWriter {
        HistoryWriter {
            chain: chain.clone(),
            new_lines: Vec::new(),
            bytes: chain.bytes(),
            bytes_max,
            dropped: chain.dropped().cloned(),
        }
    }

    /// Adds a line, unless one was dropped before, or this one is too much.
    pub fn push(&mut self, line: HistoryLine) {
        if self.dropped.is_some() {
            return;
        }
        let more = LINE_BYTES + (line.node.len() + line.text.len()) as u64;
        if self.bytes.saturating_add(more) > self.bytes_max {
            self.dropped = Some(HistoryLine { text: String::new(), ..line });
        } else {
            self.bytes += more;
            self.new_lines.push(line);
        }
    }

    /// Returns the chain of all lines so far.
    pub fn chain(&mut self) -> &HistoryChain {
        if !self.new_lines.is_empty() || self.dropped.is_some() != self.chain.dropped().is_some() {
            let mut lines = std::mem::take(&mut self.new_lines);
            lines.shrink_to_fit();
            self.chain = HistoryChain(Some(Arc::new(HistorySegment {
                count: self.chain.len() + lines.len(),
                before: self.chain.clone(),
                lines,
                bytes: self.bytes,
                dropped: self.dropped.clone(),
            })));
        }
        &self.chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(vtime_ns: u64, text: &str) -> HistoryLine {
        HistoryLine { vtime_ns, node: "a".to_owned(), text: text.to_owned() }
    }

    fn and(chain: &HistoryChain, lines: Vec<HistoryLine>, bytes_max: u64) -> HistoryChain {
        let mut writer = HistoryWriter::bounded(chain, bytes_max);
        lines.into_iter().for_each(|line| writer.push(line));
        writer.chain().clone()
    }

    fn times(chain: &HistoryChain) -> Vec<u64> {
        chain.lines().map(|line| line.vtime_ns).collect()
    }

    #[test]
    fn children_share_the_lines_before() {
        let and = |chain: &HistoryChain, times: &[u64]| {
            and(chain, times.iter().map(|&at| line(at, "")).collect(), HISTORY_BYTES_MAX)
        };
        let parent = and(&and(&HistoryChain::default(), &[1, 2]), &[]);
        let (one, other) = (and(&parent, &[3]), and(&parent, &[4, 5]));
        assert_eq!((times(&one), times(&other)), (vec![1, 2, 3], vec![1, 2, 4, 5]));
        assert_eq!((parent.len(), one.len(), HistoryChain::default().is_empty()), (2, 3, true));
        assert_eq!((parent.bytes(), other.bytes()), (2 * (LINE_BYTES + 1), 4 * (LINE_BYTES + 1)));
    }

    #[test]
    fn a_long_chain_is_dropped_on_a_small_stack() {
        let mut chain = HistoryChain::default();
        for at in 0..100_000 {
            chain = and(&chain, vec![line(at, "")], u64::MAX);
        }
        assert_eq!(chain.len(), 100_000);
        drop(chain);
    }

    #[test]
    fn a_chain_ends_at_its_bound() {
        let most = 3 * (LINE_BYTES + 11);
        let (text, default) = ("0123456789", HistoryChain::default());
        let full = and(&default, (1..=3).map(|at| line(at, text)).collect(), most);
        assert_eq!((full.bytes(), full.dropped()), (most, None));
        let cut = and(&full, vec![line(4, text), line(5, "")], most);
        assert_eq!((times(&cut), cut.bytes()), (vec![1, 2, 3], most));
        let dropped = line(4, "");
        assert_eq!(cut.dropped(), Some(&dropped));
        // Lines after a dropped one are no history, even if they fit.
        let two = and(&default, vec![line(1, text), line(2, &text.repeat(99)), line(3, "")], most);
        assert_eq!((times(&two), two.dropped().map(|line| line.vtime_ns)), (vec![1], Some(2)));
        let later = and(&two, vec![line(6, "")], u64::MAX);
        assert_eq!((times(&later), later.dropped().map(|line| line.vtime_ns)), (vec![1], Some(2)));
    }
}
