//! Certificates that are renewed, badly and well.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use krane_settings::RpcTls;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::ring;
use tempfile::TempDir;
use tokio::time::Instant;

use super::{Certificate, LOOK_AFTER};

struct Files {
    folder: TempDir,
    tls: RpcTls,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tls = RpcTls {
            cert: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        Self { folder, tls }
    }

    fn write(&self, cert: &CertifiedKey<KeyPair>, key: &CertifiedKey<KeyPair>) {
        fs::write(&self.tls.cert, cert.cert.pem()).unwrap();
        fs::write(&self.tls.key, key.signing_key.serialize_pem()).unwrap();
    }

    fn read(&self) -> Certificate {
        Certificate::read(self.tls.clone(), Arc::new(ring::default_provider())).unwrap()
    }
}

fn pair() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

fn check(certificate: &Certificate, now: Instant, expected: &CertifiedKey<KeyPair>, why: &str) {
    let shown = certificate.current(now);
    assert_eq!(
        shown.cert[0].as_ref(),
        expected.cert.der().as_ref(),
        "{why}"
    );
}

#[test]
fn a_renewed_certificate_is_used_without_a_restart() {
    let (files, old, new) = (Files::new(), pair(), pair());
    files.write(&old, &old);
    let certificate = files.read();
    let start = Instant::now();
    files.write(&new, &new);
    check(&certificate, start, &old, "nobody looks at every handshake");
    let later = start + LOOK_AFTER + Duration::from_secs(1);
    check(&certificate, later, &new, "renewed");
    check(&certificate, later, &new, "and stays");
}

#[test]
fn a_bad_pair_keeps_the_last_good_one() {
    let (files, old, new) = (Files::new(), pair(), pair());
    files.write(&old, &old);
    let certificate = files.read();
    let mut now = Instant::now();
    let mut check_at_next_look = |expected: &CertifiedKey<KeyPair>, why: &str| {
        now += LOOK_AFTER + Duration::from_secs(1);
        check(&certificate, now, expected, why);
        assert!(why == "mended" || certificate.last.lock().failed, "{why}");
    };
    files.write(&new, &old);
    check_at_next_look(&old, "the key is not there yet");
    fs::write(&files.tls.key, "no key").unwrap();
    check_at_next_look(&old, "no key");
    fs::write(&files.tls.cert, "").unwrap();
    check_at_next_look(&old, "no certificate");
    fs::remove_file(&files.tls.cert).unwrap();
    check_at_next_look(&old, "no file");
    files.write(&new, &new);
    check_at_next_look(&new, "mended");
}

/// A mounted secret is a link to a folder that is swapped.
#[cfg(unix)]
#[test]
fn a_swapped_folder_is_followed() {
    use std::os::unix::fs::symlink;

    let (files, old, new) = (Files::new(), pair(), pair());
    let link = files.folder.path().join("..data");
    let write = |folder: &Path, pair: &CertifiedKey<KeyPair>| {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("tls.crt"), pair.cert.pem()).unwrap();
        fs::write(folder.join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
    };
    let (first, second) = (files.folder.path().join("1"), files.folder.path().join("2"));
    write(&first, &old);
    write(&second, &new);
    symlink(&first, &link).unwrap();
    symlink(link.join("tls.crt"), &files.tls.cert).unwrap();
    symlink(link.join("tls.key"), &files.tls.key).unwrap();
    let certificate = files.read();
    let start = Instant::now();
    check(&certificate, start, &old, "the first");
    fs::remove_file(&link).unwrap();
    symlink(&second, &link).unwrap();
    check(&certificate, start + LOOK_AFTER * 2, &new, "the second");
}

#[test]
fn debug_tells_no_key() {
    let (files, pair) = (Files::new(), pair());
    files.write(&pair, &pair);
    let shown = format!("{:?}", files.read());
    assert!(
        shown.starts_with("Certificate(") && !shown.contains("PRIVATE"),
        "{shown}"
    );
}
