//! OpenPGP keys that tests generate, and texts that these keys sign.
//!
//! The tests of mirrors in `everett-guest-image` include this file, too.

use pgp::composed::{
    CleartextSignedMessage, KeyType, SecretKeyParamsBuilder, SignedPublicKey, SignedPublicSubKey,
    SignedSecretKey, SubkeyParamsBuilder,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{KeyFlags, Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData, UserId};
use pgp::ser::Serialize as _;
use pgp::types::{Duration, KeyDetails as _, Password, SignedUser, SigningKey, Tag, Timestamp};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// Creation time of the tests' keys, in seconds since 1970.
pub(crate) const MADE_S: u64 = 1_700_000_000;

/// Properties of a key to generate.
#[derive(Clone, Copy)]
pub(crate) struct Recipe {
    pub(crate) seed: u64,
    /// Time for which the key is valid, in seconds. `None` means forever.
    pub(crate) lasts_s: Option<u32>,
    pub(crate) may_sign: bool,
    pub(crate) is_revoked: bool,
    /// True if a subkey makes the signatures, and false if the primary key does.
    pub(crate) has_subkey: bool,
    /// True for RSA, and false for Ed25519. Ed25519 cannot sign with a weak hash.
    pub(crate) is_rsa: bool,
    /// Hash algorithm of the key's signatures over itself.
    pub(crate) hash: HashAlgorithm,
}

impl Recipe {
    pub(crate) fn new(seed: u64) -> Recipe {
        let hash = HashAlgorithm::Sha512;
        Recipe {
            seed,
            lasts_s: None,
            may_sign: true,
            is_revoked: false,
            has_subkey: false,
            is_rsa: false,
            hash,
        }
    }
}

/// A secret key and its certificate.
pub(crate) struct Signer {
    secret: SignedSecretKey,
    pub(crate) certificate: SignedPublicKey,
}

fn timestamp(at_s: u64) -> Timestamp {
    Timestamp::from_secs(u32::try_from(at_s).unwrap())
}

fn config(
    key: &impl SigningKey,
    kind: SignatureType,
    hash: HashAlgorithm,
    made_s: u64,
    more: Vec<SubpacketData>,
) -> SignatureConfig {
    let mut config = SignatureConfig::v4(kind, key.algorithm(), hash);
    let made = SubpacketData::SignatureCreationTime(timestamp(made_s));
    let issuer = SubpacketData::IssuerFingerprint(key.fingerprint());
    let all = [made, issuer].into_iter().chain(more);
    config.hashed_subpackets = all.map(|data| Subpacket::regular(data).unwrap()).collect();
    config
}

impl Signer {
    pub(crate) fn new(recipe: Recipe) -> Signer {
        let mut params = SecretKeyParamsBuilder::default();
        let kind = if recipe.is_rsa { KeyType::Rsa(2048) } else { KeyType::Ed25519Legacy };
        params.key_type(kind).can_certify(true).can_sign(true);
        params.created_at(timestamp(MADE_S)).primary_user_id("Archive <archive@example.org>".to_owned());
        if recipe.has_subkey {
            let mut subkey = SubkeyParamsBuilder::default();
            subkey.key_type(KeyType::Ed25519Legacy).can_sign(true).created_at(timestamp(MADE_S));
            params.subkey(subkey.build().unwrap());
        }
        let rng = StdRng::seed_from_u64(recipe.seed);
        let secret = params.build().unwrap().generate(rng).unwrap();
        let mut certificate = secret.to_public_key();
        let (primary, public, password) =
            (&secret.primary_key, secret.primary_key.public_key(), Password::empty());
        let mut flags = KeyFlags::default();
        flags.set_certify(true);
        flags.set_sign(recipe.may_sign);
        let mut more = vec![SubpacketData::KeyFlags(flags)];
        more.extend(
            recipe.lasts_s.map(|lasts_s| SubpacketData::KeyExpirationTime(Duration::from_secs(lasts_s))),
        );
        let user = UserId::from_str(Default::default(), "Archive <archive@example.org>").unwrap();
        let own = config(primary, SignatureType::CertPositive, recipe.hash, MADE_S, more);
        let own = own.sign_certification(primary, public, &password, Tag::UserId, &user).unwrap();
        certificate.details.users = vec![SignedUser::new(user, vec![own])];
        certificate.details.direct_signatures.clear();
        if recipe.is_revoked {
            let revocation = config(primary, SignatureType::KeyRevocation, recipe.hash, MADE_S, Vec::new());
            certificate.details.revocation_signatures =
                vec![revocation.sign_key(primary, &password, public).unwrap()];
        }
        Signer { secret, certificate }
    }

    /// Binds the signing subkey of another key to this key, as a thief of signatures would. The binding lacks the
    /// subkey's own signature (the back signature), which OpenPGP requires for signing subkeys.
    pub(crate) fn claim_subkey(&mut self, other: &Signer) {
        let subkey = other.certificate.public_subkeys[0].key.clone();
        let primary = &self.secret.primary_key;
        let mut flags = KeyFlags::default();
        flags.set_sign(true);
        let more = vec![SubpacketData::KeyFlags(flags)];
        let binding = config(primary, SignatureType::SubkeyBinding, HashAlgorithm::Sha512, MADE_S, more);
        let binding =
            binding.sign_subkey_binding(primary, primary.public_key(), &Password::empty(), &subkey).unwrap();
        self.certificate.public_subkeys = vec![SignedPublicSubKey::new(subkey, vec![binding])];
    }

    /// Returns the fingerprint of the primary key, in hexadecimal.
    pub(crate) fn fingerprint(&self) -> String {
        let fingerprint = self.certificate.primary_key.fingerprint();
        fingerprint.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the certificate as a file.
    pub(crate) fn file(&self) -> Vec<u8> {
        self.certificate.to_bytes().unwrap()
    }

    /// Signs a text. `at_s` is the signature's time in seconds since 1970.
    pub(crate) fn sign(&self, text: &str, at_s: u64) -> Vec<u8> {
        self.sign_with(text, HashAlgorithm::Sha256, at_s, Vec::new())
    }

    /// Signs a text. `more` are additional fields of the signature.
    pub(crate) fn sign_with(
        &self,
        text: &str,
        hash: HashAlgorithm,
        at_s: u64,
        more: Vec<SubpacketData>,
    ) -> Vec<u8> {
        let message =
            CleartextSignedMessage::new_many(text, |text| Ok(vec![self.signature(text, hash, at_s, more)]));
        message.unwrap().to_armored_bytes(None.into()).unwrap()
    }

    /// Returns a signature over `text`, whose lines must end with CR and LF.
    fn signature(&self, text: &str, hash: HashAlgorithm, at_s: u64, more: Vec<SubpacketData>) -> Signature {
        let password = Password::empty();
        match self.secret.secret_subkeys.first() {
            Some(subkey) => {
                let config = config(&subkey.key, SignatureType::Text, hash, at_s, more);
                config.sign(&subkey.key, &password, text.as_bytes()).unwrap()
            }
            None => {
                let primary = &self.secret.primary_key;
                config(primary, SignatureType::Text, hash, at_s, more)
                    .sign(primary, &password, text.as_bytes())
                    .unwrap()
            }
        }
    }
}
