//! All functions of a program: functions with names, and functions that only the unwind tables (`.eh_frame`) show.
//!
//! A program without a symbol table names only the functions that it exports. Its unwind tables have the address and
//! the length of the others.

use crate::cfi;
use crate::program::{FUNCTIONS_MAX, Program};

/// Address and end of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u64,
    /// Address after the last instruction. The start of the next function, if the file does not state a length.
    end: u64,
}

/// Functions of a program, ascending by address. A function's index is its place in this order.
#[derive(Debug, Clone, Default)]
pub struct Functions(Vec<Range>);

impl Functions {
    /// Lists the functions of a program, at most [`FUNCTIONS_MAX`] with names and as many without.
    #[must_use]
    pub fn of(program: &Program) -> Functions {
        let mut all: Vec<(u64, u64)> = program.ranges().collect();
        let is_inside = |named: &[(u64, u64)], start: u64| {
            let before = named.partition_point(|(from, _)| *from <= start).checked_sub(1);
            let before = before.and_then(|n| named.get(n));
            before.is_some_and(|(from, bytes)| start != *from && start - from < *bytes)
        };
        let mut unnamed = unwind_ranges(program);
        unnamed.retain(|(start, _)| !is_inside(&all, *start));
        all.extend(unnamed);
        // Of two ranges with the same start, the range with a length counts.
        all.sort_by_key(|(start, bytes)| (*start, *bytes == 0));
        all.dedup_by_key(|(start, _)| *start);
        let starts: Vec<u64> = all.iter().skip(1).map(|(start, _)| *start).chain([u64::MAX]).collect();
        let range = |((start, bytes), next): ((u64, u64), u64)| {
            let end = if bytes == 0 { next } else { start.saturating_add(bytes).min(next) };
            Range { start, end }
        };
        Functions(all.into_iter().zip(starts).map(range).collect())
    }

    /// Returns the number of functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no function is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the index of the function that contains an address, as the file states addresses. `None` if no function
    /// is there.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<usize> {
        let index = self.0.partition_point(|range| range.start <= address).checked_sub(1)?;
        self.0.get(index).filter(|range| address < range.end).map(|_| index)
    }

    /// Returns the first address of a function.
    #[must_use]
    pub fn start(&self, index: usize) -> Option<u64> {
        self.0.get(index).map(|range| range.start)
    }
}

/// Returns first address and length of the functions that have unwind tables. Only code of the program counts.
fn unwind_ranges(program: &Program) -> Vec<(u64, u64)> {
    let Some(eh_frame) = &program.eh_frame else { return Vec::new() };
    let address = |section: &Option<crate::program::Section>| section.as_ref().map(|section| section.address);
    let bases = cfi::bases(eh_frame.address, address(&program.text), address(&program.got));
    let mut ranges = cfi::functions(&eh_frame.content, &bases, FUNCTIONS_MAX);
    ranges.retain(|(start, bytes)| *start != 0 && *bytes != 0 && program.is_code(*start));
    ranges
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn ranges_end_at_the_next_function() {
        let of = |start, end| Range { start, end };
        let functions = Functions(vec![of(0x10, 0x20), of(0x30, 0x40), of(0x40, u64::MAX)]);
        let at = |address| functions.at(address);
        assert_eq!([at(0xf), at(0x10), at(0x1f), at(0x20), at(0x2f)], [None, Some(0), Some(0), None, None]);
        assert_eq!([at(0x30), at(0x3f), at(0x40), at(u64::MAX - 1)], [Some(1), Some(1), Some(2), Some(2)]);
        assert_eq!((functions.start(1), functions.start(3)), (Some(0x30), None));
    }

    /// The test's own program has both a symbol table and unwind tables, so nearly each function of one is in the other.
    #[test]
    fn unwind_tables_show_the_functions_of_the_symbol_table() {
        let file: Arc<[u8]> = std::fs::read(std::env::current_exe().unwrap()).unwrap().into();
        let program = Program::parse(file).unwrap();
        let functions = Functions::of(&program);
        let named = program.ranges().count();
        assert!(named > 1_000 && functions.len() >= named, "{named} of {}", functions.len());
        assert!(functions.len() < named + named / 4, "{named} of {}", functions.len());
        let unwound = unwind_ranges(&program);
        assert!(unwound.len() > named / 2, "{} of {named}", unwound.len());
        for (start, bytes) in program.ranges().chain(unwound).filter(|(_, bytes)| *bytes > 0) {
            let index = functions.at(start).unwrap_or_else(|| panic!("{start:#x}+{bytes:#x}"));
            assert!(functions.start(index).is_some_and(|first| first <= start));
        }
    }
}
