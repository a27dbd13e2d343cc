//! Reads sparse files in PAX format (GNU tar manual, "Storing Sparse Files": versions 0.0, 0.1 and 1.0).
//!
//! An archive does not store the holes of a sparse file. It stores the data between the holes, divided into *pieces*,
//! and a map with the offset and length of each piece. The `tar` crate does not know this format: it returns the
//! stored bytes as if they were the content.

use std::io::{self, BufRead as _, BufReader, Read};

use super::records::Records;

/// Prefix of the keywords of records for sparse files.
const PREFIX: &[u8] = b"GNU.sparse.";

/// Maximum number of pieces of a sparse file.
pub const PIECES_MAX: usize = 65_536;

/// Maximum length of a number in the map of version 1.0, in bytes, including its newline.
const NUMBER_BYTES_MAX: u64 = 21;

/// Length of the blocks to which version 1.0 pads its map, in bytes.
const BLOCK_BYTES: u64 = 512;

/// Description of a sparse file, from the records of its entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sparse {
    /// Path of the file. In some versions of the format only the records contain it, and the entry has a made-up path.
    pub(super) name: Option<Vec<u8>>,
    /// Length of the file with its holes, in bytes.
    pub(super) length: u64,
    /// Offset and length of each piece, in bytes. `None` in version 1.0, which has them at the start of the entry's
    /// data.
    pieces: Option<Vec<(u64, u64)>>,
}

impl Sparse {
    /// Returns the description of a sparse file, from the records of its entry. `None` if the file is not sparse.
    ///
    /// # Errors
    /// Returns an error if the records are damaged.
    pub(super) fn of(records: &Records) -> io::Result<Option<Sparse>> {
        let mut any = false;
        let (mut name, mut length, mut major, mut offset) = (None, None, 0, None);
        let mut pieces = Vec::new();
        for (key, value) in records.iter() {
            let Some(key) = key.strip_prefix(PREFIX) else { continue };
            any = true;
            match key {
                b"name" => name = Some(value.to_vec()),
                b"major" => major = number(value)?,
                b"size" | b"realsize" => length = Some(number(value)?),
                b"offset" => offset = Some(number(value)?),
                b"numbytes" => pieces.push((offset.take().ok_or_else(damaged)?, number(value)?)),
                b"map" => {
                    let numbers =
                        value.split(|&byte| byte == b',').map(number).collect::<io::Result<Vec<u64>>>()?;
                    let (pairs, rest) = numbers.as_chunks::<2>();
                    if !rest.is_empty() {
                        return Err(damaged());
                    }
                    pieces.extend(pairs.iter().map(|&[offset, bytes]| (offset, bytes)));
                }
                _ => {}
            }
        }
        if !any {
            return Ok(None);
        }
        let pieces = match major {
            0 => Some(pieces),
            1 => None,
            _ => return Err(damaged()),
        };
        Ok(Some(Sparse { name, length: length.ok_or_else(damaged)?, pieces }))
    }

    /// Returns a reader of the file's content, holes included. The entry has `stored` bytes of data.
    ///
    /// # Errors
    /// Returns an error if the map is damaged or does not match the length of the data.
    pub(super) fn reader<R: Read>(self, data: R, stored: u64) -> io::Result<Filled<BufReader<R>>> {
        let mut data = BufReader::new(data);
        let (pieces, map_bytes) = match self.pieces {
            Some(pieces) => (pieces, 0),
            None => read_map(&mut data)?,
        };
        let mut end = 0;
        let mut total = map_bytes;
        for &(offset, bytes) in &pieces {
            if offset < end {
                return Err(damaged());
            }
            end = offset.checked_add(bytes).ok_or_else(damaged)?;
            total = total.checked_add(bytes).ok_or_else(damaged)?;
        }
        if end > self.length || total != stored || pieces.len() > PIECES_MAX {
            return Err(damaged());
        }
        Ok(Filled { data, pieces: pieces.into_iter(), piece: None, position: 0, length: self.length })
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the map of a sparse file is damaged")
}

fn number(text: &[u8]) -> io::Result<u64> {
    let text = std::str::from_utf8(text).map_err(|_| damaged())?;
    text.trim_end_matches('\n').parse().map_err(|_| damaged())
}

/// Reads the map of version 1.0: the number of pieces, then the offset and length of each piece, one number on each
/// line. Returns the pieces and the length of the map in bytes.
fn read_map(data: &mut BufReader<impl Read>) -> io::Result<(Vec<(u64, u64)>, u64)> {
    let mut bytes = 0;
    let mut next = || {
        let mut line = Vec::new();
        bytes += data.by_ref().take(NUMBER_BYTES_MAX).read_until(b'\n', &mut line)? as u64;
        if line.ends_with(b"\n") { number(&line) } else { Err(damaged()) }
    };
    let count = next()?;
    if count > PIECES_MAX as u64 {
        return Err(damaged());
    }
    let mut pieces = Vec::new();
    for _ in 0..count {
        pieces.push((next()?, next()?));
    }
    let padding = bytes.next_multiple_of(BLOCK_BYTES) - bytes;
    if io::copy(&mut data.by_ref().take(padding), &mut io::sink())? != padding {
        return Err(damaged());
    }
    Ok((pieces, bytes + padding))
}

/// A reader of a sparse file's content: its pieces, with zeros between them.
#[derive(Debug)]
pub(super) struct Filled<R> {
    data: R,
    pieces: std::vec::IntoIter<(u64, u64)>,
    /// The current or next piece: its offset, and the number of its bytes that remain.
    piece: Option<(u64, u64)>,
    position: u64,
    length: u64,
}

impl<R: Read> Read for Filled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_none_or(|(_, left)| left == 0) {
            match self.pieces.next() {
                Some(piece) => self.piece = Some(piece),
                None => {
                    self.piece = None;
                    break;
                }
            }
        }
        let upto = |bytes: u64| usize::try_from(bytes).map_or(buffer.len(), |bytes| bytes.min(buffer.len()));
        let (offset, left) = self.piece.unwrap_or((self.length, 0));
        let read = if self.position < offset {
            let zeros = upto(offset - self.position);
            buffer[..zeros].fill(0);
            zeros
        } else {
            let most = upto(left);
            let read = self.data.read(&mut buffer[..most])?;
            if read == 0 && most > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.piece = self.piece.map(|(offset, left)| (offset + read as u64, left - read as u64));
            read
        };
        self.position += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(pairs: &[(&str, &str)]) -> Records {
        let mut bytes = Vec::new();
        for (key, value) in pairs {
            let rest = format!(" {key}={value}\n");
            let mut length = rest.len() + 1;
            while length != rest.len() + length.to_string().len() {
                length += 1;
            }
            bytes.extend(format!("{length}{rest}").into_bytes());
        }
        let mut records = Records::default();
        records.take(&mut bytes);
        assert!(!records.damaged);
        records
    }

    fn content(pairs: &[(&str, &str)], data: &[u8]) -> io::Result<Vec<u8>> {
        let sparse = Sparse::of(&records(pairs))?.expect("it is sparse");
        let mut content = Vec::new();
        sparse.reader(data, data.len() as u64)?.read_to_end(&mut content)?;
        Ok(content)
    }

    const SIZE: (&str, &str) = ("GNU.sparse.size", "9");

    #[test]
    fn every_version_has_its_holes() {
        let wanted = b"\0\0ab\0\0c\0\0".to_vec();
        let of_0_0 = [
            SIZE,
            ("GNU.sparse.numblocks", "2"),
            ("GNU.sparse.offset", "2"),
            ("GNU.sparse.numbytes", "2"),
            ("GNU.sparse.offset", "6"),
            ("GNU.sparse.numbytes", "1"),
        ];
        assert_eq!(content(&of_0_0, b"abc").unwrap(), wanted);
        assert_eq!(content(&[SIZE, ("GNU.sparse.map", "2,2,6,1")], b"abc").unwrap(), wanted);
        let mut data = b"2\n2\n2\n6\n1\n".to_vec();
        data.resize(512, 0);
        data.extend(b"abc");
        let of_1_0 = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "9")];
        assert_eq!(content(&of_1_0, &data).unwrap(), wanted);
        // If a file ends with a hole, a last piece of length zero marks the end.
        assert_eq!(content(&[SIZE, ("GNU.sparse.map", "2,2,6,1,9,0")], b"abc").unwrap(), wanted);
        assert_eq!(Sparse::of(&records(&[("path", "x")])).unwrap(), None);
    }

    #[test]
    fn damaged_maps_are_refused() {
        for (pairs, data) in [
            (&[SIZE, ("GNU.sparse.map", "2,2,3,1")][..], &b"abc"[..]),
            (&[SIZE, ("GNU.sparse.map", "2,2,6,4")], b"abcdef"),
            (&[SIZE, ("GNU.sparse.map", "2,2,6")], b"ab"),
            (&[SIZE, ("GNU.sparse.map", "2,2")], b"abc"),
            (&[SIZE, ("GNU.sparse.map", "18446744073709551615,1")], b"a"),
            (&[("GNU.sparse.map", "2,2")], b"ab"),
            (&[SIZE, ("GNU.sparse.numbytes", "2")], b"ab"),
            (&[SIZE, ("GNU.sparse.major", "2")], b""),
            (&[SIZE, ("GNU.sparse.major", "1")], b""),
            (&[SIZE, ("GNU.sparse.major", "1")], b"99999999999999999999999"),
            (&[SIZE, ("GNU.sparse.major", "1")], b"100000\n"),
        ] {
            assert!(content(pairs, data).is_err(), "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn no_map_panics(map in "[0-9,]{0,40}", size in 0_u64..100, data in proptest::collection::vec(any::<u8>(), 0..64)) {
            let size = size.to_string();
            let _ = content(&[("GNU.sparse.size", &size), ("GNU.sparse.map", &map)], &data);
            let _ = content(&[("GNU.sparse.realsize", &size), ("GNU.sparse.major", "1")], &data);
        }
    }
}
