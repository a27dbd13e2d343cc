//! Tests of the keys that may sign, and of the times at which they may.

use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::SubpacketData;
use pgp::types::Duration;
use proptest::prelude::*;

use super::repository::NOW_S;
use super::signing::{MADE_S, Recipe, Signer};
use crate::mirror::keys::{Keys, Signed};

const TEXT: &str = "Codename: test\n- a line with a dash\nlast line\n";

fn verify(keys: &Keys, bytes: &[u8]) -> Result<String, String> {
    let signed = Signed::parse(bytes)?;
    keys.verify(&signed, NOW_S).map(|()| signed.text())
}

fn by(recipe: Recipe) -> Result<String, String> {
    let signer = Signer::new(recipe);
    verify(&Keys::parse(&signer.file()).unwrap(), &signer.sign(TEXT, NOW_S - 10))
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
    // A subkey signs for a primary key that may not.
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
    let keys = Keys::parse(&other.file()).unwrap();
    let refused = verify(&keys, &signer.sign(TEXT, NOW_S)).unwrap_err();
    assert!(refused.contains("it is bound to no primary key"), "{refused}");
    // It even binds the subkey, which has not agreed.
    other.claim_subkey(&signer);
    let keys = Keys::parse(&other.file()).unwrap();
    let refused = verify(&keys, &signer.sign(TEXT, NOW_S)).unwrap_err();
    assert!(refused.contains("it may not sign"), "{refused}");
}

#[test]
fn signatures_are_valid_now() {
    let signer = Signer::new(Recipe::new(1));
    let keys = Keys::parse(&signer.file()).unwrap();
    let with = |hash, at_s, more| verify(&keys, &signer.sign_with(TEXT, hash, at_s, more));
    with(HashAlgorithm::Sha512, NOW_S, Vec::new()).unwrap();
    let refused = |result: Result<String, String>| result.unwrap_err();
    assert!(refused(with(HashAlgorithm::Sha256, NOW_S + 86_400, Vec::new())).contains("in the future"));
    let lasts = |s| vec![SubpacketData::SignatureExpirationTime(Duration::from_secs(s))];
    with(HashAlgorithm::Sha256, NOW_S - 100, lasts(101)).unwrap();
    assert!(refused(with(HashAlgorithm::Sha256, NOW_S - 100, lasts(100))).contains("has expired"));
    assert!(refused(verify(&Keys::default(), &signer.sign(TEXT, NOW_S))).contains("is unknown"));
    assert!(keys.of_debian().is_empty());
}

#[test]
fn weak_hashes_are_refused() {
    let recipe = Recipe { is_rsa: true, ..Recipe::new(1) };
    let signer = Signer::new(recipe);
    let keys = Keys::parse(&signer.file()).unwrap();
    let with = |hash| verify(&keys, &signer.sign_with(TEXT, hash, NOW_S, Vec::new()));
    with(HashAlgorithm::Sha256).unwrap();
    assert!(with(HashAlgorithm::Sha1).unwrap_err().contains("not accepted"));
    // The same key with a weak signature over itself.
    let keys = Keys::parse(&Signer::new(Recipe { hash: HashAlgorithm::Sha1, ..recipe }).file()).unwrap();
    let refused = verify(&keys, &signer.sign(TEXT, NOW_S)).unwrap_err();
    assert!(refused.contains("no valid signature of its own"), "{refused}");
}

#[test]
fn keys_in_armor_are_read() {
    let signer = Signer::new(Recipe::new(1));
    let armor = signer.certificate.to_armored_bytes(None.into()).unwrap();
    verify(&Keys::parse(&armor).unwrap(), &signer.sign(TEXT, NOW_S)).unwrap();
    assert!(Keys::parse(b"").is_err() && Keys::parse(b"no keys").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A signed text that was altered anywhere is refused, unless what it says is the same.
    #[test]
    fn no_altered_text_is_trusted(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let signer = Signer::new(Recipe::new(1));
        let keys = Keys::parse(&signer.file()).unwrap();
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
        let _ = Keys::parse(&bytes);
        let _ = Signed::parse(&bytes);
        let mut keys = Signer::new(Recipe { has_subkey: true, ..Recipe::new(1) }).file();
        let at = at.index(keys.len());
        keys.truncate(at);
        keys.append(&mut bytes);
        let _ = Keys::parse(&keys);
    }
}
