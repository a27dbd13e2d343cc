//! Decompression of kernels, modules, layers of images, and parts of packages.
//!
//! All this data is untrusted. [`expansion`] bounds how long a stream may become, and each caller has a bound of its
//! own.

pub mod expansion;

use std::io::{self, BufRead, Read};

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// gzip (RFC 1952).
    Gzip,
    /// The xz container.
    Xz,
    /// LZMA without a container. Old kernels use it.
    Lzma,
    /// LZ4 legacy frames. The Linux build writes them.
    Lz4Legacy,
    /// Zstandard frames.
    Zstd,
    /// The bzip2 format.
    Bzip2,
}

impl Format {
    /// Returns the format of data that starts with these bytes.
    #[must_use]
    pub fn detect(start: &[u8]) -> Option<Format> {
        const MAGIC: [(&[u8], Format); 6] = [
            (&[0x1f, 0x8b], Format::Gzip),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], Format::Xz),
            (&[0x5d, 0, 0], Format::Lzma),
            (&[0x02, 0x21, 0x4c, 0x18], Format::Lz4Legacy),
            (&[0x28, 0xb5, 0x2f, 0xfd], Format::Zstd),
            (b"BZh", Format::Bzip2),
        ];
        MAGIC.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, format)| format)
    }

    /// Returns the format that the suffix of a file's name stands for. `None` if the file is not compressed.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Format> {
        match name.rsplit_once('.')?.1 {
            "gz" => Some(Format::Gzip),
            "xz" => Some(Format::Xz),
            "lzma" => Some(Format::Lzma),
            "zst" => Some(Format::Zstd),
            "bz2" => Some(Format::Bzip2),
            _ => None,
        }
    }

    /// Decompresses `packed` to at most `bytes_max` bytes. Ignores bytes after the compressed data: in a kernel, the
    /// uncompressed length follows the data.
    ///
    /// # Errors
    /// Returns an error if the data is damaged or decompresses to more than `bytes_max` bytes.
    pub fn unpack(self, packed: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
        if self == Format::Lz4Legacy {
            return unpack_lz4_legacy(packed, bytes_max);
        }
        let mut unpacked = Vec::new();
        self.reader(packed)?.take(bytes_max + 1).read_to_end(&mut unpacked)?;
        bounded(unpacked, bytes_max)
    }

    /// Returns a streaming decoder for a sequence of members or frames. Tools that compress in parallel write several
    /// of them. With xz and LZMA, decodes only the first stream. Does not support [`Format::Lz4Legacy`].
    ///
    /// # Errors
    /// See [`Format::reader`].
    pub fn reader_of_all<'a>(self, packed: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        use expansion::bounded;
        match self {
            Format::Gzip => bounded(packed, |packed| Ok(flate2::bufread::MultiGzDecoder::new(packed))),
            Format::Zstd => bounded(packed, zstd::stream::read::Decoder::with_buffer),
            Format::Bzip2 => bounded(packed, |packed| Ok(bzip2::bufread::MultiBzDecoder::new(packed))),
            other => other.reader(packed),
        }
    }

    /// Returns a streaming decoder for one member or frame. Does not support [`Format::Lz4Legacy`], which only kernels
    /// use. Reading fails with [`expansion::Expanded`] if the stream becomes too long.
    ///
    /// # Errors
    /// Returns an error if the decoder cannot be created, or if the format does not support streaming.
    pub fn reader<'a>(self, packed: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        use expansion::bounded;
        use liblzma::{bufread::XzDecoder, stream::Stream};
        match self {
            Format::Gzip => bounded(packed, |packed| Ok(flate2::bufread::GzDecoder::new(packed))),
            Format::Xz => bounded(packed, |packed| {
                Ok(XzDecoder::new_stream(packed, Stream::new_stream_decoder(LZMA_MEMORY_BYTES_MAX, 0)?))
            }),
            Format::Lzma => bounded(packed, |packed| {
                Ok(XzDecoder::new_stream(packed, Stream::new_lzma_decoder(LZMA_MEMORY_BYTES_MAX)?))
            }),
            Format::Zstd => {
                bounded(packed, |packed| Ok(zstd::stream::read::Decoder::with_buffer(packed)?.single_frame()))
            }
            Format::Bzip2 => bounded(packed, |packed| Ok(bzip2::bufread::BzDecoder::new(packed))),
            Format::Lz4Legacy => Err(io::Error::other("LZ4 legacy frames are not read as a stream")),
        }
    }
}

/// Maximum memory of an LZMA decoder, in bytes. A hostile file can demand a dictionary of up to 4 GiB.
const LZMA_MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Maximum length of a block of a legacy frame, decompressed, in bytes.
const LZ4_BLOCK_BYTES: usize = 8 << 20;

/// Decompresses legacy frames: a magic number, then blocks. A block is a length of four bytes and LZ4 data. The data
/// ends where no complete block follows. One byte of LZ4 decompresses to at most 255 bytes.
fn unpack_lz4_legacy(packed: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut rest = &packed[4..];
    let mut unpacked = Vec::new();
    let mut block = vec![0; LZ4_BLOCK_BYTES];
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        // In a kernel, the uncompressed length follows the last block. The loop reads this number as the length
        // of a block. The number exceeds the remaining bytes, so the loop ends.
        let Some((data, after)) = after.split_at_checked(length) else { break };
        let written = lz4_flex::block::decompress_into(data, &mut block).map_err(io::Error::other)?;
        unpacked.extend_from_slice(&block[..written]);
        if unpacked.len() as u64 > bytes_max {
            break;
        }
        rest = after;
    }
    bounded(unpacked, bytes_max)
}

fn bounded(unpacked: Vec<u8>, bytes_max: u64) -> io::Result<Vec<u8>> {
    if unpacked.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it unpacks to more than {bytes_max} bytes")));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::Format;
    use super::expansion::{EXPANSION_MAX, Expanded, tests::FREE};
    use std::io::Write as _;

    fn text() -> Vec<u8> {
        (0..20_000u32).flat_map(|n| (n / 7).to_string().into_bytes()).collect()
    }

    fn packed() -> Vec<(Format, Vec<u8>)> {
        let text = text();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&text).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(&text).unwrap();
        // An LZ4 block of literals only: the token 0xf0, then the length in steps of 255 (LZ4 block format).
        let mut lz4 = vec![0x02, 0x21, 0x4c, 0x18];
        for chunk in text.chunks(60_000) {
            let mut block = vec![0xf0];
            let mut rest = chunk.len() - 15;
            while rest >= 255 {
                block.push(255);
                rest -= 255;
            }
            block.push(u8::try_from(rest).unwrap());
            block.extend_from_slice(chunk);
            lz4.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
            lz4.extend(block);
        }
        vec![
            (Format::Gzip, gzip.finish().unwrap()),
            (Format::Xz, xz.finish().unwrap()),
            (Format::Bzip2, bzip2.finish().unwrap()),
            (Format::Zstd, zstd::encode_all(text.as_slice(), 1).unwrap()),
            (Format::Lz4Legacy, lz4),
        ]
    }

    #[test]
    fn an_xz_stream_cannot_demand_gigabytes_of_memory() {
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
        xz.write_all(b"text").unwrap();
        let mut data = xz.finish().unwrap();
        // The header of the first block (The .xz File Format, 3.1): length, flags, LZMA2, size of the dictionary.
        let length = (usize::from(data[12]) + 1) * 4;
        assert_eq!(data[14..16], [0x21, 1]);
        data[16] = 40;
        let mut sum = flate2::Crc::new();
        sum.update(&data[12..12 + length - 4]);
        data[12 + length - 4..12 + length].copy_from_slice(&sum.sum().to_le_bytes());
        let error = Format::Xz.unpack(&data, 1 << 20).unwrap_err().to_string();
        assert!(error.contains("memory"), "{error}");
    }

    #[test]
    fn every_format_is_detected_and_unpacked_despite_appended_data() {
        for (format, mut data) in packed() {
            assert_eq!(Format::detect(&data), Some(format));
            assert_eq!(format.unpack(&data, 1 << 20).unwrap(), text(), "{format:?}");
            data.extend((u32::try_from(text().len()).unwrap()).to_le_bytes());
            assert_eq!(format.unpack(&data, 1 << 20).unwrap(), text(), "{format:?} with its length appended");
        }
    }

    /// Number of decompressed bytes that are always allowed in these tests.
    const FREE_BYTES: u64 = 1 << 20;

    /// Returns many equal bytes, compressed in each format that can compress them so far that the stream exceeds the
    /// bound.
    fn bombs() -> Vec<(Format, Vec<u8>)> {
        let bytes = || std::io::Read::take(std::io::repeat(1), 16 * FREE_BYTES);
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
        std::io::copy(&mut bytes(), &mut xz).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        std::io::copy(&mut bytes(), &mut bzip2).unwrap();
        let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
        options.dict_size(1 << 20);
        let alone = liblzma::stream::Stream::new_lzma_encoder(&options).unwrap();
        let mut lzma = liblzma::write::XzEncoder::new_stream(Vec::new(), alone);
        std::io::copy(&mut bytes(), &mut lzma).unwrap();
        vec![
            (Format::Xz, xz.finish().unwrap()),
            (Format::Lzma, lzma.finish().unwrap()),
            (Format::Bzip2, bzip2.finish().unwrap()),
            (Format::Zstd, zstd::encode_all(bytes(), 1).unwrap()),
        ]
    }

    #[test]
    fn a_short_stream_does_not_become_a_long_one() {
        FREE.set(FREE_BYTES);
        for (format, packed) in bombs() {
            let readers = [format.reader(packed.as_slice()), format.reader_of_all(packed.as_slice())];
            for reader in readers {
                let mut given = 0;
                let mut reader = reader.unwrap();
                let error = loop {
                    match std::io::Read::read(&mut reader, &mut [0; 64 << 10]) {
                        Ok(0) => panic!("{format:?}: {given} bytes from {}", packed.len()),
                        Ok(length) => given += length as u64,
                        Err(error) => break error,
                    }
                };
                assert!(Expanded::is(&error), "{format:?}: {error}");
                assert!(given <= FREE_BYTES + EXPANSION_MAX * packed.len() as u64, "{format:?}: {given}");
            }
        }
    }

    #[test]
    fn gzip_is_never_refused() {
        FREE.set(FREE_BYTES);
        let bytes = FREE_BYTES * 16;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), bytes), &mut gzip).unwrap();
        let packed = gzip.finish().unwrap();
        assert!(bytes / packed.len() as u64 > EXPANSION_MAX * 9 / 10, "{}", packed.len());
        let mut reader = Format::Gzip.reader_of_all(packed.as_slice()).unwrap();
        assert_eq!(std::io::copy(&mut reader, &mut std::io::sink()).unwrap(), bytes);
    }

    #[test]
    fn damage_and_bombs_are_errors() {
        for (format, data) in packed() {
            assert!(format.unpack(&data, 1000).is_err(), "{format:?} over its bound");
            let mut broken = data.clone();
            let middle = broken.len() / 2;
            broken[8..middle].fill(0xee);
            assert!(format.unpack(&broken, 1 << 20).ok() != Some(text()), "{format:?} damaged");
        }
    }
}
