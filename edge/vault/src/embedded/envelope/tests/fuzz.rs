//! Whatever is stored or sent as an envelope, it opens to what was put in or not at all.

use krane_testfuzz::Fuzz;

use super::*;

#[test]
fn no_altered_envelope_opens_to_another_text() {
    let master_keys = master_keys(&[MASTER_KEY]).unwrap();
    let (key, _) = master_keys
        .open(&STANDARD.decode(STORED_KEY).unwrap())
        .unwrap();
    let fuzz = Fuzz::new("vault envelope")
        .document(VALUE)
        .document(SealingKey::new("dek_2", 7).encrypt(b"another"))
        .words(["=", "====", "AAAA", "\n", "Eg", "/"]);
    fuzz.run(|text| {
        let Ok(text) = std::str::from_utf8(text) else {
            return;
        };
        if let Ok(envelope) = Envelope::parse(text)
            && let Ok(opened) = envelope.text(&key)
        {
            assert_eq!(opened.expose(), "hello-krane");
        }
    });
}

#[test]
fn no_altered_stored_key_opens_to_another_key() {
    let master_keys = master_keys(&[MASTER_KEY]).unwrap();
    let fuzz = Fuzz::new("stored key")
        .document(STANDARD.decode(STORED_KEY).unwrap())
        .words([
            &b"\x1a\x6c"[..],
            b"\x12\x0c",
            b"\xff\xff\xff\xff\x0f",
            b"kek_testvec1",
            b"\x08\x01",
        ]);
    fuzz.run(|object| {
        if let Ok((key, id)) = master_keys.open(object) {
            assert_eq!(&key.0[..], (0x20..0x40).collect::<Vec<u8>>());
            assert_eq!(id, "kek_testvec1");
        }
    });
}

#[test]
fn a_text_that_is_no_master_key_is_refused() {
    let fuzz = Fuzz::new("master key")
        .document(MASTER_KEY)
        .words(["=", "AAAA", ",", "\n", "Cg"]);
    fuzz.run(|text| {
        let text = String::from_utf8_lossy(text);
        if let Ok(keys) = master_keys(&[&text]) {
            assert_eq!(keys.ids().count(), 1);
        }
    });
}
