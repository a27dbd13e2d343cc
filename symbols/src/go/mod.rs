//! The table of functions of Go programs (section `.gopclntab`).
//!
//! Go programs carry a table of their functions, even if they are stripped. The table has names, and for each address the distance
//! of the stack pointer from the frame's start, the source file and the line. The format is that of Go 1.18 and later
//! (`debug/gosym` and `runtime/symtab.go` in Go's sources).
//!
//! - [`start`]: the address of the code that the table describes

mod start;

use everett_elf::{Section, Sections};

use crate::bytes::u32_at;
use crate::limits::{GO_FUNCTIONS_MAX, GO_PATH_BYTES_MAX, GO_STEPS_MAX};

/// First four bytes of the table as numbers: of Go 1.18 and 1.19, and of Go 1.20 and later.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Length of the header, in bytes.
const HEADER_BYTES: usize = 72;
/// Place of the address of the code in the header.
const START_AT: usize = 24;
/// Length of an entry in the list of functions, in bytes: distance from the start of the code, and place of the description.
const ENTRY_BYTES: usize = 8;
/// Number of the table of inlined calls among the numbered tables of a function (`PCDATA_InlTreeIndex`).
const INLINED: u32 = 2;
/// Flag of a function that is the first one of its stack (`FuncFlagTopFrame`).
const OUTERMOST: u8 = 1;
/// Flag of a function that sets the stack pointer to a value that the table does not have (`FuncFlagSPWrite`).
const MOVES_STACK: u8 = 2;
/// Function that the kernel calls for a signal. Its caller is the code that the signal has interrupted.
const SIGNAL: &[u8] = b"runtime.sigtramp";
/// Functions that end a signal. They have no caller, because the stack pointer is at what the kernel has saved.
const SIGNAL_ENDS: [&[u8]; 2] = [b"runtime.sigreturn__sigaction", b"runtime.sigreturn"];

/// Functions that a handler of a signal makes the interrupted code call. Their return address is the interrupted instruction.
const INJECTED: [&[u8]; 3] = [b"runtime.asyncPreempt", b"runtime.sigpanic", b"runtime.debugCallV2"];

/// Steps of tables of values that may still be read for a stack.
#[derive(Debug)]
pub struct GoSteps(usize);

impl Default for GoSteps {
    fn default() -> GoSteps {
        GoSteps(GO_STEPS_MAX)
    }
}

/// A table of functions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'t> {
    bytes: &'t [u8],
    /// True if descriptions have the line of the function, as since Go 1.20.
    has_start_lines: bool,
    count: usize,
    /// Address of the code, as the file states it.
    start: u64,
    /// Least distance of two instructions, in bytes.
    quantum: u64,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    functions: usize,
}

/// A function in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoFunction {
    /// First address, as the file states it.
    pub(crate) start: u64,
    /// Place of its description.
    at: usize,
}

/// Frame of a function at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoFrame {
    /// The return address is this number of bytes above the stack pointer.
    Return(u64),
    /// The function is the first of its stack.
    Outermost,
    /// The address of the interrupted instruction is this number of bytes above the stack pointer.
    Injected(u64),
    /// The function is the handler of a signal. The address of the code that ends the signal is this number of bytes above the
    /// stack pointer.
    Signal(u64),
    /// The table does not lead to the caller: the function has moved to another stack or ends a signal, or the table is damaged.
    Unknown,
}

impl<'t> Table<'t> {
    /// Reads the table of a file. `None` if it has another format, or if the file does not state where the code begins.
    pub(crate) fn of(sections: &Sections<'t>, section: &Section<'t>) -> Option<Table<'t>> {
        let table = Table::new(section.content().ok()?, 0)?;
        let first = u32_at(table.bytes, table.functions)?;
        let start = start::start(sections, section, first.into())?;
        Some(Table { start, ..table })
    }

    /// Reads the header. `start` is the address of the code. `None` if the table has another format.
    pub(crate) fn new(bytes: &'t [u8], start: u64) -> Option<Table<'t>> {
        let header = bytes.get(..HEADER_BYTES)?;
        let version = MAGIC.iter().position(|magic| u32_at(header, 0) == Some(*magic))?;
        let ([_, _, quantum, 8], true) = ([header[4], header[5], header[6], header[7]], header[6] > 0) else {
            return None;
        };
        let word = |n: usize| Some(u64::from_le_bytes(*header.get(8 + 8 * n..)?.first_chunk()?));
        let place = |n: usize| usize::try_from(word(n)?).ok().filter(|at| *at <= bytes.len());
        let functions = place(7)?;
        let count = usize::try_from(word(0)?).ok().filter(|count| *count <= GO_FUNCTIONS_MAX)?;
        let room = bytes.len().saturating_sub(functions) / ENTRY_BYTES;
        Some(Table {
            bytes,
            has_start_lines: version == 1,
            // The last entry is the end of the code.
            count: (count < room).then_some(count)?,
            start,
            quantum: quantum.into(),
            names: place(3)?,
            units: place(4)?,
            files: place(5)?,
            values: place(6)?,
            functions,
        })
    }

    /// Returns the address of the code, as the file states it.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    fn entry(&self, n: usize) -> Option<(u64, usize)> {
        let at = self.functions.checked_add(n.checked_mul(ENTRY_BYTES)?)?;
        let start = self.start.checked_add(u32_at(self.bytes, at)?.into())?;
        let description = self.functions.checked_add(u32_at(self.bytes, at + 4)? as usize)?;
        Some((start, description))
    }

    /// Returns the functions with their lengths in bytes, ascending by address. Ends at the first damaged entry.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (GoFunction, u64)> + use<'t> {
        let table = *self;
        (0..table.count).map_while(move |n| {
            let ((start, at), (end, _)) = (table.entry(n)?, table.entry(n + 1)?);
            Some((GoFunction { start, at }, end.checked_sub(start)?))
        })
    }

    /// Returns the function at an address, as the file states addresses.
    pub(crate) fn at(&self, address: u64) -> Option<GoFunction> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.0 <= address { low = middle + 1 } else { high = middle }
        }
        let n = low.checked_sub(1)?;
        let ((start, at), (end, _)) = (self.entry(n)?, self.entry(n + 1)?);
        (start..end).contains(&address).then_some(GoFunction { start, at })
    }

    fn field(&self, function: GoFunction, offset: usize) -> Option<u32> {
        u32_at(self.bytes, function.at.checked_add(offset)?)
    }

    /// Returns the name of a function.
    pub(crate) fn name(&self, function: GoFunction, most: usize) -> Option<&'t [u8]> {
        self.text(self.names.checked_add(self.field(function, 4)? as usize)?, most)
    }

    fn text(&self, at: usize, most: usize) -> Option<&'t [u8]> {
        let rest = self.bytes.get(at..)?;
        let bytes = rest.iter().take(most.saturating_add(1)).position(|byte| *byte == 0)?;
        rest.get(..bytes)
    }

    /// Returns the place of the fields behind the line of the function.
    fn last_fields(&self) -> usize {
        if self.has_start_lines { 40 } else { 36 }
    }

    /// Returns the frame of the function at an address. `None` if the table has no function there.
    pub(crate) fn frame(&self, address: u64, steps: &mut GoSteps) -> Option<GoFrame> {
        let function = self.at(address)?;
        Some(self.frame_of(function, address, steps).unwrap_or(GoFrame::Unknown))
    }

    fn frame_of(&self, function: GoFunction, address: u64, steps: &mut GoSteps) -> Option<GoFrame> {
        let name = self.name(function, SIGNAL_ENDS[0].len()).unwrap_or_default();
        let flags = *self.bytes.get(function.at.checked_add(self.last_fields() + 1)?)?;
        if flags & OUTERMOST != 0 && name != SIGNAL {
            return Some(GoFrame::Outermost);
        }
        if flags & MOVES_STACK != 0 || SIGNAL_ENDS.contains(&name) {
            return Some(GoFrame::Unknown);
        }
        let distance = u64::try_from(self.value(function, 16, address, steps)?).ok()?;
        Some(match name {
            SIGNAL => GoFrame::Signal(distance),
            _ if INJECTED.contains(&name) => GoFrame::Injected(distance),
            _ => GoFrame::Return(distance),
        })
    }

    /// Returns path and line of the source at an address. `None` in an inlined call, because Everett does not read the tree of
    /// inlined calls.
    pub(crate) fn source(&self, address: u64, steps: &mut GoSteps) -> Option<(&'t [u8], u64)> {
        let function = self.at(address)?;
        if self.is_inlined(function, address, steps)? {
            return None;
        }
        let file = usize::try_from(self.value(function, 20, address, steps)?).ok()?;
        let line = u64::try_from(self.value(function, 24, address, steps)?).ok()?;
        let unit = self.field(function, 32)? as usize;
        let at = self.units.checked_add(unit.checked_add(file)?.checked_mul(4)?)?;
        let path = self.files.checked_add(u32_at(self.bytes, at)? as usize)?;
        Some((self.text(path, GO_PATH_BYTES_MAX)?, line))
    }

    /// True if the code at an address is that of an inlined call.
    fn is_inlined(&self, function: GoFunction, address: u64, steps: &mut GoSteps) -> Option<bool> {
        if self.field(function, 28)? <= INLINED {
            return Some(false);
        }
        let tables = self.last_fields() + 4;
        let inlined = self.value(function, tables + 4 * INLINED as usize, address, steps)?;
        Some(inlined >= 0)
    }

    /// Returns the value at an address in the table whose place stands at `offset` in a function's description. A table that is
    /// missing has the value -1. `None` if the table is damaged or ends before the address, or if no step is left.
    fn value(&self, function: GoFunction, offset: usize, address: u64, steps: &mut GoSteps) -> Option<i64> {
        let at = self.field(function, offset)? as usize;
        if at == 0 {
            return Some(-1);
        }
        let mut rest = self.bytes.get(self.values.checked_add(at)?..)?;
        let (mut value, mut end) = (-1_i64, function.start);
        let mut is_first = true;
        while let Some(left) = steps.0.checked_sub(1) {
            steps.0 = left;
            let change = number(&mut rest)?;
            if change == 0 && !is_first {
                return None;
            }
            is_first = false;
            // The lowest bit is the sign.
            let change = i64::from(change >> 1) ^ -i64::from(change & 1);
            value = value.checked_add(change)?;
            end = end.checked_add(u64::from(number(&mut rest)?).checked_mul(self.quantum)?)?;
            if address < end {
                return Some(value);
            }
        }
        None
    }
}

/// Takes a number of up to 32 bits, of which each byte has seven bits, the lowest first.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..32).step_by(7) {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table with a function at 0x1000, whose frame has 24 bytes from its second instruction on, and the outermost
    /// function at 0x1020. Its source is line 7 of `/a.go`, and line 9 from 0x1010 on, where a call is inlined.
    fn table(has_start_lines: bool) -> Vec<u8> {
        let mut names = b"\0main.work\0runtime.goexit\0".to_vec();
        names.resize(32, 0);
        let units = [0_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat();
        let files = b"/a.go\0\0\0".to_vec();
        // Value tables: each step is the change of the value, with its sign in the lowest bit, and of the address.
        let values = [
            &[0][..],
            // Stack: 0 for 4 bytes, then 24.
            &[2, 4, 48, 28, 0],
            // File: 0 everywhere.
            &[2, 32, 0],
            // Lines: 7 for 16 bytes, then 9.
            &[16, 16, 4, 16, 0],
            // Inlined: -1 for 16 bytes, then 0.
            &[0, 16, 2, 16, 0],
        ]
        .concat();
        let describe = |name: u32, start: u32, tables: [u32; 4], flags: u8| {
            let [stack, file, line, inlined] = tables;
            let mut words = vec![start, name, 0, 0, stack, file, line, 3, 0];
            words.extend(has_start_lines.then_some(5));
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            bytes.extend([0, flags, 0, 0]);
            bytes.extend([0, 0, inlined].iter().flat_map(|word: &u32| word.to_le_bytes()));
            bytes
        };
        let functions = [describe(1, 0, [1, 6, 9, 14], 0), describe(11, 0x20, [0; 4], OUTERMOST)];
        // Three entries of 8 bytes, of which the last is the end.
        let place = |n: usize| (24 + functions[..n].iter().map(Vec::len).sum::<usize>()) as u32;
        let list = [[0, place(0)], [0x20, place(1)], [0x30, 0]];
        let list = list.iter().flatten().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let parts = [names, units, files, values, [list, functions.concat()].concat()];
        let mut at = HEADER_BYTES as u64;
        let mut header = MAGIC[usize::from(has_start_lines)].to_le_bytes().to_vec();
        header.extend([0, 0, 1, 8]);
        [2, 1, 0x1000].iter().for_each(|word: &u64| header.extend(word.to_le_bytes()));
        for part in &parts {
            header.extend(at.to_le_bytes());
            at += part.len() as u64;
        }
        [header, parts.concat()].concat()
    }

    #[test]
    fn functions_frames_and_lines_are_read_from_both_formats() {
        for has_start_lines in [false, true] {
            let bytes = table(has_start_lines);
            let table = Table::new(&bytes, 0x1000).unwrap();
            let steps = &mut GoSteps::default();
            let all: Vec<_> =
                table.functions().map(|(it, length)| (table.name(it, 99), it.start, length)).collect();
            let expected =
                [(Some(&b"main.work"[..]), 0x1000, 0x20), (Some(&b"runtime.goexit"[..]), 0x1020, 0x10)];
            assert_eq!(all, expected);
            let frames =
                [0x1000, 0x1003, 0x1004, 0x101f, 0x1020, 0xfff, 0x1030].map(|at| table.frame(at, steps));
            let of = |bytes| Some(GoFrame::Return(bytes));
            assert_eq!(frames, [of(0), of(0), of(24), of(24), Some(GoFrame::Outermost), None, None]);
            assert_eq!(table.source(0x1000, steps), Some((&b"/a.go"[..], 7)));
            assert_eq!(table.source(0x1010, steps), None, "an inlined call");
        }
    }

    /// A table of values that advances no address has no end. A stack reads a bounded number of its steps.
    #[test]
    fn the_steps_of_a_stack_are_bounded() {
        let mut bytes = table(true);
        let steps = &mut GoSteps(3);
        let frame =
            |bytes: &[u8], steps: &mut GoSteps| Table::new(bytes, 0x1000).unwrap().frame(0x1004, steps);
        assert_eq!(frame(&bytes, steps), Some(GoFrame::Return(24)));
        assert_eq!(frame(&bytes, steps), Some(GoFrame::Unknown), "one step is left, and two are needed");
        assert_eq!(steps.0, 0);
        let values = u32_at(&bytes, 56).unwrap() as usize;
        bytes.truncate(values + 1);
        bytes.extend([2, 0].repeat(2 * GO_STEPS_MAX));
        let functions = bytes.len() as u64;
        bytes[64..72].copy_from_slice(&functions.to_le_bytes());
        let list = [[0, 24], [0x20, 24], [0x30, 0]];
        bytes.extend(list.iter().flatten().flat_map(|word: &u32| word.to_le_bytes()));
        bytes.extend([0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0].iter().flat_map(|word: &u32| word.to_le_bytes()));
        let steps = &mut GoSteps::default();
        assert_eq!(frame(&bytes, steps), Some(GoFrame::Unknown));
        assert_eq!(steps.0, 0);
    }

    #[test]
    fn damaged_tables_end_each_search() {
        let whole = table(true);
        assert!(Table::new(&whole[..HEADER_BYTES - 1], 0).is_none() && Table::new(&[0; 200], 0).is_none());
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        let mut read = 0;
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next(4) {
                let at = next(bytes.len());
                bytes[at] = [0, 0xff, next(256) as u8][next(3)];
            }
            bytes.truncate(bytes.len() - next(8) * next(20));
            let Some(table) = Table::new(&bytes, 0x1000) else { continue };
            read += table.functions().filter(|(it, _)| table.name(*it, 99).is_some()).count();
            for address in [0, 0xfff, 0x1000, 0x1010, 0x1020, u64::MAX] {
                let steps = &mut GoSteps::default();
                let _ = (table.frame(address, steps), table.source(address, steps));
            }
        }
        assert!(read > 10_000, "{read}");
    }
}
