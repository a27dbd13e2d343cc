//! History lines up to a moment, as a chain of segments that children of one moment share.

use std::sync::Arc;

use everett_explorer::history::Line;

/// Lines of histories, oldest first.
#[derive(Debug, Clone, Default)]
pub struct HistoryChain(Option<Arc<HistorySegment>>);

#[derive(Debug)]
struct HistorySegment {
    before: HistoryChain,
    lines: Vec<Line>,
    /// Number of lines in this segment and all before it.
    count: usize,
}

impl HistoryChain {
    /// Returns this history followed by `lines`.
    #[must_use]
    pub fn and(&self, lines: Vec<Line>) -> HistoryChain {
        if lines.is_empty() {
            return self.clone();
        }
        let count = self.len() + lines.len();
        HistoryChain(Some(Arc::new(HistorySegment { before: self.clone(), lines, count })))
    }

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

    /// Iterates over the lines.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        let mut segments = Vec::new();
        let mut next = self;
        while let HistoryChain(Some(segment)) = next {
            segments.push(segment);
            next = &segment.before;
        }
        segments.into_iter().rev().flat_map(|segment| &segment.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_share_the_lines_before() {
        let line = |vtime_ns| Line { vtime_ns, node: "a".to_owned(), text: String::new() };
        let parent = HistoryChain::default().and(vec![line(1), line(2)]).and(Vec::new());
        let (one, other) = (parent.and(vec![line(3)]), parent.and(vec![line(4), line(5)]));
        let times = |chain: &HistoryChain| chain.lines().map(|line| line.vtime_ns).collect::<Vec<_>>();
        assert_eq!((times(&one), times(&other)), (vec![1, 2, 3], vec![1, 2, 4, 5]));
        assert_eq!((parent.len(), one.len(), HistoryChain::default().is_empty()), (2, 3, true));
    }
}
