//! Hasher with which the digests of results are computed.

/// Hasher of a sequence of values. The hash includes the values' boundaries, so different sequences have different
/// hashes.
pub(super) struct Digest(blake3::Hasher);

impl Digest {
    pub(super) fn new(what: &str) -> Digest {
        Digest(blake3::Hasher::new_derive_key(what))
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn maybe(&mut self, number: Option<u64>) {
        self.number(number.is_some().into());
        self.number(number.unwrap_or(0));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub(super) fn finish(&self) -> blake3::Hash {
        self.0.finalize()
    }
}
