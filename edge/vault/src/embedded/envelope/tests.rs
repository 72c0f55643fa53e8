//! The format, its test vector, and what must not get through.

mod fuzz;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use krane_proto::vault::v1::{Encrypted, EncryptedDataEncryptionKey, KeyEncryptionKey};
use krane_testcontract::vaults::seal::SealingKey;
use proptest::prelude::*;
use prost::Message as _;
use secrecy::SecretString;

use super::{Envelope, Key, Malformed, MasterKeyError, MasterKeys, NoDataKey, NoPlaintext};

const MASTER_KEY: &str =
    "CgxrZWtfdGVzdHZlYzEQgNDqtrczGiAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==";
const STORED_KEY: &str = "CgxkZWtfdGVzdHZlYzEQgdDqtrczGmwSDKChoqOkpaanqKmqqxpH7BQYSC6UdtoREfG2ZEvQX6BG76ehrWJMvSwFolqNUin7XGzTggx8DW6uN/w8TLTBfiF9dF/uJYs9cm3JGJFmiwCo7QerArMiDGtla190ZXN0dmVjMSiC0Oq2tzM=";
const VALUE: &str =
    "EgywsbKztLW2t7i5ursaG16fRiv9DqN8U2N4QNjI5qAi1N0PqHkvF5ZGzSIMZGVrX3Rlc3R2ZWMxKIPQ6ra3Mw==";

fn master_keys(texts: &[&str]) -> Result<MasterKeys, MasterKeyError> {
    let list: Vec<_> = texts.iter().map(|text| SecretString::from(*text)).collect();
    MasterKeys::parse(&list)
}

fn master_key(key: &SealingKey) -> MasterKeys {
    master_keys(&[&key.master_key_text()]).unwrap()
}

fn key(seed: u8) -> Key {
    Key::take(Bytes::from(vec![seed; 32])).unwrap()
}

/// What a value is decrypted to, through all layers.
fn decrypt(master_keys: &MasterKeys, object: &[u8], value: &str) -> Result<String, String> {
    let (key, _) = master_keys.open(object).map_err(|why| why.to_string())?;
    let envelope = Envelope::parse(value).map_err(|why| why.to_string())?;
    let text = envelope.text(&key).map_err(|why| why.to_string())?;
    Ok(text.expose().to_owned())
}

#[test]
fn the_test_vector_opens() {
    let master_keys = master_keys(&[MASTER_KEY]).unwrap();
    assert_eq!(master_keys.ids().collect::<Vec<_>>(), ["kek_testvec1"]);
    let object = STANDARD.decode(STORED_KEY).unwrap();
    assert_eq!(object.len(), 131);
    let (key, master_key) = master_keys.open(&object).unwrap();
    assert_eq!(master_key, "kek_testvec1");
    assert_eq!(&key.0[..], (0x20..0x40).collect::<Vec<u8>>());
    let envelope = Envelope::parse(VALUE).unwrap();
    assert_eq!(envelope.key_id(), "dek_testvec1");
    assert_eq!(envelope.text(&key).unwrap().expose(), "hello-krane");
}

#[test]
fn an_incomplete_envelope_names_what_it_lacks() {
    let good = SealingKey::new("dek_1", 1).envelope(b"text");
    let check = |expected, change: fn(&mut Encrypted)| {
        let mut envelope = good.clone();
        change(&mut envelope);
        let text = STANDARD.encode(envelope.encode_to_vec());
        assert_eq!(Envelope::parse(&text).unwrap_err(), expected);
    };
    check(Malformed::Algorithm, |envelope| envelope.algorithm = 1);
    check(Malformed::NoKeyId, |envelope| {
        envelope.encryption_key_id.clear();
    });
    check(Malformed::Nonce, |envelope| envelope.nonce = Bytes::new());
    check(Malformed::Nonce, |envelope| {
        envelope.nonce = vec![0; 11].into();
    });
    check(Malformed::Nonce, |envelope| {
        envelope.nonce = vec![0; 13].into();
    });
    check(Malformed::Ciphertext, |envelope| {
        envelope.ciphertext = vec![0; 15].into();
    });
    let parse = |text: &str| Envelope::parse(text).unwrap_err();
    assert_eq!(parse("%"), Malformed::Base64);
    assert_eq!(parse("QQ"), Malformed::Base64, "without padding");
    assert_eq!(parse("-_-_"), Malformed::Base64, "the alphabet of URLs");
    assert_eq!(parse("QUFB"), Malformed::Message);
    assert_eq!(parse(""), Malformed::NoKeyId);
}

#[test]
fn what_was_encrypted_must_be_text() {
    let envelope = Envelope::parse(&SealingKey::new("dek_1", 1).encrypt(&[0xff, 0xfe])).unwrap();
    assert_eq!(envelope.text(&key(1)).unwrap_err(), NoPlaintext::NotText);
    assert!(matches!(
        envelope.text(&key(2)).unwrap_err(),
        NoPlaintext::DoesNotOpen(_)
    ));
}

#[test]
fn of_two_master_keys_with_one_id_the_later_wins() {
    let (old, new) = (SealingKey::new("kek_1", 1), SealingKey::new("kek_1", 2));
    let object = new.wrap(&SealingKey::new("dek_1", 3));
    let texts = [old.master_key_text(), new.master_key_text()];
    assert!(
        master_keys(&[&texts[0], &texts[1]])
            .unwrap()
            .open(&object)
            .is_ok()
    );
    assert_eq!(
        master_keys(&[&texts[1], &texts[0]])
            .unwrap()
            .open(&object)
            .unwrap_err(),
        NoDataKey::DoesNotOpen("kek_1".to_owned())
    );
}

#[test]
fn a_bad_master_key_is_named_by_its_place_and_never_shown() {
    let text = |id: &str, length| {
        let message = KeyEncryptionKey {
            id: id.to_owned(),
            created_at: 0,
            key: vec![7; length].into(),
        };
        STANDARD.encode(message.encode_to_vec())
    };
    let canary = "canary-5d41402abc4b2a76";
    for bad in [
        canary,
        &text("kek", 31),
        &text("kek", 33),
        &text("", 32),
        "QUFB",
    ] {
        let error = master_keys(&[MASTER_KEY, bad]).unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(
            matches!(error, MasterKeyError::Malformed { number: 2, .. }),
            "{told}"
        );
        assert!(!told.contains(canary) && !told.contains(bad), "{told}");
    }
    assert_eq!(master_keys(&[]).unwrap_err(), MasterKeyError::None);
}

#[test]
fn a_stored_key_that_stays_closed_says_which_master_key_it_needs() {
    let (mine, other) = (SealingKey::new("kek_1", 1), SealingKey::new("kek_2", 2));
    let master_keys = master_key(&mine);
    let data_key = SealingKey::new("dek_1", 3);
    assert_eq!(
        master_keys.open(&other.wrap(&data_key)).unwrap_err(),
        NoDataKey::UnknownMasterKey("kek_2".to_owned())
    );
    let same_id = SealingKey::new("kek_1", 9);
    assert_eq!(
        master_keys.open(&same_id.wrap(&data_key)).unwrap_err(),
        NoDataKey::DoesNotOpen("kek_1".to_owned())
    );
    let short = SealingKey {
        key: vec![3; 16],
        ..data_key
    };
    assert!(matches!(
        master_keys.open(&mine.wrap(&short)).unwrap_err(),
        NoDataKey::Inside {
            why: Malformed::KeyLength,
            ..
        }
    ));
    assert!(matches!(
        master_keys
            .open(&mine.wrap_bytes("dek_1", &[0xff]))
            .unwrap_err(),
        NoDataKey::Inside {
            why: Malformed::Message,
            ..
        }
    ));
    let empty = EncryptedDataEncryptionKey::default().encode_to_vec();
    for malformed in [&[][..], &[0xff], &empty] {
        assert_eq!(
            master_keys.open(malformed).unwrap_err(),
            NoDataKey::Stored(Malformed::Message)
        );
    }
}

#[test]
fn no_debug_output_shows_a_key_or_a_ciphertext() {
    let master_keys = master_keys(&[MASTER_KEY]).unwrap();
    let shown = format!("{master_keys:?} {:?}", Envelope::parse(VALUE).unwrap());
    assert_eq!(
        shown,
        "MasterKeys({\"kek_testvec1\": Key}) Envelope { key_id: \"dek_testvec1\", \
         nonce: [176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187], \
         ciphertext: 27 bytes }"
    );
}

/// One environment with one value, as it is stored.
struct Stored {
    master_keys: MasterKeys,
    object: Vec<u8>,
    value: Vec<u8>,
}

static STORED: LazyLock<Stored> = LazyLock::new(|| {
    let (master_key, data_key) = (SealingKey::new("kek_1", 1), SealingKey::new("dek_1", 2));
    Stored {
        master_keys: self::master_key(&master_key),
        object: master_key.wrap(&data_key),
        value: data_key.envelope(b"the plaintext").encode_to_vec(),
    }
});

/// Nothing, or what it was: a flipped bit of the time changes no plaintext.
fn never_wrong(object: &[u8], value: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(text) = decrypt(&STORED.master_keys, object, &STANDARD.encode(value)) {
        prop_assert_eq!(text, "the plaintext");
    }
    Ok(())
}

#[test]
fn no_single_flipped_bit_makes_another_plaintext() {
    for (name, original) in [("object", &STORED.object), ("value", &STORED.value)] {
        let mut opened = 0;
        for bit in 0..original.len() * 8 {
            let mut changed = original.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let (object, value) = if name == "object" {
                (&changed, &STORED.value)
            } else {
                (&STORED.object, &changed)
            };
            match decrypt(&STORED.master_keys, object, &STANDARD.encode(value)) {
                Ok(text) => {
                    assert_eq!(text, "the plaintext", "bit {bit} of the {name}");
                    opened += 1;
                }
                Err(words) => assert!(!words.contains("the plaintext")),
            }
        }
        assert!(opened < original.len() * 8, "{name}");
    }
}

proptest! {
    #[test]
    fn whatever_was_encrypted_comes_back(text in ".{0,200}", kek in any::<u8>(), dek in any::<u8>()) {
        let (master_key, data_key) = (SealingKey::new("kek", kek), SealingKey::new("dek", dek));
        let object = master_key.wrap(&data_key);
        let value = data_key.encrypt(text.as_bytes());
        prop_assert_eq!(decrypt(&self::master_key(&master_key), &object, &value), Ok(text));
    }

    #[test]
    fn flipped_bits_never_make_another_plaintext(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..6),
    ) {
        for is_object in [true, false] {
            let (mut object, mut value) = (STORED.object.clone(), STORED.value.clone());
            let changed = if is_object { &mut object } else { &mut value };
            for (index, bit) in &flips {
                let index = index.index(changed.len());
                changed[index] ^= 1 << bit;
            }
            never_wrong(&object, &value)?;
        }
    }

    #[test]
    fn cut_and_lengthened_bytes_never_make_another_plaintext(
        at in any::<prop::sample::Index>(),
        more in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let cut = |bytes: &[u8]| [&bytes[..at.index(bytes.len())], &more[..]].concat();
        never_wrong(&cut(&STORED.object), &STORED.value)?;
        never_wrong(&STORED.object, &cut(&STORED.value))?;
        never_wrong(&[&STORED.object[..], &more[..]].concat(), &STORED.value)?;
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        text in ".{0,100}",
    ) {
        prop_assert!(STORED.master_keys.open(&bytes).is_err());
        prop_assert!(decrypt(&STORED.master_keys, &STORED.object, &STANDARD.encode(&bytes)).is_err());
        prop_assert!(Envelope::parse(&text).is_err());
        prop_assert!(master_keys(&[text.as_str()]).is_err());
    }
}
