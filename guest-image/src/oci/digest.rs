//! Computes and compares digests of blobs (OCI image specification, "Digests").

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use sha2::{Digest as _, Sha256, Sha512};

use super::error::Problem;

/// A SHA-256 or SHA-512 digest in its text form, `ALGORITHM:HEX`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest {
    is_512: bool,
    hex: String,
}

impl Digest {
    /// Returns the name of the algorithm.
    pub(super) fn algorithm(&self) -> &'static str {
        if self.is_512 { "sha512" } else { "sha256" }
    }

    /// Returns the digest in hexadecimal, in lower case.
    pub(super) fn hex(&self) -> &str {
        &self.hex
    }

    /// Returns a hasher for SHA-256, the usual algorithm.
    pub(super) fn sha256_hasher() -> Hasher {
        Hasher::Sha256(Sha256::new())
    }

    /// Returns a hasher of this digest's algorithm.
    pub(super) fn hasher(&self) -> Hasher {
        if self.is_512 { Hasher::Sha512(Box::default()) } else { Hasher::Sha256(Sha256::new()) }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm(), self.hex)
    }
}

impl FromStr for Digest {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        const SHOWN: usize = 140;
        let wrong = || Problem::NotADigest(text.chars().take(SHOWN).collect());
        let (algorithm, hex) = text.split_once(':').ok_or_else(wrong)?;
        let (is_512, length) = match algorithm {
            "sha256" => (false, 64),
            "sha512" => (true, 128),
            _ => return Err(wrong()),
        };
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() != length || !hex.bytes().all(is_hex) {
            return Err(wrong());
        }
        Ok(Digest { is_512, hex: hex.to_owned() })
    }
}

/// A digest while it is computed.
#[derive(Debug, Clone)]
pub(super) enum Hasher {
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
        }
    }

    pub(super) fn finish(self) -> Digest {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Hasher::Sha256(hasher) => Digest { is_512: false, hex: hex(&hasher.finalize()) },
            Hasher::Sha512(hasher) => Digest { is_512: true, hex: hex(&hasher.finalize()) },
        }
    }
}

/// A reader that hashes and counts all bytes that are read through it.
#[derive(Debug)]
pub(super) struct Hashed<R> {
    inner: R,
    hasher: Hasher,
    pub(super) bytes: u64,
}

impl<R> Hashed<R> {
    pub(super) fn new(inner: R, hasher: Hasher) -> Self {
        Hashed { inner, hasher, bytes: 0 }
    }

    pub(super) fn finish(self) -> Digest {
        self.hasher.finish()
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_computed_in_their_algorithm() {
        for (algorithm, hex) in [
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "sha512",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
        ] {
            let digest: Digest = format!("{algorithm}:{hex}").parse().unwrap();
            let mut reader = Hashed::new(b"abc".as_slice(), digest.hasher());
            io::copy(&mut reader, &mut io::sink()).unwrap();
            assert_eq!((reader.bytes, reader.finish().to_string()), (3, digest.to_string()));
        }
    }

    #[test]
    fn malformed_digests_are_refused() {
        let upper = format!("sha256:{}", "A".repeat(64));
        let short = format!("sha256:{}", "a".repeat(63));
        let path = format!("sha256:{}", "../".repeat(21) + "a");
        for text in ["", "sha256", "sha256:", "md5:00", &upper, &short, &path] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
