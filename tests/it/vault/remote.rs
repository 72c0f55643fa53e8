//! A vault service that does exactly what a test says.

mod contract;
mod tls;

use std::collections::BTreeMap;
use std::time::Duration;

use krane_ports::{Vault as _, VaultFailure, VaultFailureKind};
use krane_proto::vault::v1::{
    DecryptBulkRequest, DecryptBulkResponse, DecryptRequest, DecryptResponse, LivenessResponse,
};
use krane_settings::SecretSource;
use krane_vault::{RemoteTiming, RemoteVault};
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::{mpsc, watch};

use super::{CANARY, items};
use crate::cluster_edge::server::{Answer, Seen, Server};

pub(super) const TOKEN: &str = "vault-token";

/// A limit that a test reaches soon.
const SHORT: Duration = Duration::from_millis(200);

pub(super) fn vault(address: &str, timing: RemoteTiming) -> RemoteVault {
    let url = format!("http://{address}").parse().unwrap();
    RemoteVault::new(&url, Some(SecretSource::fixed(TOKEN)), timing).unwrap()
}

fn proto(message: &impl Message) -> Answer {
    Answer::Full {
        status: 200,
        headers: vec![("content-type", "application/proto".to_owned())],
        body: message.encode_to_vec(),
    }
}

fn error(status: u16, code: &str) -> Answer {
    let body = serde_json::json!({ "code": code, "message": format!("echo {CANARY}") });
    Answer::json(status, &body)
}

fn method(seen: &Seen) -> &str {
    seen.path.strip_prefix("/vault.v1.VaultService/").unwrap()
}

/// Decrypts `x` to `plain x`, by whichever call.
fn decrypt(seen: &Seen) -> Answer {
    let plain = |encrypted: &str| format!("plain {encrypted}");
    match method(seen) {
        "DecryptBulk" => {
            let request = DecryptBulkRequest::decode(&seen.body[..]).unwrap();
            let values = request.items.into_iter();
            proto(&DecryptBulkResponse {
                items: values.map(|(name, value)| (name, plain(&value))).collect(),
            })
        }
        "Decrypt" => {
            let request = DecryptRequest::decode(&seen.body[..]).unwrap();
            proto(&DecryptResponse {
                plaintext: plain(&request.encrypted),
            })
        }
        other => panic!("{other}"),
    }
}

/// The outcome of one call, of a server that always answers so.
async fn outcome(
    timing: RemoteTiming,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> VaultFailure {
    let server = Server::start(move |_| answer()).await;
    let items = items(&[("A", CANARY)]);
    let result = vault(&server.address, timing).decrypt("env", &items).await;
    let failure = result.unwrap_err();
    let told = format!("{failure} {failure:?}");
    assert!(!told.contains(CANARY) && !told.contains(TOKEN), "{told}");
    failure
}

async fn check(
    kind: VaultFailureKind,
    code: &str,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) {
    let failure = outcome(RemoteTiming::default(), answer).await;
    assert_eq!((failure.kind, failure.code), (kind, code), "{failure}");
}

#[tokio::test]
async fn a_call_is_what_the_protocol_says() {
    let server = Server::start(decrypt).await;
    let vault = vault(&server.address, RemoteTiming::default());
    let items = items(&[("A", "1"), ("B", "2")]);
    let texts = vault.decrypt("env_1", &items).await.unwrap();
    assert_eq!(texts["A"].expose(), "plain 1");
    let seen = server.only_request();
    assert_eq!(
        (seen.method.as_str(), method(&seen)),
        ("POST", "DecryptBulk")
    );
    let header = |name: &str| seen.headers[name].as_str();
    assert_eq!(header("content-type"), "application/proto");
    assert_eq!(header("connect-protocol-version"), "1");
    assert_eq!(header("authorization"), "Bearer vault-token");
    assert!(header("user-agent").starts_with("krane/"));
    let request = DecryptBulkRequest::decode(&seen.body[..]).unwrap();
    assert_eq!(request.keyring, "env_1");
    assert_eq!(request.items.into_iter().collect::<BTreeMap<_, _>>(), items);
}

#[tokio::test]
async fn the_path_of_the_address_is_kept() {
    let script = |seen: &Seen| {
        assert_eq!(seen.path, "/base/path/vault.v1.VaultService/DecryptBulk");
        proto(&DecryptBulkResponse {
            items: [("A".to_owned(), "1".to_owned())].into(),
        })
    };
    let server = Server::start(script).await;
    let vault = vault(
        &format!("{}/base/path", server.address),
        RemoteTiming::default(),
    );
    assert!(vault.decrypt("env", &items(&[("A", "x")])).await.is_ok());
}

#[tokio::test]
async fn the_token_is_read_for_every_request() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first").unwrap();
    let server = Server::start(decrypt).await;
    let url = format!("http://{}", server.address).parse().unwrap();
    let token = SecretSource::file(file.path()).unwrap();
    let vault = RemoteVault::new(&url, Some(token), RemoteTiming::default()).unwrap();
    let items = items(&[("A", "1")]);
    vault.decrypt("env", &items).await.unwrap();
    std::fs::write(file.path(), "second\n").unwrap();
    vault.decrypt("env", &items).await.unwrap();
    let bearers: Vec<_> = server
        .requests()
        .iter()
        .map(|seen| seen.bearer().to_owned())
        .collect();
    assert_eq!(bearers, ["first", "second"]);
}

#[tokio::test]
async fn without_a_token_none_is_sent_and_one_that_cannot_be_sent_is_told() {
    let server = Server::start(decrypt).await;
    let url = format!("http://{}", server.address).parse().unwrap();
    let items = items(&[("A", "1")]);
    let open = RemoteVault::new(&url, None, RemoteTiming::default()).unwrap();
    open.decrypt("env", &items).await.unwrap();
    assert!(!server.only_request().headers.contains_key("authorization"));

    let token = SecretSource::fixed("canary\u{7}bell");
    let vault = RemoteVault::new(&url, Some(token), RemoteTiming::default()).unwrap();
    let failure = vault.decrypt("env", &items).await.unwrap_err();
    assert_eq!(failure.code, "unauthenticated");
    assert!(!failure.message.contains("canary"), "{failure}");
}

#[tokio::test]
async fn failures_are_told_apart() {
    use VaultFailureKind::{Refused, Unavailable};
    check(Refused, "internal", || error(500, "internal")).await;
    check(Refused, "unauthenticated", || error(401, "unauthenticated")).await;
    check(Refused, "invalid_argument", || {
        error(400, "invalid_argument")
    })
    .await;
    check(Unavailable, "unavailable", || error(503, "unavailable")).await;
    check(Unavailable, "resource_exhausted", || {
        error(429, "resource_exhausted")
    })
    .await;
    let page = |status| Answer::text(status, "text/html", CANARY);
    check(Unavailable, "unknown", move || page(500)).await;
    check(Unavailable, "unavailable", move || page(502)).await;
    check(Unavailable, "unimplemented", move || page(404)).await;
    check(Refused, "unauthenticated", move || page(401)).await;
    check(Unavailable, "unknown", move || page(200)).await;
    check(Unavailable, "unknown", move || {
        page(302).with_header("location", "http://elsewhere/")
    })
    .await;
    check(Unavailable, "unavailable", || Answer::Close).await;
    let short = RemoteTiming {
        call: SHORT,
        ..RemoteTiming::default()
    };
    let failure = outcome(short, || Answer::Hang).await;
    assert_eq!(
        (failure.kind, failure.code),
        (Unavailable, "deadline_exceeded")
    );
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_decrypts_nothing() {
    use VaultFailureKind::{Refused, Unavailable};
    let garbage = |body: &'static [u8]| {
        move || Answer::Full {
            status: 200,
            headers: vec![("content-type", "application/proto".to_owned())],
            body: body.to_vec(),
        }
    };
    check(Refused, "internal", garbage(b"\xff\xff\xff\xff")).await;
    check(Refused, "internal", garbage(b"")).await;
    check(Unavailable, "unknown", || Answer::Cut(b"half".to_vec())).await;
    let names = |names: &'static [&'static str]| {
        move || {
            let texts = names
                .iter()
                .map(|name| ((*name).to_owned(), CANARY.to_owned()));
            proto(&DecryptBulkResponse {
                items: texts.collect(),
            })
        }
    };
    check(Refused, "internal", names(&[])).await;
    check(Refused, "internal", names(&["B"])).await;
    check(Refused, "internal", names(&["A", "B"])).await;
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let server = Server::start(|_| Answer::Full {
        status: 200,
        headers: vec![("content-type", "application/proto".to_owned())],
        body: vec![b'x'; (16 << 20) + 1],
    })
    .await;
    let vault = vault(&server.address, RemoteTiming::default());
    let failure = vault
        .decrypt("env", &items(&[("A", "1")]))
        .await
        .unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (VaultFailureKind::Refused, "out_of_range")
    );
}

/// The deadline is for the whole call: it does not end with the headers of the answer.
#[tokio::test]
async fn an_answer_that_comes_in_drops_is_given_up() {
    let (pieces, receiver) = mpsc::channel(100);
    let receiver = Mutex::new(Some(receiver));
    pieces.send(b"{".to_vec()).await.unwrap();
    let server = Server::start(move |_| Answer::Stream(receiver.lock().take().unwrap())).await;
    let timing = RemoteTiming {
        call: SHORT,
        ..RemoteTiming::default()
    };
    let vault = vault(&server.address, timing);
    let failure = vault
        .decrypt("env", &items(&[("A", "1")]))
        .await
        .unwrap_err();
    assert_eq!(failure.code, "deadline_exceeded");
    server.wait_for_no_connection().await;
    drop(pieces);
}

#[tokio::test]
async fn a_connection_is_used_again_and_one_that_was_closed_costs_no_call() {
    let server = Server::start(decrypt).await;
    let vault = vault(&server.address, RemoteTiming::default());
    let items = items(&[("A", "1")]);
    for _ in 0..5 {
        vault.decrypt("env", &items).await.unwrap();
    }
    let address = server.address.clone();
    server.stop().await;
    let server = Server::start_at(&address, decrypt).await;
    // By the time that another one has been answered, the end of the old connection has arrived.
    let other = self::vault(&address, RemoteTiming::default());
    other.decrypt("env", &items).await.unwrap();
    vault.decrypt("env", &items).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

/// Whoever asks decides about another try.
#[tokio::test]
async fn what_was_sent_is_not_sent_again() {
    let server = Server::start(|_| Answer::Close).await;
    let vault = vault(&server.address, RemoteTiming::default());
    let failure = vault
        .decrypt("env", &items(&[("A", "1")]))
        .await
        .unwrap_err();
    assert_eq!(failure.kind, VaultFailureKind::Unavailable);
    assert_eq!(server.requests().len(), 1);
}

fn count(server: &Server, name: &str) -> usize {
    let requests = server.requests();
    requests.iter().filter(|seen| method(seen) == name).count()
}

/// A vault without the call for many values.
fn old(bulk: fn() -> Answer) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    move |seen| match method(seen) {
        "DecryptBulk" => bulk(),
        _ => decrypt(seen),
    }
}

#[tokio::test]
async fn an_old_vault_is_asked_for_each_value_and_remembered() {
    for bulk in [(|| error(501, "unimplemented")) as fn() -> Answer, || {
        Answer::text(404, "text/plain", "404 page not found\n")
    }] {
        let server = Server::start(old(bulk)).await;
        let vault = vault(&server.address, RemoteTiming::default());
        let items = items(&[("A", "1"), ("B", "2"), ("C", "3")]);
        for _ in 0..2 {
            let texts = vault.decrypt("env", &items).await.unwrap();
            assert_eq!(texts["C"].expose(), "plain 3");
            assert_eq!(texts.len(), 3);
        }
        assert_eq!(
            (count(&server, "DecryptBulk"), count(&server, "Decrypt")),
            (1, 6)
        );
    }
}

#[tokio::test]
async fn after_a_while_an_old_vault_may_be_a_new_one() {
    let server = Server::start(old(|| error(501, "unimplemented"))).await;
    let timing = RemoteTiming {
        one_by_one: Duration::ZERO,
        ..RemoteTiming::default()
    };
    let vault = vault(&server.address, timing);
    for _ in 0..3 {
        vault.decrypt("env", &items(&[("A", "1")])).await.unwrap();
    }
    assert_eq!(count(&server, "DecryptBulk"), 3);
}

/// A proxy without a vault behind it answers 404 as well: that says nothing about the vault.
#[tokio::test]
async fn a_vault_that_was_not_there_is_no_old_one() {
    let (there, is_there) = watch::channel(false);
    let server = Server::start(move |seen| {
        if *is_there.borrow() {
            decrypt(seen)
        } else {
            Answer::text(404, "text/html", "default backend")
        }
    })
    .await;
    let vault = vault(&server.address, RemoteTiming::default());
    let one = items(&[("A", "1")]);
    let failure = vault.decrypt("env", &one).await.unwrap_err();
    assert_eq!(failure.kind, VaultFailureKind::Unavailable);
    there.send(true).unwrap();
    let before = server.requests().len();
    let two = items(&[("A", "1"), ("B", "2")]);
    vault.decrypt("env", &two).await.unwrap();
    assert_eq!(server.requests().len(), before + 1, "one call for all");
}

/// unkeyed/unkey 4b7f6d2cf8 (A57).
#[tokio::test]
async fn one_bad_value_of_an_old_vault_is_named_and_ends_the_rest() {
    let server = Server::start(|seen| match method(seen) {
        "DecryptBulk" => error(501, "unimplemented"),
        "Decrypt" => {
            let request = DecryptRequest::decode(&seen.body[..]).unwrap();
            if request.encrypted == "bad" {
                error(400, "invalid_argument")
            } else {
                decrypt(seen)
            }
        }
        other => panic!("{other}"),
    })
    .await;
    let vault = vault(&server.address, RemoteTiming::default());
    let mut items: BTreeMap<_, _> = (0..200)
        .map(|n| (format!("N{n:03}"), "good".to_owned()))
        .collect();
    items.insert("N017".to_owned(), "bad".to_owned());
    let failure = vault.decrypt("env", &items).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (VaultFailureKind::Refused, "invalid_argument")
    );
    assert!(failure.message.contains("N017"), "{failure}");
    assert!(
        count(&server, "Decrypt") < 100,
        "{}",
        count(&server, "Decrypt")
    );
}

#[tokio::test]
async fn values_of_an_old_vault_are_asked_for_some_at_once() {
    let (open, gate) = watch::channel(false);
    let server = Server::start(move |seen| match method(seen) {
        "DecryptBulk" => error(501, "unimplemented"),
        _ => Answer::After(gate.clone(), Box::new(decrypt(seen))),
    })
    .await;
    let vault = vault(&server.address, RemoteTiming::default());
    let items: BTreeMap<_, _> = (0..40).map(|n| (format!("N{n}"), n.to_string())).collect();
    let open_when_full = async {
        server.wait_for_requests(17).await;
        assert_eq!(count(&server, "Decrypt"), 16);
        open.send(true).unwrap();
    };
    let (texts, ()) = tokio::join!(vault.decrypt("env", &items), open_when_full);
    assert_eq!(texts.unwrap().len(), 40);
}

#[tokio::test]
async fn liveness_is_what_the_vault_says() {
    let status = |status: &'static str| {
        move |_: &Seen| {
            proto(&LivenessResponse {
                status: status.to_owned(),
            })
        }
    };
    let server = Server::start(status("ok")).await;
    assert_eq!(
        vault(&server.address, RemoteTiming::default())
            .liveness()
            .await,
        Ok(())
    );
    let server = Server::start(status("sealed")).await;
    assert!(
        vault(&server.address, RemoteTiming::default())
            .liveness()
            .await
            .is_err()
    );
}
