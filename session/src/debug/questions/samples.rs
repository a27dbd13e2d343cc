//! Stacks of what a node executes, each after the same number of instructions.

use anyhow::bail;
use everett_inspect::Error;
use everett_inspect::program_stack::Files;

use super::follow::Span;
use crate::debug::cursor::{Aim, Cursor, Stop, Unless};
use crate::inside::sampler::{Known, Sample, Sampler};

/// Samples of a span of time.
pub struct Samples<'s> {
    /// Number of instructions between two samples of a node.
    pub every: u64,
    /// The programs of each node.
    pub files: &'s [&'s dyn Files],
    /// Returns false to end the run.
    pub goes_on: &'s dyn Fn() -> bool,
    /// Takes the number of a node and each of its samples.
    pub found: &'s mut dyn FnMut(usize, Sample) -> anyhow::Result<()>,
}

impl Samples<'_> {
    /// Runs through the span once for each node. A machine that does not run its kernel, for example while it boots, is not
    /// looked at. Returns the number of stacks that could not be read.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted or fails, and the errors of `found`.
    pub fn take(&mut self, cursor: &mut Cursor<'_>, span: &Span<'_>) -> anyhow::Result<u64> {
        let goes_on = self.goes_on;
        let unless = || !goes_on();
        let mut unreadable = 0;
        for &node in &span.nodes {
            cursor.seek(Aim::Vtime(span.since_ns), &mut Unless(&unless))?;
            let mut sampler = Sampler::new(span.kernel, self.files[node], Known::default());
            loop {
                let count = cursor.position(node).count.saturating_add(self.every);
                let stop = cursor.run(Aim::Count { node, count }, &mut Unless(&unless))?;
                match stop {
                    Stop::Reached if cursor.position(node).vtime_ns <= span.until_ns => {}
                    Stop::Reached | Stop::End(_) => break,
                    stop => bail!("an unexpected stop: {stop:?}"),
                }
                match sampler.sample(cursor.timeline().machine(node)) {
                    Ok(sample) => (self.found)(node, sample)?,
                    Err(Error::OtherKernel) => {}
                    Err(_) => unreadable += 1,
                }
            }
        }
        Ok(unreadable)
    }
}
