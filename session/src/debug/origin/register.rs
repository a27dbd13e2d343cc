//! The instruction that defined a register.

use super::instruction::{Before, Part};
use super::limits::WINDOW;
use super::{Pending, Search, Value};
use crate::debug::cursor::position::Position;
use crate::debug::cursor::{Aim, Stop};

impl Search<'_, '_> {
    /// Finds where a part of a register came from that an instruction read.
    pub(super) fn register(&mut self, pending: &Pending, part: Part) -> anyhow::Result<()> {
        let node = pending.position.node;
        let mut part = part;
        let mut end = pending.position.count;
        let mut length = WINDOW;
        let mut left = self.extent.instructions;
        while left > 0 {
            let start = end.saturating_sub(length.min(left));
            let Some(window) = self.window(node, start, end)? else {
                self.unknown(pending, "the value was in a register at the start of the timeline");
                return Ok(());
            };
            if window.is_empty() {
                break;
            }
            left = left.saturating_sub(window.len() as u64);
            end = window[0].1.count;
            for (position, before) in window.into_iter().rev() {
                match before.defined(part) {
                    // A copy between registers.
                    Some(Value::Register(source)) => part = source,
                    Some(value) => {
                        return self.follow(pending, pending.explains, position, &before, value);
                    }
                    None => {}
                }
            }
            length = length.saturating_mul(4);
        }
        let because = format!(
            "no instruction among the last {} defined the register {:?}; search longer with --instructions",
            self.extent.instructions,
            part.named()
        );
        self.unknown(pending, &because);
        Ok(())
    }

    /// Returns the CPU before each of the instructions from the count `start` up to `end`. `None` if `start` lies before
    /// the timeline's start.
    fn window(
        &mut self,
        node: usize,
        start: u64,
        end: u64,
    ) -> anyhow::Result<Option<Vec<(Position, Before)>>> {
        self.clear();
        if self.cursor.seek(Aim::Count { node, count: start }, self.listener)? != Stop::Reached {
            return Ok(None);
        }
        if self.cursor.position(node).count > start {
            return Ok(None);
        }
        let mut window = Vec::new();
        loop {
            let position = self.cursor.position(node);
            if position.count >= end {
                return Ok(Some(window));
            }
            window.push((position, Before::of(self.cursor.timeline().machine(node), position.count)));
            let aim = Aim::Count { node, count: position.count + 1 };
            if self.cursor.run(aim, self.listener)? != Stop::Reached {
                return Ok(Some(window));
            }
        }
    }
}
