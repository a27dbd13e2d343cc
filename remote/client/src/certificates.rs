//! Checks that an OpenPGP certificate has signed a text.
//!
//! The crate `pgp` parses packets and verifies signatures. This file contains the rules that say which key of a
//! certificate may sign, and until when.

use everett_remote::signed::Signed;
use pgp::composed::{CleartextSignedMessage, Deserializable as _, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::types::{Duration, KeyDetails, Tag, Timestamp};

/// Maximum number of certificates in a file. Debian's file has nine.
const CERTIFICATES_MAX: usize = 200;
/// Maximum number of signatures of a text. Debian's texts have two or three.
const SIGNATURES_MAX: usize = 16;
/// Maximum number of lines of a signed text. Debian's texts have 2,000. The parser's time grows with the product of
/// length and number of lines.
const LINES_MAX: usize = 8_000;
/// Maximum time by which the date of a signature may be in the future, in seconds, because clocks differ.
const CLOCKS_DIFFER_S: u64 = 3_600;

/// Certificates of a file, all of them or those with given fingerprints.
pub(super) struct Certificates(Vec<SignedPublicKey>);

impl Certificates {
    /// Parses certificates, with or without ASCII armor. With `only`, keeps certificates whose primary keys have these
    /// fingerprints.
    pub(super) fn parse(bytes: &[u8], only: Option<&[&str]>) -> Result<Certificates, String> {
        let (certificates, _) =
            SignedPublicKey::from_reader_many(bytes).map_err(|error| format!("no OpenPGP keys: {error}"))?;
        let mut found = Vec::new();
        for certificate in certificates {
            // A certificate that cannot be parsed ends the loop. Certificates before it can still verify signatures.
            let Ok(certificate) = certificate else { break };
            found.push(certificate);
            if found.len() > CERTIFICATES_MAX {
                return Err(format!("more than {CERTIFICATES_MAX} keys"));
            }
        }
        if found.is_empty() {
            return Err("it has no OpenPGP keys".to_owned());
        }
        if let Some(only) = only {
            found.retain(|key| only.contains(&fingerprint(&key.primary_key).as_str()));
        }
        Ok(Certificates(found))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Verifies that one of these certificates has signed the text. `now_s` is the host's clock in seconds since 1970.
    fn verify(&self, signed: &SignedText, now_s: u64) -> Result<(), String> {
        let mut refusals = Vec::new();
        for signature in signed.0.signatures() {
            match self.verify_one(signature, &signed.text(), now_s) {
                Ok(()) => return Ok(()),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() {
            refusals.push("it has no signature".to_owned());
        }
        Err(refusals.join("; "))
    }

    fn verify_one(&self, signature: &Signature, text: &str, now_s: u64) -> Result<(), String> {
        let mut refusal = format!("the key {} is unknown", issuer(signature));
        for certificate in &self.0 {
            let Some(signer) = signer_of(certificate, signature) else { continue };
            match verify_with(certificate, &signer, signature, text, now_s) {
                Ok(()) => return Ok(()),
                Err(why) => refusal = format!("the key {}: {why}", issuer(signature)),
            }
        }
        Err(refusal)
    }
}

/// A text with signatures in the cleartext signature framework (RFC 9580, 7).
pub(super) struct SignedText(CleartextSignedMessage);

impl SignedText {
    /// Parses a signed text. Does not verify its signatures.
    pub(super) fn parse(bytes: &[u8]) -> Result<SignedText, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        if text.lines().nth(LINES_MAX).is_some() {
            return Err(format!("it has more than {LINES_MAX} lines"));
        }
        let (message, _) = CleartextSignedMessage::from_string(text)
            .map_err(|error| format!("it is not a text with an OpenPGP signature: {error}"))?;
        if message.signatures().len() > SIGNATURES_MAX {
            return Err(format!("it has more than {SIGNATURES_MAX} signatures"));
        }
        Ok(SignedText(message))
    }
}

impl Signed for SignedText {
    fn text(&self) -> String {
        self.0.signed_text()
    }

    fn verify(&self, certificates: &[u8], only: Option<&[&str]>, now_s: u64) -> Result<(), String> {
        Certificates::parse(certificates, only)?.verify(self, now_s)
    }
}

/// Key that made a signature: the primary key of a certificate, or one of its subkeys.
enum Signer<'k> {
    Primary,
    Subkey(&'k SignedPublicSubKey),
}

/// Returns the key of this certificate by which the signature claims to be made. `None` if the signature names
/// a key that is not in the certificate.
fn signer_of<'k>(certificate: &'k SignedPublicKey, signature: &Signature) -> Option<Signer<'k>> {
    let made_by = |key: &dyn KeyDetails| {
        signature.issuer_fingerprint().iter().any(|known| **known == key.fingerprint())
            || signature.issuer_key_id().iter().any(|known| **known == key.legacy_key_id())
    };
    if made_by(&certificate.primary_key) {
        return Some(Signer::Primary);
    }
    certificate.public_subkeys.iter().find(|subkey| made_by(&subkey.key)).map(Signer::Subkey)
}

fn verify_with(
    certificate: &SignedPublicKey,
    signer: &Signer<'_>,
    signature: &Signature,
    text: &str,
    now_s: u64,
) -> Result<(), String> {
    if !matches!(signature.typ(), Some(SignatureType::Text | SignatureType::Binary)) || !is_strong(signature)
    {
        return Err("its signature has a form that is not accepted".to_owned());
    }
    if made_s(signature) > now_s.saturating_add(CLOCKS_DIFFER_S) {
        return Err("its signature was made in the future: is this host's clock wrong?".to_owned());
    }
    if is_over(made_s(signature), signature.signature_expiration_time(), now_s) {
        return Err("its signature has expired".to_owned());
    }
    let own = own_signature(certificate, now_s).ok_or("it has no valid signature of its own")?;
    let primary = &certificate.primary_key;
    if certificate.details.revocation_signatures.iter().any(|one| one.verify_key(primary).is_ok()) {
        return Err("it is revoked".to_owned());
    }
    if is_over(seconds(primary.created_at()), own.key_expiration_time(), now_s) {
        return Err("it has expired".to_owned());
    }
    let (may_sign, verified) = match signer {
        Signer::Primary => (own.key_flags().sign(), signature.verify(primary, text.as_bytes())),
        Signer::Subkey(subkey) => {
            check_subkey(certificate, subkey, now_s)?;
            (true, signature.verify(&subkey.key, text.as_bytes()))
        }
    };
    if !may_sign {
        return Err("it may not sign".to_owned());
    }
    verified.map_err(|_| "its signature does not match the text".to_owned())
}

/// Checks that the primary key and the subkey have signed each other, that the primary key permits the subkey to sign,
/// and that the subkey is neither revoked nor expired.
fn check_subkey(
    certificate: &SignedPublicKey,
    subkey: &SignedPublicSubKey,
    now_s: u64,
) -> Result<(), String> {
    let primary = &certificate.primary_key;
    let verified = |kind| {
        subkey
            .signatures
            .iter()
            .filter(move |one: &&Signature| one.typ() == Some(kind))
            .filter(|one| one.verify_subkey_binding(primary, &subkey.key).is_ok())
    };
    if verified(SignatureType::SubkeyRevocation).next().is_some() {
        return Err("it is revoked".to_owned());
    }
    let bindings = verified(SignatureType::SubkeyBinding);
    let binding =
        newest(bindings.filter(|one| is_strong(one)), now_s).ok_or("it is bound to no primary key")?;
    let back = binding.embedded_signature().filter(|back| is_strong(back));
    let agreed = back.is_some_and(|back| back.verify_primary_key_binding(&subkey.key, primary).is_ok());
    if !binding.key_flags().sign() || !agreed {
        return Err("it may not sign".to_owned());
    }
    if is_over(seconds(subkey.key.created_at()), binding.key_expiration_time(), now_s) {
        return Err("it has expired".to_owned());
    }
    Ok(())
}

/// Returns the newest valid signature of a certificate over itself. This signature contains the certificate's flags and
/// expiry.
fn own_signature(certificate: &SignedPublicKey, now_s: u64) -> Option<&Signature> {
    use SignatureType::{CertCasual, CertGeneric, CertPersona, CertPositive, Key};
    let primary = &certificate.primary_key;
    let direct = certificate.details.direct_signatures.iter();
    let direct = direct.filter(|one| one.typ() == Some(Key) && one.verify_key(primary).is_ok());
    let of_users = certificate.details.users.iter().flat_map(|user| {
        user.signatures.iter().filter(|one| {
            matches!(one.typ(), Some(CertGeneric | CertPersona | CertCasual | CertPositive))
                && one.verify_certification(primary, Tag::UserId, &user.id).is_ok()
        })
    });
    newest(direct.chain(of_users).filter(|one| is_strong(one)), now_s)
}

/// Returns the newest of these signatures. Ignores signatures that were made in the future.
fn newest<'s>(signatures: impl Iterator<Item = &'s Signature>, now_s: u64) -> Option<&'s Signature> {
    signatures
        .filter(|one| made_s(one) <= now_s.saturating_add(CLOCKS_DIFFER_S))
        .max_by_key(|one| made_s(one))
}

/// True if the signature's hash algorithm has no known collisions.
fn is_strong(signature: &Signature) -> bool {
    use HashAlgorithm::{Sha3_256, Sha3_512, Sha256, Sha384, Sha512};
    matches!(signature.hash_alg(), Some(Sha256 | Sha384 | Sha512 | Sha3_256 | Sha3_512))
}

/// True if the duration `lasts` after `from_s` has passed at `now_s`. A duration of 0 or `None` is endless.
fn is_over(from_s: u64, lasts: Option<Duration>, now_s: u64) -> bool {
    let lasts_s = lasts.map_or(0, |lasts| u64::from(lasts.as_secs()));
    lasts_s != 0 && from_s.saturating_add(lasts_s) <= now_s
}

/// Returns the time of a signature in seconds since 1970. A signature without a time counts as made in the far future.
fn made_s(signature: &Signature) -> u64 {
    signature.created().map_or(u64::MAX, seconds)
}

fn seconds(time: Timestamp) -> u64 {
    u64::from(time.as_secs())
}

fn fingerprint(key: &dyn KeyDetails) -> String {
    hex(key.fingerprint().as_bytes())
}

/// Returns the fingerprint of the key by which a signature claims to be made, or else the key's identifier.
fn issuer(signature: &Signature) -> String {
    let fingerprint = signature.issuer_fingerprint().first().map(|known| hex(known.as_bytes()));
    let id = || signature.issuer_key_id().first().map(|known| hex(known.as_ref()));
    fingerprint.or_else(id).unwrap_or_else(|| "without a name".to_owned())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
