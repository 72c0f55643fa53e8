//! The other half of the vault's format: krane only decrypts.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use krane_proto::vault::v1::{
    DataEncryptionKey, Encrypted, EncryptedDataEncryptionKey, KeyEncryptionKey,
};
use prost::Message as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// A key with an id; the same seed makes the same key.
#[derive(Clone)]
pub struct SealingKey {
    pub id: String,
    pub key: Vec<u8>,
}

impl SealingKey {
    pub fn new(id: &str, seed: u8) -> Self {
        Self {
            id: id.to_owned(),
            key: vec![seed; 32],
        }
    }

    /// A master key as an operator configures it.
    pub fn master_key_text(&self) -> String {
        let message = KeyEncryptionKey {
            id: self.id.clone(),
            created_at: 1_767_225_600_000,
            key: self.key.clone().into(),
        };
        STANDARD.encode(message.encode_to_vec())
    }

    /// A data key as it is stored, encrypted with this master key.
    pub fn wrap(&self, data_key: &Self) -> Vec<u8> {
        let inside = DataEncryptionKey {
            id: data_key.id.clone(),
            created_at: 1_767_225_600_001,
            key: data_key.key.clone().into(),
        };
        self.wrap_bytes(&data_key.id, &inside.encode_to_vec())
    }

    /// The same with anything inside.
    pub fn wrap_bytes(&self, id: &str, inside: &[u8]) -> Vec<u8> {
        let stored = EncryptedDataEncryptionKey {
            id: id.to_owned(),
            created_at: 1_767_225_600_001,
            encrypted: Some(self.envelope(inside)),
        };
        stored.encode_to_vec()
    }

    /// A value as tenants get it, encrypted with this data key.
    pub fn encrypt(&self, text: &[u8]) -> String {
        STANDARD.encode(self.envelope(text).encode_to_vec())
    }

    pub fn envelope(&self, inside: &[u8]) -> Encrypted {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let mut ciphertext = inside.to_vec();
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.key).unwrap())
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut ciphertext,
            )
            .unwrap();
        Encrypted {
            algorithm: 0,
            nonce: nonce.to_vec().into(),
            ciphertext: ciphertext.into(),
            encryption_key_id: self.id.clone(),
            time: 1_767_225_600_003,
        }
    }
}
