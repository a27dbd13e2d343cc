//! Verifies and unpacks the archives of layers. Each unpacked archive is stored once, under its digest (the diff ID).

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};

use super::blobs::Blobs;
use super::digest::{Digest, Hashed};
use super::error::{Problem, reading};
use super::limits::{IMAGE_BYTES_MAX, LAYER_BYTES_MAX};
use super::resolved_image::LayerBlob;
use crate::cache::{self, Cache, CacheEntry, Key};
use crate::compression::Format;
use crate::compression::expansion::Expanded;
use crate::space::Meter;
use crate::squashfs::PADDING_BYTES;

/// Version of this code, part of the cache keys. Increase the version if the same inputs would make different files.
const VERSION: &str = "1";

fn key(diff_id: &Digest) -> Key {
    Key::new("oci layer").with(VERSION).with(diff_id.to_string())
}

/// Returns the unpacked archive of a layer, if the cache has it.
pub(super) fn cached(cache: &Cache, diff_id: &Digest) -> Option<CacheEntry> {
    cache.get("layer", &key(diff_id))
}

/// Checks that the total length of the layers does not exceed the bound.
pub(super) fn check_total(layers: &[CacheEntry]) -> Result<(), Problem> {
    let total = layers.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.bytes));
    if total > IMAGE_BYTES_MAX { Err(Problem::ImageBytes) } else { Ok(()) }
}

/// Unpacks a layer into the cache. Verifies the blob's length and digest, and compares the digest of the unpacked
/// archive with the diff ID.
pub(super) fn unpack(
    cache: &Cache,
    blobs: &mut dyn Blobs,
    layer: &LayerBlob,
    diff_id: &Digest,
) -> Result<CacheEntry, Problem> {
    let blob = blobs.open(&layer.blob)?;
    cache.put("layer", &key(diff_id), |file| {
        let hasher = layer.digest.as_ref().unwrap_or(diff_id).hasher();
        let mut packed = BufReader::with_capacity(1 << 20, Hashed::new(blob, hasher));
        let unpacked = copy(cache, &mut packed, layer, diff_id, file);
        // If a blob is cut off or damaged, its decompression usually fails. Everett then reports the wrong length or
        // digest of the blob, which says more than the error of the decoder in `unpacked`.
        let rest = io::copy(&mut packed, &mut io::sink());
        let packed = packed.into_inner();
        let found = packed.bytes;
        let read = rest.map_err(reading(format!("the blob {}", layer.blob)));
        if let Err(refused @ (Problem::LayerBytes { .. } | Problem::Expansion { .. } | Problem::Cache(_))) =
            unpacked
        {
            return Err(refused);
        }
        read?;
        if let Some(expected) = layer.bytes.filter(|&expected| expected != found) {
            return Err(Problem::Size { blob: layer.blob.clone(), expected, found });
        }
        if let Some(expected) = &layer.digest {
            let found = packed.finish();
            if found != *expected {
                let (expected, found) = (expected.to_string(), found.to_string());
                return Err(Problem::Digest { what: format!("the blob {}", layer.blob), expected, found });
            }
        }
        let found = unpacked?;
        if found != *diff_id {
            let (expected, found) = (diff_id.to_string(), found.to_string());
            return Err(Problem::Digest { what: format!("the layer {}", layer.blob), expected, found });
        }
        Ok(())
    })
}

/// Decompresses a layer to the file. Returns the digest of the unpacked archive.
fn copy(
    cache: &Cache,
    packed: &mut BufReader<Hashed<Box<dyn Read + '_>>>,
    layer: &LayerBlob,
    diff_id: &Digest,
    file: &mut File,
) -> Result<Digest, Problem> {
    use std::io::BufRead as _;
    let named = || format!("the layer {}", layer.blob);
    let start = packed.fill_buf().map_err(reading(named()))?;
    // An uncompressed archive starts with a file name, which may look like the magic number of a compression format.
    let is_plain = start.get(257..262) == Some(b"ustar");
    let reader: Box<dyn Read + '_> = match Format::detect(start).filter(|_| !is_plain) {
        Some(format) => format.reader_of_all(&mut *packed).map_err(reading(named()))?,
        None => Box::new(&mut *packed),
    };
    let mut reader = Hashed::new(reader.take(LAYER_BYTES_MAX + 1), diff_id.hasher());
    let written = write_sparse(&mut reader, file).map_err(|failure| match failure {
        Failure::Read(source) if Expanded::is(&source) => Problem::Expansion { layer: layer.blob.clone() },
        Failure::Read(source) => reading(named())(source),
        Failure::Write(source) => cache::Error::of(&cache.temporary(), source).into(),
    })?;
    if written > LAYER_BYTES_MAX {
        return Err(Problem::LayerBytes { layer: layer.blob.clone() });
    }
    Ok(reader.finish())
}

/// An I/O error of the blob or of the cache's file.
enum Failure {
    Read(io::Error),
    Write(io::Error),
}

/// Length in bytes of the pieces in which [`write_sparse`] copies. A piece of zeros becomes a hole.
const PIECE_BYTES: usize = 64 << 10;

/// Copies to a file, with holes in place of zeros, and pads the file to a multiple of [`PADDING_BYTES`]. Returns the
/// number of bytes read.
fn write_sparse(reader: &mut impl Read, file: &mut File) -> Result<u64, Failure> {
    static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
    let mut buffer = vec![0; PIECE_BYTES];
    let mut total: u64 = 0;
    let mut meter = Meter::default();
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Read(error)),
            }
        }
        total += filled as u64;
        if buffer[..filled] == ZEROS[..filled] {
            // The cast is exact: `filled` is at most PIECE_BYTES.
            file.seek(SeekFrom::Current(filled as i64)).map_err(Failure::Write)?;
        } else {
            file.write_all(&buffer[..filled]).map_err(Failure::Write)?;
            meter.wrote(file, filled as u64).map_err(Failure::Write)?;
        }
        if filled < buffer.len() {
            break;
        }
    }
    file.set_len(total.next_multiple_of(PADDING_BYTES)).map_err(Failure::Write)?;
    Ok(total)
}
