//! Envelopes and keys as the vault stores them: parsed, unwrapped and opened. No I/O.
//!
//! A value is an envelope that a data key opens; a data key is stored in an envelope that a master
//! key opens. AES-256-GCM throughout, with nothing authenticated besides. Keys and plaintexts are
//! wiped when they go; the round keys that ring derives for one decryption are not.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use krane_domain::secret::Secret;
use krane_proto::vault::v1::{
    Algorithm, DataEncryptionKey, Encrypted, EncryptedDataEncryptionKey, KeyEncryptionKey,
};
use prost::Message as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::{Zeroize as _, Zeroizing};

/// Of a key, in bytes.
const KEY_LENGTH: usize = 32;
/// At the end of a ciphertext, in bytes.
const TAG_LENGTH: usize = 16;

/// What an envelope or a key lacks to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it is no base64")]
    Base64,
    #[error("it is no protobuf message of the vault's")]
    Message,
    #[error("its algorithm is none that krane knows")]
    Algorithm,
    #[error("its nonce has not {NONCE_LEN} bytes")]
    Nonce,
    #[error("its ciphertext is shorter than a tag")]
    Ciphertext,
    #[error("it names no key")]
    NoKeyId,
    #[error("its key has not {KEY_LENGTH} bytes")]
    KeyLength,
}

/// The key does not open the envelope: it is another key, or a bit is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key does not open it: something was altered, or was encrypted with another key")]
pub(super) struct DoesNotOpen;

/// Why a value has no plaintext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPlaintext {
    #[error(transparent)]
    DoesNotOpen(#[from] DoesNotOpen),
    #[error("what was encrypted is no text")]
    NotText,
}

/// Why a stored key is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoDataKey {
    #[error("the stored key is malformed: {0}")]
    Stored(Malformed),
    #[error("it was encrypted with the master key {0}, which is not in vault.master_keys")]
    UnknownMasterKey(String),
    #[error(
        "the master key {0} does not open it: it was altered, or there are two keys of that id"
    )]
    DoesNotOpen(String),
    #[error("the master key {master_key} opens it, and what is inside is malformed: {why}")]
    Inside { master_key: String, why: Malformed },
}

/// Which of the configured master keys is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MasterKeyError {
    /// There is not a single one.
    #[error("there is no master key in it")]
    None,
    /// One cannot be used.
    #[error("master key {number} of the list cannot be used: {why}")]
    Malformed {
        /// Its place in the list, from 1.
        number: usize,
        /// What it lacks. Never any part of it.
        why: &'static str,
    },
}

/// A key of AES-256-GCM.
pub(super) struct Key(Zeroizing<[u8; KEY_LENGTH]>);

impl Key {
    /// Takes a key out of a decoded message and wipes it there.
    fn take(bytes: Bytes) -> Result<Self, Malformed> {
        let key = <[u8; KEY_LENGTH]>::try_from(&bytes[..]).map(Zeroizing::new);
        // Fails only where somebody else holds the same bytes, and nobody does.
        if let Ok(mut bytes) = bytes.try_into_mut() {
            bytes.zeroize();
        }
        key.map(Self).map_err(|_| Malformed::KeyLength)
    }

    /// What is in the envelope.
    fn open(&self, envelope: &Envelope) -> Result<Zeroizing<Vec<u8>>, DoesNotOpen> {
        let key = UnboundKey::new(&AES_256_GCM, &self.0[..]).map_err(|_| DoesNotOpen)?;
        let nonce = Nonce::assume_unique_for_key(envelope.nonce);
        let mut buffer = Zeroizing::new(envelope.ciphertext.to_vec());
        let length = LessSafeKey::new(key)
            .open_in_place(nonce, Aad::empty(), &mut buffer)
            .map_err(|_| DoesNotOpen)?
            .len();
        buffer.truncate(length);
        Ok(buffer)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Something encrypted, complete enough to be opened.
#[derive(Debug)]
pub(super) struct Envelope {
    key_id: String,
    nonce: [u8; NONCE_LEN],
    ciphertext: Ciphertext,
}

/// Shows only how long it is.
struct Ciphertext(Bytes);

impl std::ops::Deref for Ciphertext {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Envelope {
    /// An envelope as the vault hands it out: standard base64, padded.
    pub(super) fn parse(text: &str) -> Result<Self, Malformed> {
        let bytes = STANDARD.decode(text).map_err(|_| Malformed::Base64)?;
        let message = Encrypted::decode(&bytes[..]).map_err(|_| Malformed::Message)?;
        Self::of(message)
    }

    fn of(message: Encrypted) -> Result<Self, Malformed> {
        if message.algorithm != i32::from(Algorithm::Aes256Gcm) {
            return Err(Malformed::Algorithm);
        }
        if message.encryption_key_id.is_empty() {
            return Err(Malformed::NoKeyId);
        }
        if message.ciphertext.len() < TAG_LENGTH {
            return Err(Malformed::Ciphertext);
        }
        let nonce = message.nonce[..].try_into().map_err(|_| Malformed::Nonce)?;
        Ok(Self {
            key_id: message.encryption_key_id,
            nonce,
            ciphertext: Ciphertext(message.ciphertext),
        })
    }

    /// Which key opens it.
    pub(super) fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The text in it.
    pub(super) fn text(&self, key: &Key) -> Result<Secret, NoPlaintext> {
        let mut bytes = key.open(self)?;
        match String::from_utf8(std::mem::take(&mut *bytes)) {
            Ok(text) => Ok(Secret::new(text)),
            Err(error) => {
                error.into_bytes().zeroize();
                Err(NoPlaintext::NotText)
            }
        }
    }
}

/// The master keys by their ids.
#[derive(Debug)]
pub(super) struct MasterKeys(BTreeMap<String, Key>);

impl MasterKeys {
    /// Reads a list of keys, each standard base64 of a message. Of two with one id the later wins.
    pub(super) fn parse(list: &[SecretString]) -> Result<Self, MasterKeyError> {
        let mut keys = BTreeMap::new();
        for (index, text) in list.iter().enumerate() {
            let (id, key) =
                master_key(text.expose_secret()).map_err(|why| MasterKeyError::Malformed {
                    number: index + 1,
                    why: match why {
                        Malformed::Base64 => "it is no base64",
                        Malformed::NoKeyId => "it has no id",
                        Malformed::KeyLength => "its key has not 32 bytes",
                        Malformed::Message
                        | Malformed::Algorithm
                        | Malformed::Nonce
                        | Malformed::Ciphertext => "it is no serialized KeyEncryptionKey",
                    },
                })?;
            keys.insert(id, key);
        }
        if keys.is_empty() {
            return Err(MasterKeyError::None);
        }
        Ok(Self(keys))
    }

    /// The ids, sorted.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The data key in a stored object, and the id of the master key that opened it.
    pub(super) fn open(&self, object: &[u8]) -> Result<(Key, String), NoDataKey> {
        let stored = EncryptedDataEncryptionKey::decode(object)
            .map_err(|_| NoDataKey::Stored(Malformed::Message))?;
        let wrapped = stored
            .encrypted
            .ok_or(NoDataKey::Stored(Malformed::Message))?;
        let envelope = Envelope::of(wrapped).map_err(NoDataKey::Stored)?;
        let id = envelope.key_id.clone();
        let Some(master_key) = self.0.get(&id) else {
            return Err(NoDataKey::UnknownMasterKey(id));
        };
        let Ok(inside) = master_key.open(&envelope) else {
            return Err(NoDataKey::DoesNotOpen(id));
        };
        // Decoded from a slice, so that the key is a copy that can be wiped.
        let key = DataEncryptionKey::decode(&inside[..])
            .map_err(|_| Malformed::Message)
            .and_then(|message| Key::take(message.key));
        match key {
            Ok(key) => Ok((key, id)),
            Err(why) => Err(NoDataKey::Inside {
                master_key: id,
                why,
            }),
        }
    }
}

fn master_key(text: &str) -> Result<(String, Key), Malformed> {
    let bytes = STANDARD.decode(text).map_err(|_| Malformed::Base64)?;
    let bytes = Zeroizing::new(bytes);
    let message = KeyEncryptionKey::decode(&bytes[..]).map_err(|_| Malformed::Message)?;
    let key = Key::take(message.key)?;
    if message.id.is_empty() {
        return Err(Malformed::NoKeyId);
    }
    Ok((message.id, key))
}

/// A key of this byte over and over.
#[cfg(test)]
pub(super) fn key_for_test(byte: u8) -> Key {
    Key(Zeroizing::new([byte; KEY_LENGTH]))
}

#[cfg(test)]
mod tests;
