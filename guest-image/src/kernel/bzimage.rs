//! Extracts the kernel from a bzImage, the image format of the x86 boot protocol (Linux,
//! Documentation/arch/x86/boot.rst).
//!
//! A bzImage has real-mode setup code and then the kernel's decompressor. The decompressor contains the compressed
//! `vmlinux`, and the header gives the offset of the compressed data.

use super::KERNEL_BYTES_MAX;
use crate::compression::Format;

/// Offsets of header fields, in bytes.
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

/// First protocol version with the field `payload_offset`.
const VERSION_WITH_PAYLOAD: u16 = 0x0208;
const SECTOR_BYTES: usize = 512;

/// Reason why a bzImage cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The protocol version is too old: its header does not say where the compressed kernel is.
    #[error(
        "its boot protocol is {}.{:02}, but the compressed kernel can be located only from 2.08 on",
        version >> 8,
        version & 0xff
    )]
    TooOld {
        /// Version of the boot protocol.
        version: u16,
    },
    /// The file is shorter than its header says.
    #[error("it is cut off: {missing} bytes are missing")]
    Truncated {
        /// Number of missing bytes.
        missing: usize,
    },
    /// The payload does not start with the magic number of a known compression format.
    #[error("the compression format of its payload is unknown (first bytes: {start:02x?})")]
    Unknown {
        /// First bytes of the payload.
        start: Vec<u8>,
    },
    /// The payload is damaged.
    #[error("its {format:?} data is damaged")]
    Damaged {
        /// Compression format of the payload.
        format: Format,
        /// Error of the decompressor.
        source: std::io::Error,
    },
}

/// True if the image has the magic number of a bzImage.
#[must_use]
pub fn is_bzimage(image: &[u8]) -> bool {
    image.get(MAGIC..MAGIC + 4) == Some(b"HdrS")
}

/// Extracts the `vmlinux` from a bzImage.
///
/// # Errors
/// Returns an error if the header is too old or truncated, or if the payload is damaged or has an unknown format.
pub fn unpack(image: &[u8]) -> Result<Vec<u8>, Error> {
    let version = u16::from_le_bytes(field(image, VERSION)?);
    if version < VERSION_WITH_PAYLOAD {
        return Err(Error::TooOld { version });
    }
    // A value of zero means four sectors, for backward compatibility.
    let [sectors] = field(image, SETUP_SECTORS)?;
    let setup = (usize::from(if sectors == 0 { 4 } else { sectors }) + 1) * SECTOR_BYTES;
    let start = setup.saturating_add(u32::from_le_bytes(field(image, PAYLOAD_OFFSET)?) as usize);
    let end = start.saturating_add(u32::from_le_bytes(field(image, PAYLOAD_LENGTH)?) as usize);
    let payload =
        image.get(start..end).ok_or(Error::Truncated { missing: end.saturating_sub(image.len()) })?;
    if everett_elf::is_elf(payload) {
        return Ok(payload.to_vec());
    }
    let unknown = || Error::Unknown { start: payload[..payload.len().min(8)].to_vec() };
    let format = Format::detect(payload).ok_or_else(unknown)?;
    format.unpack(payload, KERNEL_BYTES_MAX).map_err(|source| Error::Damaged { format, source })
}

fn field<const N: usize>(image: &[u8], at: usize) -> Result<[u8; N], Error> {
    let bytes = image.get(at..at + N).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or(Error::Truncated { missing: (at + N).saturating_sub(image.len()) })
}

#[cfg(test)]
mod tests {
    use super::{Error, is_bzimage, unpack};

    /// Makes a bzImage with one setup sector and the given payload.
    fn image(version: u16, payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024 + 16];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&version.to_le_bytes());
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    #[test]
    fn the_payload_is_found_and_unpacked() {
        let payload = zstd::encode_all(b"kernel".as_slice(), 1).unwrap();
        let image = image(0x20f, &payload);
        assert!(is_bzimage(&image));
        assert_eq!(unpack(&image).unwrap(), b"kernel");
    }

    #[test]
    fn damaged_images_are_refused_with_the_reason() {
        let payload = zstd::encode_all(b"kernel".as_slice(), 1).unwrap();
        let good = image(0x20f, &payload);
        for length in 0..good.len() {
            assert!(unpack(&good[..length]).is_err(), "cut to {length}");
        }
        assert!(matches!(unpack(&image(0x207, &payload)), Err(Error::TooOld { version: 0x207 })));
        assert!(matches!(unpack(&image(0x20f, b"whatever")), Err(Error::Unknown { .. })));
        let damaged = [&payload[..4], &[0xff; 40]].concat();
        assert!(matches!(unpack(&image(0x20f, &damaged)), Err(Error::Damaged { .. })));
    }
}
