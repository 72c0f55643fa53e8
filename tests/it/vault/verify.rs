//! `krane vault verify`: what it says and how it ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Output;

use krane_proto::vault::v1::LivenessResponse;
use krane_testcontract::vaults::seal::SealingKey;
use prost::Message as _;
use tokio::process::Command;

use super::{CANARY, s3};
use crate::cluster_edge::server::{Answer, Seen, Server};

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the verb with these settings and nothing else.
async fn verify(settings: &str, arguments: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("krane.toml");
    let needed = "region = 'us-east-1.aws'\n[control]\nurl = 'http://control'\ntoken = 't'\n";
    std::fs::write(&file, format!("{needed}{settings}")).unwrap();
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_krane"))
        .args(["vault", "verify", "--config"])
        .arg(&file)
        .args(arguments)
        .env_clear()
        .output()
        .await
        .unwrap();
    let ended = Ended {
        code: status.code().unwrap(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    };
    let told = format!("{} {}", ended.stdout, ended.stderr);
    assert!(!told.contains(CANARY), "{told}");
    ended
}

fn embedded(address: &str) -> String {
    format!(
        "[vault]\nmaster_keys = ['{}', '{}']\n[vault.s3]\nurl = 'http://{address}'\n\
         bucket = 'keys'\naccess_key_id = 'id'\naccess_key_secret = '{CANARY}'\n",
        s3::master_key().master_key_text(),
        SealingKey::new("kek_idle", 4).master_key_text(),
    )
}

/// A bucket with these objects below `keyring/`, two to a page.
async fn bucket(objects: &[(&str, Vec<u8>)]) -> Server {
    bucket_that(true, objects).await
}

/// The same, of a server that may keep to itself how a list goes on.
async fn bucket_that(tells_how_to_go_on: bool, objects: &[(&str, Vec<u8>)]) -> Server {
    let objects: BTreeMap<String, Vec<u8>> = objects
        .iter()
        .map(|(name, body)| (format!("keyring/{name}"), body.clone()))
        .collect();
    let answer = move |seen: &Seen| {
        let name = seen
            .path
            .trim_start_matches("/keys")
            .trim_start_matches('/');
        if !name.is_empty() {
            return objects.get(name).map_or_else(
                || s3::error(404, "NoSuchKey"),
                |body| s3::object(body.clone()),
            );
        }
        assert_eq!(seen.query("list-type"), Some("2"));
        assert_eq!(seen.query("prefix"), Some("keyring/"));
        let after = seen
            .query("continuation-token")
            .or_else(|| seen.query("start-after"))
            .unwrap_or_default();
        let page: Vec<_> = objects
            .iter()
            .filter(|(key, _)| key.as_str() > after)
            .take(2)
            .collect();
        let last = page.last().map_or("", |(key, _)| key.as_str());
        let is_cut = objects.keys().any(|key| key.as_str() > last) && !last.is_empty();
        let mut body = format!(
            "<?xml version=\"1.0\"?><ListBucketResult><Name>keys</Name><Prefix>keyring/</Prefix>\
             <KeyCount>{}</KeyCount><MaxKeys>2</MaxKeys><IsTruncated>{is_cut}</IsTruncated>",
            page.len()
        );
        for (key, object) in page {
            let _ = write!(
                body,
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>\"1\"</ETag><Size>{}</Size></Contents>",
                object.len()
            );
        }
        if is_cut && tells_how_to_go_on {
            let _ = write!(
                body,
                "<NextContinuationToken>{last}</NextContinuationToken>"
            );
        }
        Answer::text(200, "application/xml", &(body + "</ListBucketResult>"))
    };
    Server::start(answer).await
}

#[tokio::test]
async fn every_stored_key_of_every_page_is_tried() {
    let stored = || s3::master_key().wrap(&s3::data_key());
    let names: Vec<_> = (0..7).map(|number| format!("env_{number}/dek_1")).collect();
    let objects: Vec<_> = names.iter().map(|name| (name.as_str(), stored())).collect();
    let server = bucket(&objects).await;
    let ended = verify(&embedded(&server.address), &[]).await;
    assert_eq!(ended.code, 0, "{} {}", ended.stdout, ended.stderr);
    insta::assert_snapshot!(ended.stdout, @r"
    kek_1     opens 7 stored keys
    kek_idle  opens nothing that is stored

    ✔ every one of 7 stored keys can be opened
    ");
    assert_eq!(ended.stderr, "");
}

#[tokio::test]
async fn a_list_that_is_cut_without_a_word_is_read_to_its_end() {
    let stored = || s3::master_key().wrap(&s3::data_key());
    let names: Vec<_> = (0..7).map(|number| format!("env_{number}/dek_1")).collect();
    let objects: Vec<_> = names.iter().map(|name| (name.as_str(), stored())).collect();
    let server = bucket_that(false, &objects).await;
    let ended = verify(&embedded(&server.address), &[]).await;
    assert!(
        ended.stdout.contains("every one of 7 stored keys"),
        "{}",
        ended.stdout
    );
}

#[tokio::test]
async fn what_does_not_open_is_named_with_the_master_key_it_needs() {
    let server = bucket(&[
        ("env_1/dek_1", s3::master_key().wrap(&s3::data_key())),
        ("env_1/LATEST", s3::master_key().wrap(&s3::data_key())),
        (
            "env_2/dek_1",
            SealingKey::new("kek_lost", 5).wrap(&s3::data_key()),
        ),
        (
            "env_3/dek_1",
            SealingKey::new("kek_1", 5).wrap(&s3::data_key()),
        ),
        ("env_4/dek_1", b"no stored key".to_vec()),
        ("env_5/dek_1", vec![0; 2 << 20]),
    ])
    .await;
    let ended = verify(&embedded(&server.address), &[]).await;
    assert_eq!(ended.code, 1, "{} {}", ended.stdout, ended.stderr);
    insta::assert_snapshot!(ended.stdout, @r"
    kek_1     opens 2 stored keys
    kek_idle  opens nothing that is stored

    ‼ 2 stored keys that no configured master key opens:
      keyring/env_2/dek_1
          needs kek_lost: add it to vault.master_keys
      keyring/env_3/dek_1
          kek_1 is configured and does not open it: altered, or another key of that id

    ✗ 2 below keyring/ that are no stored keys:
      keyring/env_4/dek_1
          the stored key is malformed: it is no protobuf message of the vault's
      keyring/env_5/dek_1
          it is longer than a stored key
    ");
    let ended = verify(&embedded(&server.address), &["--json"]).await;
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.stdout, @r#"
    {
      "damaged": [
        {
          "object": "keyring/env_4/dek_1",
          "why": "the stored key is malformed: it is no protobuf message of the vault's"
        },
        {
          "object": "keyring/env_5/dek_1",
          "why": "it is longer than a stored key"
        }
      ],
      "locked": [
        {
          "is_configured": false,
          "master_key": "kek_lost",
          "object": "keyring/env_2/dek_1"
        },
        {
          "is_configured": true,
          "master_key": "kek_1",
          "object": "keyring/env_3/dek_1"
        }
      ],
      "objects": 6,
      "opened": {
        "kek_1": 2,
        "kek_idle": 0
      },
      "vault": "embedded"
    }
    "#);
}

#[tokio::test]
async fn an_empty_bucket_is_no_finding() {
    let server = bucket(&[]).await;
    let ended = verify(&embedded(&server.address), &[]).await;
    assert_eq!(ended.code, 0, "{} {}", ended.stdout, ended.stderr);
    assert!(
        ended.stdout.contains("nothing is stored"),
        "{}",
        ended.stdout
    );
}

#[tokio::test]
async fn a_store_that_does_not_answer_or_refuses_is_69() {
    let server = Server::start(|_| s3::error(403, "AccessDenied")).await;
    let ended = verify(&embedded(&server.address), &[]).await;
    assert_eq!(ended.code, 69);
    assert!(ended.stderr.contains("access key"), "{}", ended.stderr);
    let address = server.address.clone();
    server.stop().await;
    let ended = verify(&embedded(&address), &[]).await;
    assert_eq!(ended.code, 69);
    assert!(
        ended.stderr.contains("cannot be reached"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn without_an_embedded_vault_it_says_so() {
    let ended = verify("", &[]).await;
    assert_eq!(ended.code, 78);
    assert!(
        ended.stderr.contains("no vault is configured"),
        "{}",
        ended.stderr
    );
    let ended = verify("[vault]\nmaster_keys = ['k']", &[]).await;
    assert_eq!(ended.code, 78, "half of the settings");
    let bad = embedded("127.0.0.1:1").replace("master_keys = [", "master_keys = ['k', ");
    let ended = verify(&bad, &[]).await;
    assert_eq!(ended.code, 78);
    assert!(ended.stderr.contains("master key 1"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_vault_service_is_asked_whether_it_is_alive() {
    let server = Server::start(|seen: &Seen| {
        assert_eq!(seen.path, "/vault.v1.VaultService/Liveness");
        let status = "ok".to_owned();
        Answer::Full {
            status: 200,
            headers: vec![("content-type", "application/proto".to_owned())],
            body: LivenessResponse { status }.encode_to_vec(),
        }
    })
    .await;
    let settings = format!(
        "[vault]\nurl = 'http://{}'\ntoken = '{CANARY}'\n",
        server.address
    );
    let ended = verify(&settings, &[]).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("is alive"), "{}", ended.stdout);
    server.stop().await;
    let ended = verify(&settings, &[]).await;
    assert_eq!(ended.code, 69);
    assert!(ended.stderr.contains("vault.url"), "{}", ended.stderr);
}
