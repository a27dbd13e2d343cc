//! The compressed symbol table in a kernel's read-only data (Linux's `scripts/kallsyms.c`).
//!
//! No pointer leads to the table, so this module searches for its parts:
//!
//! - The token table has 256 strings, from which all names are composed. In most kernels, the token at the character
//!   code of a digit is the digit itself, so the search looks for the ten digits in a row. The token index after the
//!   table contains the offset of each token. If the offsets agree with the tokens, the search has found the table.
//! - The names lie before the token table. A name is stored as a length and a list of token numbers.
//! - The markers lie between names and tokens. They are the offsets of every 256th name.
//! - Linux 6.2, 6.3 and later releases of 6.1 have an index of three bytes per name between markers and tokens.
//! - Addresses are stored as 32-bit offsets. Up to Linux 6.3 they lie before the names, since 6.4 after the tokens.

use super::{NAME_BYTES_MAX, Named, Raw};
use crate::bytes::{u16_at, u32_at, u64_at};

const TOKENS: usize = 256;
/// Maximum distance from the beginning of the token table to the end of its first token, in bytes. The tokens of all
/// kernels are shorter. The distance is a multiple of [`ALIGNMENT`], because the search tries only aligned offsets.
const TOKEN_BYTES_MAX: usize = 64;
/// Maximum length of the token table, in bytes. Offsets in its index have 16 bits.
const TOKENS_BYTES_MAX: usize = 1 << 16;
/// Maximum number of places in a file that are tried as a token table. A place is tried if it has the tokens of the ten
/// digits.
const TRIES_MAX: usize = 64;
const TOKEN_INDEX_BYTES: usize = 2 * TOKENS;
/// Number of names that each marker covers.
const MARKER_NAMES: usize = 256;
/// Maximum size of the compressed names that one marker covers, in bytes. A name has at most 512 characters.
const MARKER_BYTES_MAX: usize = MARKER_NAMES * 514;
const ALIGNMENT: usize = 8;

/// Returns all symbols, or `None` if the file has no table of a known layout.
pub(super) fn symbols(file: &[u8]) -> Option<Vec<Raw>> {
    let (tokens_start, tokens) = token_table(file)?;
    let (count_at, names) = names_before(file, tokens_start, &tokens, &mut Work(WORK_MAX))?;
    let index_end = align(token_index(file, tokens_start, &tokens)? + TOKEN_INDEX_BYTES);
    addresses_before(file, count_at, &names).or_else(|| addresses_after(file, index_end, &names))
}

fn align(offset: usize) -> usize {
    offset.next_multiple_of(ALIGNMENT)
}

/// Finds the token table. Returns its offset and its tokens.
fn token_table(file: &[u8]) -> Option<(usize, Vec<&[u8]>)> {
    let needle = b"\x000\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00";
    let mut from = 0;
    for _ in 0..TRIES_MAX {
        let found = find(file.get(from..)?, needle)?;
        let zero = from + found + 1;
        from = zero;
        // 48 tokens come before the token of '0'. Each of them, except the first, begins after the zero byte that ends
        // the token before it.
        let mut second = zero;
        for _ in 1..usize::from(b'0') {
            let (begin, end) = (second.saturating_sub(TOKENS_BYTES_MAX), second.checked_sub(1)?);
            second = begin + file.get(begin..end)?.iter().rposition(|b| *b == 0)? + 1;
        }
        let latest = second.checked_sub(1)? & !(ALIGNMENT - 1);
        for back in (0..=TOKEN_BYTES_MAX).step_by(ALIGNMENT) {
            let start = latest.checked_sub(back)?;
            let Some(tokens) = tokens_at(file, start) else { continue };
            if token_index(file, start, &tokens).is_some() {
                return Some((start, tokens));
            }
        }
    }
    None
}

fn tokens_at(file: &[u8], start: usize) -> Option<Vec<&[u8]>> {
    let mut tokens = Vec::with_capacity(TOKENS);
    let mut rest = file.get(start..file.len().min(start.saturating_add(TOKENS_BYTES_MAX)))?;
    while tokens.len() < TOKENS {
        let end = rest.iter().position(|b| *b == 0)?;
        tokens.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    Some(tokens)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Returns the offset of the token index, or `None` if its entries are not the offsets of `tokens`.
fn token_index(file: &[u8], start: usize, tokens: &[&[u8]]) -> Option<usize> {
    let length: usize = tokens.iter().map(|token| token.len() + 1).sum();
    let index = align(start + length);
    let mut offset = 0;
    for (i, token) in tokens.iter().enumerate() {
        if usize::from(u16_at(file, index + 2 * i)?) != offset {
            return None;
        }
        offset += token.len() + 1;
    }
    Some(index)
}

/// Maximum number of names in a compressed symbol table. A kernel with every option enabled has a tenth as many.
const NAMES_MAX: usize = 1 << 21;
/// Maximum number of decoded bytes per compressed byte, over all names. Kernels have about two.
const EXPANSION_MAX: usize = 8;
/// Maximum number of markers and names that the search for names reads. A search in a real kernel reads far fewer.
const WORK_MAX: usize = 8 * NAMES_MAX;

/// Number of markers and names that the search may still read.
struct Work(usize);

impl Work {
    /// Subtracts `number`. Returns `None` if less is left.
    fn count(&mut self, number: usize) -> Option<()> {
        self.0 = self.0.checked_sub(number)?;
        Some(())
    }
}

/// Bytes per name of the sorted index with which the kernel looks up names.
const SEQUENCE_BYTES: usize = 3;

/// Finds the names before the token table, with or without an index in between. Returns the offset of their count, and
/// the names.
fn names_before(
    file: &[u8],
    tokens_start: usize,
    tokens: &[&[u8]],
    work: &mut Work,
) -> Option<(usize, Vec<String>)> {
    let mut gap = 0;
    while gap <= NAMES_MAX * SEQUENCE_BYTES {
        let end = tokens_start.checked_sub(gap)?;
        work.count(1)?;
        if let Some((start, markers)) = markers(file, end, work) {
            let found = names(file, start, &markers, tokens, work);
            let fits = |n: usize| gap == 0 || gap == align(n * SEQUENCE_BYTES);
            if let Some((count_at, names)) = found.filter(|(_, names)| fits(names.len())) {
                return Some((count_at, names));
            }
        }
        gap += ALIGNMENT;
    }
    None
}

/// Reads the markers that end at `end`: a 0, then ascending offsets. Returns their offset and the markers.
fn markers(file: &[u8], end: usize, work: &mut Work) -> Option<(usize, Vec<usize>)> {
    let mut at = end.checked_sub(4)?;
    // Zeros may pad the array.
    if u32_at(file, at)? == 0 {
        at = at.checked_sub(4)?;
    }
    let mut markers = vec![u32_at(file, at)? as usize];
    while *markers.last()? != 0 {
        at = at.checked_sub(4)?;
        let marker = u32_at(file, at)? as usize;
        let step = markers.last()?.checked_sub(marker)?;
        if step == 0 || step > MARKER_BYTES_MAX {
            return None;
        }
        markers.push(marker);
        work.count(1)?;
    }
    markers.reverse();
    (markers.len() > 1).then_some((at, markers))
}

/// Finds the names that end at `end`. Returns the offset of their count, and the names, each with its type letter in
/// front.
fn names(
    file: &[u8],
    end: usize,
    markers: &[usize],
    tokens: &[&[u8]],
    work: &mut Work,
) -> Option<(usize, Vec<String>)> {
    let (groups, last) = (markers.len(), *markers.last()?);
    let latest = end.checked_sub(last)?;
    let earliest = latest.saturating_sub(MARKER_BYTES_MAX);
    let mut start = latest & !(ALIGNMENT - 1);
    while start > earliest && start >= ALIGNMENT {
        let count = u32_at(file, start - ALIGNMENT)? as usize;
        work.count(1)?;
        if count > (groups - 1) * MARKER_NAMES
            && count <= (groups * MARKER_NAMES).min(NAMES_MAX)
            && let Some(names) = read_names(file.get(start..end)?, count, markers, tokens, work)
        {
            return Some((start - ALIGNMENT, names));
        }
        start -= ALIGNMENT;
    }
    None
}

/// Reads `count` names that agree with the markers and fill `bytes` except for padding. Returns `None` if the decoded
/// names exceed [`EXPANSION_MAX`] bytes for each byte of `bytes`, which kernels never do.
fn read_names(
    bytes: &[u8],
    count: usize,
    markers: &[usize],
    tokens: &[&[u8]],
    work: &mut Work,
) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let (mut at, mut left) = (0, bytes.len().saturating_mul(EXPANSION_MAX));
    for i in 0..count {
        work.count(1)?;
        if i % MARKER_NAMES == 0 && *markers.get(i / MARKER_NAMES)? != at {
            return None;
        }
        let mut length = usize::from(*bytes.get(at)?);
        at += 1;
        if length & 0x80 != 0 {
            length = (length & 0x7f) | usize::from(*bytes.get(at)?) << 7;
            at += 1;
        }
        let coded = bytes.get(at..at + length)?;
        at += length;
        let name = coded.iter().flat_map(|code| tokens[usize::from(*code)]).copied();
        let name: Vec<u8> = name.take(NAME_BYTES_MAX + 1).collect();
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let name = String::from_utf8_lossy(&name).into_owned();
        left = left.checked_sub(name.len())?;
        names.push(name);
    }
    (bytes.len() - at < ALIGNMENT).then_some(names)
}

/// Reads the addresses of a kernel up to Linux 6.3. The file contains the offsets, their base and the count of names,
/// in this order.
fn addresses_before(file: &[u8], count_at: usize, names: &[String]) -> Option<Vec<Raw>> {
    let base_at = count_at.checked_sub(8)?;
    let offsets = base_at.checked_sub(align(4 * names.len()))?;
    addresses(file, offsets, u64_at(file, base_at)?, names)
}

/// Reads the addresses of a kernel since Linux 6.4. The file contains the offsets after the token index, then their
/// base.
fn addresses_after(file: &[u8], offsets: usize, names: &[String]) -> Option<Vec<Raw>> {
    let base_at = align(offsets.checked_add(4 * names.len())?);
    addresses(file, offsets, u64_at(file, base_at)?, names)
}

fn addresses(file: &[u8], offsets: usize, base: u64, names: &[String]) -> Option<Vec<Raw>> {
    // The base must lie in the kernel's half of the address space.
    if base >> 47 != 0x1ffff {
        return None;
    }
    // With CONFIG_KALLSYMS_ABSOLUTE_PERCPU, symbols outside the per-CPU area are stored as the one's complement of
    // their offset.
    let text = names.iter().position(|name| name.get(1..) == Some("_text"))?;
    let complement = u32_at(file, offsets + 4 * text)? != 0;
    let mut symbols = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let offset = u32_at(file, offsets + 4 * i)?;
        let relative = if complement { !offset } else { offset };
        // Symbols of the per-CPU area are not complements. Their offset is the value.
        let of_cpu = complement && offset & 0x8000_0000 == 0;
        let value = if of_cpu { u64::from(offset) } else { base.checked_add(u64::from(relative))? };
        let is_code = name.starts_with(['t', 'T', 'w', 'W']) && !of_cpu;
        let Some(name) = name.get(1..) else { continue };
        symbols.push((value, name.to_owned(), if is_code { Named::Code } else { Named::Data }));
    }
    Some(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0xffff_ffff_8100_0000;

    /// Returns a file with a table of 600 functions. If `sequences` is true, the table has the index of names. If
    /// `late` is true, the addresses follow the tokens.
    fn kernel(sequences: bool, late: bool) -> Vec<u8> {
        let named: Vec<(u32, String)> = (0..600)
            .map(|i| (i * 16, if i == 0 { "T_text".to_owned() } else { format!("tfunction_{i}") }))
            .collect();
        let mut file = b"some code \xff\xff\x00".to_vec();
        let pad = |file: &mut Vec<u8>| file.resize(align(file.len()), 0);
        let offsets = |file: &mut Vec<u8>, complement: bool| {
            pad(file);
            for (offset, _) in &named {
                file.extend((if complement { !offset } else { *offset }).to_le_bytes());
            }
            pad(file);
            file.extend(BASE.to_le_bytes());
        };
        if late {
            pad(&mut file);
        } else {
            offsets(&mut file, true);
        }
        file.extend(600u64.to_le_bytes());
        let (mut names, mut markers) = (Vec::new(), Vec::new());
        for (i, (_, name)) in named.iter().enumerate() {
            if i % MARKER_NAMES == 0 {
                markers.push(names.len() as u32);
            }
            names.push(name.len() as u8);
            names.extend(name.bytes());
        }
        file.extend(names);
        pad(&mut file);
        markers.iter().for_each(|marker| file.extend(marker.to_le_bytes()));
        pad(&mut file);
        if sequences {
            (0..600u32).for_each(|i| file.extend(&(i | 0x0f_0000).to_be_bytes()[1..]));
            pad(&mut file);
        }
        let (mut tokens, mut index) = (Vec::new(), Vec::new());
        for byte in 0..=255u8 {
            index.extend((tokens.len() as u16).to_le_bytes());
            tokens.extend((byte != 0).then_some(byte));
            tokens.push(0);
        }
        file.extend(tokens);
        pad(&mut file);
        file.extend(index);
        if late {
            offsets(&mut file, false);
        }
        file
    }

    #[test]
    fn each_shape_is_read() {
        for (sequences, late) in [(false, false), (true, false), (false, true)] {
            let symbols = symbols(&kernel(sequences, late)).expect("a table");
            assert_eq!(symbols.len(), 600, "{sequences} {late}");
            assert_eq!(symbols[599], (BASE + 599 * 16, "function_599".to_owned(), Named::Code));
        }
    }

    /// One byte of a compressed name can stand for a token of 64 KiB.
    #[test]
    fn names_are_bounded() {
        let read = |token: &[u8], codes: u8, count: usize| {
            let tokens: Vec<&[u8]> = vec![token; TOKENS];
            let bytes = [vec![codes], vec![b'x'; codes.into()]].concat().repeat(count);
            let names = read_names(&bytes, count, &[0], &tokens, &mut Work(WORK_MAX));
            names.map(|names| names.iter().map(String::len).sum::<usize>())
        };
        assert_eq!(read(b"four", 3, 200), Some(12 * 200));
        assert_eq!(read(&[b'x'; NAME_BYTES_MAX + 1], 1, 1), None, "a long name");
        assert_eq!(read(&[b'x'; 60], 3, 200), None, "far more than their code");
        assert_eq!(read(b"", 0, 201), Some(0));
    }

    /// Every offset before the tokens looks like the end of many markers, but no names match them.
    #[test]
    fn the_search_for_names_ends() {
        let markers: Vec<u8> = (0..1u32 << 19).flat_map(u32::to_le_bytes).collect();
        let tokens: Vec<&[u8]> = vec![b"x"; TOKENS];
        let mut work = Work(WORK_MAX);
        assert!(names_before(&markers, markers.len(), &tokens, &mut work).is_none());
        assert_eq!(work.0, 0, "it ended for the work");
    }

    #[test]
    fn a_cut_table_is_no_table() {
        let file = kernel(true, false);
        for length in (0..file.len()).step_by(7) {
            assert_eq!(symbols(&file[..length]).map(|s| s.len()), None, "{length}");
        }
    }
}
