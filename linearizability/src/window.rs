//! Linked list for the search for a linearization, an order in which all acknowledged operations are possible. The list
//! has the start and the end of each acknowledged operation that the search has not placed in the order yet.
//!
//! **Invariant.** Operations are put back in the reverse order of their removal. When an operation is put back, the
//! neighbours that its nodes remember are therefore in the list.

use super::model::Op;

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    next: usize,
    previous: usize,
    /// Rank of the operation.
    rank: usize,
    is_end: bool,
    line: u64,
}

/// List of starts and ends. An operation's rank is its index among the acknowledged operations, in the order of
/// invocations.
#[derive(Debug)]
pub(super) struct Window {
    /// List nodes. The first node is the head, and the last node is the tail.
    nodes: Vec<Node>,
    /// Indices of the start node and the end node of each operation, by rank.
    places: Vec<(usize, usize)>,
}

const HEAD: usize = 0;

impl Window {
    /// Returns the list for these operations, which must be in the order of invocations.
    pub(super) fn of(done: &[Op<'_>]) -> Window {
        let mut events = Vec::with_capacity(done.len() * 2);
        for (rank, op) in done.iter().enumerate() {
            events.push((op.operation.invoked.line, false, rank));
            events.extend(op.operation.completed().map(|moment| (moment.line, true, rank)));
        }
        events.sort_unstable();
        let mut places = vec![(HEAD, HEAD); done.len()];
        let mut nodes = vec![Node { next: 1, ..Node::default() }];
        for (line, is_end, rank) in events {
            let node = nodes.len();
            nodes.push(Node { next: node + 1, previous: node - 1, rank, is_end, line });
            if let Some((start, end)) = places.get_mut(rank) {
                *(if is_end { end } else { start }) = node;
            }
        }
        nodes.push(Node { previous: nodes.len() - 1, line: u64::MAX, is_end: true, ..Node::default() });
        Window { nodes, places }
    }

    /// Returns the candidates for the next place in the order: the remaining operations that started before the first
    /// end of a remaining operation. Returns `None` if no operation remains.
    pub(super) fn next(&self) -> Option<Next> {
        let mut started = Vec::new();
        let mut node = self.nodes.get(self.nodes.first()?.next)?;
        while !node.is_end {
            started.push(node.rank);
            node = self.nodes.get(node.next)?;
        }
        (!started.is_empty()).then_some(Next { started, first_end: node.line, ends: node.rank })
    }

    /// Removes an operation.
    pub(super) fn lift(&mut self, rank: usize) {
        if let Some(&(start, end)) = self.places.get(rank) {
            self.unlink(start);
            self.unlink(end);
        }
    }

    /// Puts back the operation that was removed last.
    pub(super) fn put_back(&mut self, rank: usize) {
        if let Some(&(start, end)) = self.places.get(rank) {
            self.link(end);
            self.link(start);
        }
    }

    fn unlink(&mut self, node: usize) {
        if let Some(&Node { next, previous, .. }) = self.nodes.get(node) {
            self.join(previous, next);
        }
    }

    fn link(&mut self, node: usize) {
        if let Some(&Node { next, previous, .. }) = self.nodes.get(node) {
            self.join(previous, node);
            self.join(node, next);
        }
    }

    fn join(&mut self, left: usize, right: usize) {
        if let Some(node) = self.nodes.get_mut(left) {
            node.next = right;
        }
        if let Some(node) = self.nodes.get_mut(right) {
            node.previous = left;
        }
    }
}

/// Candidates for the next place in the order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Next {
    /// Ranks of the candidates, in the order of invocations. There is at least one.
    pub(super) started: Vec<usize>,
    /// Line of the history at which the first of the remaining operations ends.
    pub(super) first_end: u64,
    /// Rank of the operation that ends first.
    pub(super) ends: usize,
}
