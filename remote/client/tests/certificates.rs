//! Tests of the rules that say which keys may sign, and at which times.

mod signing;

use everett_remote::Access as _;
use everett_remote_client::Online;
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::SubpacketData;
use pgp::types::Duration;
use proptest::prelude::*;
use signing::{MADE_S, Recipe, Signer};

const TEXT: &str = "Codename: test\n- a line with a dash\nlast line\n";

/// The host's clock in these tests: 2027-01-15 08:00:00 UTC.
const NOW_S: u64 = 1_800_000_000;

fn verify(file: &[u8], bytes: &[u8]) -> Result<String, String> {
    let signed = Online.signed(bytes)?;
    signed.verify(file, None, NOW_S).map(|()| signed.text())
}

fn by(recipe: Recipe) -> Result<String, String> {
    let signer = Signer::new(recipe);
    verify(&signer.file(), &signer.sign(TEXT, NOW_S - 10))
}

fn refusal(recipe: Recipe) -> String {
    by(recipe).unwrap_err()
}

#[test]
fn primary_keys_and_subkeys_sign() {
    for has_subkey in [false, true] {
        let text = by(Recipe { has_subkey, ..Recipe::new(1) }).unwrap();
        assert_eq!(text.replace("\r\n", "\n").trim_end(), TEXT.trim_end());
    }
    // The primary key may not sign, but its subkey may.
    by(Recipe { has_subkey: true, may_sign: false, ..Recipe::new(1) }).unwrap();
    assert!(refusal(Recipe { may_sign: false, ..Recipe::new(1) }).contains("it may not sign"));
}

#[test]
fn keys_expire_and_are_revoked() {
    let age_s = u32::try_from(NOW_S - MADE_S).unwrap();
    for has_subkey in [false, true] {
        let recipe = Recipe { has_subkey, ..Recipe::new(1) };
        by(Recipe { lasts_s: Some(age_s + 1), ..recipe }).unwrap();
        assert!(refusal(Recipe { lasts_s: Some(age_s), ..recipe }).contains("it has expired"));
        assert!(refusal(Recipe { is_revoked: true, ..recipe }).contains("it is revoked"));
    }
}

#[test]
fn a_subkey_is_bound_by_its_primary_key() {
    let recipe = Recipe { has_subkey: true, ..Recipe::new(1) };
    let (signer, mut other) = (Signer::new(recipe), Signer::new(Recipe::new(2)));
    // Another certificate claims the subkey.
    other.certificate.public_subkeys = signer.certificate.public_subkeys.clone();
    let keys = other.file();
    let refused = verify(&keys, &signer.sign(TEXT, NOW_S)).unwrap_err();
    assert!(refused.contains("it is bound to no primary key"), "{refused}");
    // The other certificate signs that the subkey belongs to it, but the subkey has not signed this in turn.
    other.claim_subkey(&signer);
    let keys = other.file();
    let refused = verify(&keys, &signer.sign(TEXT, NOW_S)).unwrap_err();
    assert!(refused.contains("it may not sign"), "{refused}");
}

#[test]
fn signatures_are_valid_now() {
    let signer = Signer::new(Recipe::new(1));
    let keys = signer.file();
    let with = |hash, at_s, more| verify(&keys, &signer.sign_with(TEXT, hash, at_s, more));
    with(HashAlgorithm::Sha512, NOW_S, Vec::new()).unwrap();
    let refused = |result: Result<String, String>| result.unwrap_err();
    assert!(refused(with(HashAlgorithm::Sha256, NOW_S + 86_400, Vec::new())).contains("in the future"));
    let lasts = |s| vec![SubpacketData::SignatureExpirationTime(Duration::from_secs(s))];
    with(HashAlgorithm::Sha256, NOW_S - 100, lasts(101)).unwrap();
    assert!(refused(with(HashAlgorithm::Sha256, NOW_S - 100, lasts(100))).contains("has expired"));
}

#[test]
fn only_certificates_with_these_fingerprints_are_used() {
    let (signer, other) = (Signer::new(Recipe::new(1)), Signer::new(Recipe::new(2)));
    let keys = [other.file(), signer.file()].concat();
    let signed = Online.signed(&signer.sign(TEXT, NOW_S)).unwrap();
    let (own, others) = (signer.fingerprint(), other.fingerprint());
    for (only, count, is_valid) in [
        (None, 2, true),
        (Some(&[own.as_str()][..]), 1, true),
        (Some(&[others.as_str(), own.as_str()]), 2, true),
        (Some(&[others.as_str()]), 1, false),
        (Some(&[]), 0, false),
    ] {
        assert_eq!(Online.count_certificates(&keys, only).unwrap(), count, "{only:?}");
        let verified = signed.verify(&keys, only, NOW_S);
        assert_eq!(verified.is_ok(), is_valid, "{only:?}");
        assert!(verified.err().is_none_or(|error| error.contains("is unknown")), "{only:?}");
    }
}

#[test]
fn weak_hashes_are_refused() {
    let recipe = Recipe { is_rsa: true, ..Recipe::new(1) };
    let signer = Signer::new(recipe);
    let keys = signer.file();
    let with = |hash| verify(&keys, &signer.sign_with(TEXT, hash, NOW_S, Vec::new()));
    with(HashAlgorithm::Sha256).unwrap();
    assert!(with(HashAlgorithm::Sha1).unwrap_err().contains("not accepted"));
    // The key is the same, but its signature over itself has a weak hash.
    let keys = Signer::new(Recipe { hash: HashAlgorithm::Sha1, ..recipe }).file();
    let refused = verify(&keys, &signer.sign(TEXT, NOW_S)).unwrap_err();
    assert!(refused.contains("no valid signature of its own"), "{refused}");
}

#[test]
fn keys_in_armor_are_read() {
    let signer = Signer::new(Recipe::new(1));
    let armor = signer.certificate.to_armored_bytes(None.into()).unwrap();
    verify(&armor, &signer.sign(TEXT, NOW_S)).unwrap();
    let refused = |file| Online.count_certificates(file, None).unwrap_err();
    assert!(refused(b"").contains("no OpenPGP keys") && refused(b"no keys").contains("no OpenPGP keys"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A signed message with a changed byte or a missing end is refused, unless the signed text in it stays the same.
    #[test]
    fn no_altered_text_is_trusted(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let signer = Signer::new(Recipe::new(1));
        let keys = signer.file();
        let mut signed = signer.sign(TEXT, NOW_S);
        let at = at.index(signed.len());
        signed[at] = byte;
        if cut {
            signed.truncate(at);
        }
        if let Ok(text) = verify(&keys, &signed) {
            let text = text.replace("\r\n", "\n");
            prop_assert_eq!(text.trim_end(), TEXT.trim_end());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        let _ = Online.count_certificates(&bytes, None);
        let _ = Online.signed(&bytes);
        let mut keys = Signer::new(Recipe { has_subkey: true, ..Recipe::new(1) }).file();
        let at = at.index(keys.len());
        keys.truncate(at);
        keys.append(&mut bytes);
        let _ = Online.count_certificates(&keys, None);
    }
}
