//! History lines up to a moment, as a chain of segments. A history line is a client's report of one of its operations.
//! Everett judges these reports. The children of a moment share the segments up to this moment.
//!
//! **Invariant.** The memory of a chain's lines is at most [`HISTORY_BYTES_MAX`]. Later lines are dropped, and the
//! chain keeps the vtime of the first dropped line.

use std::sync::Arc;

use everett_linearizability::HistoryLine;
use everett_linearizability::limits::HISTORY_BYTES_MAX;

/// Approximate memory of a line without its texts, in bytes: the line itself and the overhead of two heap blocks.
const LINE_BYTES: u64 = size_of::<HistoryLine>() as u64 + 32;

/// History lines up to a moment, oldest first.
#[derive(Debug, Clone, Default)]
pub struct HistoryChain(Option<Arc<HistorySegment>>);

#[derive(Debug)]
struct HistorySegment {
    before: HistoryChain,
    lines: Vec<HistoryLine>,
    /// Number of lines in this segment and the segments before it.
    count: usize,
    /// Approximate memory of this segment and the segments before it, in bytes.
    bytes: u64,
    /// First dropped line, without its text.
    dropped: Option<HistoryLine>,
}

impl Drop for HistorySegment {
    /// Drops the segments before this one in a loop. Recursion would overflow the stack, because a chain can have
    /// thousands of segments.
    fn drop(&mut self) {
        let mut next = self.before.0.take();
        while let Some(mut segment) = next.and_then(Arc::into_inner) {
            next = segment.before.0.take();
        }
    }
}

impl HistoryChain {
    /// Returns the number of lines in the chain.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |segment| segment.count)
    }

    /// Returns true if the chain has no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the approximate memory of all lines, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |segment| segment.bytes)
    }

    /// Returns the first line that was dropped at the bound, without its text.
    #[must_use]
    pub fn dropped(&self) -> Option<&HistoryLine> {
        self.0.as_ref()?.dropped.as_ref()
    }

    /// Iterates over the lines, oldest first.
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

/// Writer that adds lines to the end of a chain.
#[derive(Debug)]
pub struct HistoryWriter {
    chain: HistoryChain,
    /// New lines, not yet in the chain.
    new_lines: Vec<HistoryLine>,
    /// Approximate memory of the chain and the new lines, in bytes.
    bytes: u64,
    bytes_max: u64,
    dropped: Option<HistoryLine>,
}

impl HistoryWriter {
    /// Creates a writer that continues `chain`.
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

    /// Adds a line. If the line exceeds the bound, this line and all later lines are dropped.
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

    /// Moves the new lines into the chain and returns it.
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
        // All lines after a dropped line are dropped, even lines that would fit.
        let two = and(&default, vec![line(1, text), line(2, &text.repeat(99)), line(3, "")], most);
        assert_eq!((times(&two), two.dropped().map(|line| line.vtime_ns)), (vec![1], Some(2)));
        let later = and(&two, vec![line(6, "")], u64::MAX);
        assert_eq!((times(&later), later.dropped().map(|line| line.vtime_ns)), (vec![1], Some(2)));
    }
}
