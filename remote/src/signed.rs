//! Texts with OpenPGP signatures.

/// A signed text. Only [`Signed::verify`] checks the signatures.
pub trait Signed {
    /// Returns the text that the signatures cover. The text is untrusted until [`Signed::verify`] has succeeded.
    fn text(&self) -> String;

    /// Verifies that a certificate of the file `certificates` has signed the text and is allowed to sign. With `only`,
    /// accepts only certificates whose primary keys have these fingerprints, in lower-case hexadecimal. `now_s` is the
    /// host's clock in seconds since 1970.
    ///
    /// # Errors
    /// Returns a reason for each signature that is not accepted, if none is accepted.
    fn verify(&self, certificates: &[u8], only: Option<&[&str]>, now_s: u64) -> Result<(), String>;
}
