//! Encodes AML, the byte code in which ACPI tables describe devices (ACPI 6.5, section 20.2). Covers only the terms
//! that the DSDT contains. Each function returns the bytes of one term.

const NAME: u8 = 0x08;
const BYTE: u8 = 0x0a;
const WORD: u8 = 0x0b;
const DWORD: u8 = 0x0c;
const STRING: u8 = 0x0d;
const SCOPE: u8 = 0x10;
const BUFFER: u8 = 0x11;
const PACKAGE: u8 = 0x12;
const METHOD: u8 = 0x14;
const DUAL_NAME: u8 = 0x2e;
const EXTENDED: u8 = 0x5b;
const DEVICE: u8 = 0x82;
const NOTIFY: u8 = 0x86;

/// Returns an integer in its shortest form. The integers 0 and 1 have opcodes of their own (ZeroOp, OneOp).
pub(super) fn integer(value: u32) -> Vec<u8> {
    match value.to_le_bytes() {
        [low @ (0 | 1), 0, 0, 0] => vec![low],
        [low, 0, 0, 0] => vec![BYTE, low],
        [low, high, 0, 0] => vec![WORD, low, high],
        bytes => [&[DWORD][..], &bytes].concat(),
    }
}

/// Returns a string constant. `text` must be ASCII.
pub(super) fn string(text: &str) -> Vec<u8> {
    [&[STRING], text.as_bytes(), &[0]].concat()
}

/// Returns the ID of a Plug and Play device: three letters of 5 bits each, then four hexadecimal digits, most
/// significant byte first (ACPI 19.3.4).
pub(super) fn eisa_id(letters: [u8; 3], digits: u16) -> Vec<u8> {
    let letters = letters.iter().fold(0, |id: u32, letter| id << 5 | u32::from(letter - b'@'));
    integer((letters << 16 | u32::from(digits)).swap_bytes())
}

/// Returns a name string of one or two segments of four characters each. A leading backslash means the root.
pub(super) fn path(path: &str) -> Vec<u8> {
    let (root, segments) = path.strip_prefix('\\').map_or(("", path), |rest| ("\\", rest));
    let dual: &[u8] = if segments.contains('.') { &[DUAL_NAME] } else { &[] };
    [root.as_bytes(), dual, segments.replace('.', "").as_bytes()].concat()
}

/// Returns the declaration of a name with a value.
pub(super) fn name(name: &str, value: &[u8]) -> Vec<u8> {
    [&[NAME], &path(name)[..], value].concat()
}

/// Returns an AML package (an array) of integers.
pub(super) fn package(values: &[u32]) -> Vec<u8> {
    // The count fits into a byte, because the DSDT's packages have a few elements.
    let count = values.len() as u8;
    let values: Vec<u8> = values.iter().flat_map(|&value| integer(value)).collect();
    sized(&[PACKAGE], &[&[count], &values[..]].concat())
}

/// Returns the declaration of a device that contains `terms`.
pub(super) fn device(name: &str, terms: &[Vec<u8>]) -> Vec<u8> {
    sized(&[EXTENDED, DEVICE], &[path(name), terms.concat()].concat())
}

/// Returns a scope that contains `terms`.
pub(super) fn scope(name: &str, terms: &[Vec<u8>]) -> Vec<u8> {
    sized(&[SCOPE], &[path(name), terms.concat()].concat())
}

/// Returns the declaration of a serialised method with this number of arguments.
pub(super) fn serialized_method(name: &str, arguments: u8, terms: &[Vec<u8>]) -> Vec<u8> {
    const SERIALIZED: u8 = 1 << 3;
    sized(&[METHOD], &[path(name), vec![arguments | SERIALIZED], terms.concat()].concat())
}

/// Returns a term (AML's Notify) that notifies `object` with `value`.
pub(super) fn notify(object: &str, value: u32) -> Vec<u8> {
    [vec![NOTIFY], path(object), integer(value)].concat()
}

/// Returns a buffer of resource descriptors, followed by the end tag (ACPI 6.4).
pub(super) fn resources(descriptors: &[Vec<u8>]) -> Vec<u8> {
    // A checksum of 0 tells the guest not to verify it.
    const END: [u8; 2] = [0x79, 0];
    let content = [&descriptors.concat()[..], &END].concat();
    sized(&[BUFFER], &[&integer(content.len() as u32)[..], &content].concat())
}

/// Returns the descriptor of `length` I/O ports from `first` on, decoded in 16 bits (ACPI 6.4.2.5).
pub(super) fn ports(first: u16, length: u8) -> Vec<u8> {
    let [low, high] = first.to_le_bytes();
    vec![0x47, 1, low, high, low, high, 1, length]
}

/// Returns the descriptor of a fixed, writable range of memory (ACPI 6.4.3.4).
pub(super) fn memory(base: u32, length: u32) -> Vec<u8> {
    [&[0x86, 9, 0, 1][..], &base.to_le_bytes(), &length.to_le_bytes()].concat()
}

/// Returns the descriptor of an active-high, exclusive interrupt at pin `gsi` (ACPI 6.4.3.6).
pub(super) fn interrupt(gsi: u8, is_edge: bool) -> Vec<u8> {
    const CONSUMER: u8 = 1;
    vec![0x89, 6, 0, CONSUMER | u8::from(is_edge) << 1, 1, gsi, 0, 0, 0]
}

/// Encodes an operator, the length of its content (PkgLength, ACPI 20.2.4), and the content.
fn sized(operator: &[u8], content: &[u8]) -> Vec<u8> {
    // The encoded length includes its own bytes. If it is one byte, that byte holds 6 bits of the length, otherwise the
    // first byte holds 4. The masks and shifts are exact for lengths below 2^20; a DSDT has some kilobytes.
    let length = match content.len() {
        n @ 0..=62 => vec![n as u8 + 1],
        n @ 63..=4093 => vec![1 << 6 | (n + 2) as u8 & 0xf, ((n + 2) >> 4) as u8],
        n => vec![2 << 6 | (n + 3) as u8 & 0xf, ((n + 3) >> 4) as u8, ((n + 3) >> 12) as u8],
    };
    [operator, &length, content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_their_own_bytes() {
        let length = |content: usize, bytes: usize| sized(&[SCOPE], &vec![0; content])[1..=bytes].to_vec();
        assert_eq!((length(0, 1), length(62, 1)), (vec![1], vec![63]));
        assert_eq!((length(63, 2), length(4093, 2)), (vec![0x41, 4], vec![0x4f, 0xff]));
        assert_eq!(length(4094, 3), [0x81, 0, 1]);
    }

    #[test]
    fn integers_have_their_shortest_form() {
        let forms = [0, 1, 2, 0xff, 0x100, 0xffff, 0x1_0000].map(|value| integer(value).len());
        assert_eq!(forms, [1, 1, 2, 2, 3, 3, 5]);
    }
}
