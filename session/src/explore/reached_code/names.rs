//! Names and source lines of reached code.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use everett_explorer::reached_code::{
    self as format, ALL_FUNCTIONS_MAX, FUNCTIONS_MAX, FailingPlace, FindingCode, Function, NODES_MAX,
    PLACES_MAX, PROGRAMS_MAX, Program, TEXT_BYTES_MAX,
};
use everett_explorer::run::Finding;
use everett_symbols::kernel::Symbols;
use everett_symbols::lines::SourcePlace;

use super::places::{File, KERNEL, Place};
use super::table::{Counts, FunctionKey, FunctionRow, Table};
use crate::run::edges::programs::Programs;
use crate::run::edges::sources::{ProgramSource, Sources};

/// Maximum number of addresses whose source lines are looked up. A lookup reads a unit of debug information, i.e. the
/// code of one source file, from its start. Code beyond the maximum has no lines, and functions without a symbol no names.
const LOOKUPS_MAX: u32 = 20_000;
/// Maximum number of places of a finding whose source lines are looked up.
const CANDIDATES_MAX: usize = 1_000;

/// Sources of names.
pub(super) struct Names<'n> {
    programs: &'n Programs,
    sources: &'n Sources,
    kernel: Symbols,
    lookups_left: Cell<u32>,
}

impl<'n> Names<'n> {
    pub(super) fn new(programs: &'n Programs, sources: &'n Sources, kernel: Symbols) -> Names<'n> {
        Names { programs, sources, kernel, lookups_left: Cell::new(LOOKUPS_MAX) }
    }

    /// Returns the function that contains a place.
    pub(super) fn function_of(&self, (file, address): Place) -> Option<FunctionKey> {
        if file == KERNEL {
            return self.kernel.function(address).map(|(start, _)| (file, start));
        }
        let source = self.source(file)?;
        let start = source.functions().start(source.functions().at(address)?)?;
        Some((file, start))
    }

    /// Returns the code that only failing branches reached, for each finding that a branch of the table shows.
    pub(super) fn findings(&self, table: &Table, findings: &[Finding]) -> Vec<FindingCode> {
        let of = |finding: &Finding| {
            let branches = *table.branches.of_findings.get(&finding.id)?;
            let (places, places_count) = self.failing_places(table, finding.id);
            Some(FindingCode {
                id: finding.id,
                property: clip(&finding.hit.property),
                signature: clip(&finding.hit.signature),
                branches,
                places,
                places_count,
            })
        };
        findings.iter().filter_map(of).collect()
    }

    fn failing_places(&self, table: &Table, finding: u32) -> (Vec<FailingPlace>, u64) {
        let shown = |counts: &Counts| match table.only_failing(counts) {
            true => counts.of_findings.get(&finding).copied().filter(|branches| *branches > 0),
            false => None,
        };
        // Whole functions, then places in functions that other branches reached as well.
        let whole = table.functions.iter().filter_map(|(key, row)| Some((*key, true, shown(&row.counts)?)));
        let is_whole =
            |key: &FunctionKey| table.functions.get(key).is_some_and(|row| shown(&row.counts).is_some());
        let parts = table.places.iter().filter(|(_, row)| !row.function.as_ref().is_some_and(is_whole));
        let parts = parts.filter_map(|(place, row)| Some((*place, false, shown(&row.counts)?)));
        let mut all: Vec<(Place, bool, u64)> = whole.chain(parts).collect();
        all.sort_by_key(|&((file, address), whole, branches)| {
            (file == KERNEL, Reverse(branches), !whole, file, address)
        });
        let mut seen = BTreeSet::new();
        let mut places = Vec::new();
        let mut count = 0u64;
        for (number, (place, whole_function, branches)) in all.into_iter().enumerate() {
            if number >= CANDIDATES_MAX {
                count += 1;
                continue;
            }
            let failing = self.failing_place(table, place, whole_function, branches);
            // Several places of a line are one.
            let (program, function, line) = (&failing.program, &failing.function, &failing.line);
            let key = (program.clone(), function.clone(), line.clone(), place.1);
            let key = if line.is_some() { (key.0, key.1, key.2, 0) } else { key };
            if seen.insert(key) {
                count += 1;
                if places.len() < PLACES_MAX {
                    places.push(failing);
                }
            }
        }
        (places, count)
    }

    fn failing_place(
        &self,
        table: &Table,
        place: Place,
        whole_function: bool,
        branches: u64,
    ) -> FailingPlace {
        let (file, address) = place;
        let function = match whole_function {
            true => Some(place),
            false => table.places.get(&place).and_then(|row| row.function),
        };
        let source = self.lookup(file, address);
        let innermost = source.first();
        let inlined = innermost.filter(|_| source.len() > 1 && !whole_function);
        let named = function.and_then(|(file, start)| self.name(file, start));
        FailingPlace {
            program: clip(self.path(file)),
            function: named.or_else(|| source.last()?.function.clone()).map(|name| clip(&name)),
            inlined: inlined.and_then(|place| place.function.as_deref()).map(clip),
            address,
            line: line_of(if whole_function { source.last() } else { innermost }),
            whole_function,
            branches,
        }
    }

    /// Returns the programs with reached code, and their number including programs that are left out. `nodes` has the
    /// files that each node executed.
    pub(super) fn programs(
        &self,
        table: &Table,
        nodes: &BTreeSet<(File, usize)>,
        node_names: &[&str],
    ) -> (Vec<Program>, u64) {
        let mut places: BTreeMap<File, u64> = BTreeMap::new();
        for (file, _) in table.places.keys() {
            *places.entry(*file).or_default() += 1;
        }
        let mut functions: BTreeMap<File, Vec<(u64, &FunctionRow)>> = BTreeMap::new();
        for ((file, start), row) in &table.functions {
            functions.entry(*file).or_default().push((*start, row));
        }
        let mut files: Vec<(File, u64)> = places.into_iter().collect();
        let reached = |file: &File| functions.get(file).map_or(0, Vec::len);
        files.sort_by_key(|(file, _)| (*file == KERNEL, Reverse(reached(file)), *file));
        let count = files.len() as u64;
        // The kernel is last, and is kept.
        if files.len() > PROGRAMS_MAX {
            files.drain(PROGRAMS_MAX - 1..files.len() - 1);
        }
        let mut left = ALL_FUNCTIONS_MAX;
        let mut programs = Vec::new();
        for (file, places) in files {
            let mut rows = functions.remove(&file).unwrap_or_default();
            let reached = rows.len() as u64;
            rows.sort_by_key(|(start, row)| (row.counts.branches, *start));
            rows.truncate(FUNCTIONS_MAX.min(left));
            left -= rows.len();
            let of_file = nodes.range((file, 0)..=(file, usize::MAX)).map(|(_, node)| *node);
            let of_file = of_file.filter_map(|node| node_names.get(node).map(|name| clip(name)));
            programs.push(Program {
                path: clip(self.path(file)),
                nodes: of_file.take(NODES_MAX).collect(),
                reached,
                functions_all: self.functions_all(file).max(reached),
                places,
                has_lines: self.source(file).is_some_and(|source| self.sources.has_lines(&source)),
                functions: rows
                    .into_iter()
                    .map(|(start, row)| self.function(table, file, start, row))
                    .collect(),
            });
        }
        (programs, count)
    }

    fn function(&self, table: &Table, file: File, start: u64, row: &FunctionRow) -> Function {
        let source = self.lookup(file, start);
        // The outermost place is the function itself. Calls that are inlined at its first instruction precede it.
        let of_source = source.last().and_then(|place| place.function.clone());
        Function {
            name: self.name(file, start).or(of_source).map(|name| clip(&name)),
            address: start,
            line: line_of(source.last()),
            places: row.places,
            branches: row.counts.branches,
            first: row.counts.first,
            only_failing: table.only_failing(&row.counts),
        }
    }

    /// Returns the name of a function from the symbols of its file.
    fn name(&self, file: File, start: u64) -> Option<String> {
        if file == KERNEL {
            return self.kernel.function(start).map(|(_, name)| name.to_owned());
        }
        self.source(file)?.symbol(start).filter(|(_, offset)| *offset == 0).map(|(name, _)| name)
    }

    /// Returns the places in source code of an address. Empty if they are unknown, or after too many lookups.
    fn lookup(&self, file: File, address: u64) -> Vec<SourcePlace> {
        let Some(source) = self.source(file) else { return Vec::new() };
        if !self.sources.has_lines(&source) {
            return Vec::new();
        }
        let Some(left) = self.lookups_left.get().checked_sub(1) else { return Vec::new() };
        self.lookups_left.set(left);
        self.sources.places(&source, address)
    }

    fn functions_all(&self, file: File) -> u64 {
        let count = match self.source(file) {
            Some(source) => source.functions().len(),
            None if file == KERNEL => self.kernel.len(),
            None => 0,
        };
        count as u64
    }

    fn source(&self, file: File) -> Option<Rc<ProgramSource>> {
        let (image, path) = self.programs.file(file)?;
        self.sources.program(image, path)
    }

    fn path(&self, file: File) -> &str {
        match self.programs.file(file) {
            Some((_, path)) => path,
            None => format::KERNEL,
        }
    }
}

/// Returns a place in source code as `FILE:LINE`. `None` if the file or the line is unknown.
fn line_of(place: Option<&SourcePlace>) -> Option<String> {
    let place = place?;
    Some(clip(&format!("{}:{}", place.file.as_ref()?, place.line?)))
}

fn clip(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}
