//! Texts with OpenPGP signatures.

/// A signed text. [`Signed::verify`] checks its signatures; reading it checks none.
pub trait Signed {
    /// Returns the text that the signatures cover.
    fn text(&self) -> String;

    /// Verifies that a certificate of this file has signed the text, and may have. With `only`, no other certificates are
    /// used than those whose primary keys have these fingerprints, in lower-case hexadecimal. `now_s` is the host's clock in
    /// seconds since 1970.
    ///
    /// # Errors
    /// Returns the reasons why no signature is accepted.
    fn verify(&self, certificates: &[u8], only: Option<&[&str]>, now_s: u64) -> Result<(), String>;
}
