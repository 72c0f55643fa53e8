//! `krane allow-deletes` against servers that answer as they like.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail them"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output};

/// Asks a server that says this and hangs up.
fn ask(answer: &[u8], arguments: &[&str]) -> Output {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).unwrap();
            // Whoever has heard enough may hang up first.
            let _ = stream.write_all(answer);
        });
        Command::new(env!("CARGO_BIN_EXE_krane"))
            .args(["allow-deletes", "deployments", "--admin", &admin])
            .args(arguments)
            .env_clear()
            .output()
            .unwrap()
    })
}

fn closing(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    (head + body).into_bytes()
}

/// It was told that the server does not answer, after everything had been deleted.
#[test]
fn an_answer_counts_though_the_server_hangs_up() {
    for _ in 0..5 {
        let output = ask(&closing("200 OK", r#"{"deleted":["ns/a"]}"#), &["--yes"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ns/a\n");
        assert!(told.contains("1 object deleted"), "{told}");
    }
    let output = ask(&closing("401 Unauthorized", "who are you"), &[]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("who are you") && told.contains("--token-file"),
        "{told}"
    );
}

#[test]
fn what_a_server_says_does_not_rule_the_terminal() {
    let output = ask(
        &closing("200 OK", r#"{"deleted":["\u001b[2Jns/a\nns/b"]}"#),
        &["--yes"],
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "\\u{1b}[2Jns/a\\nns/b\n"
    );
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 80000000\r\n\r\n".to_vec();
    answer.resize(80_000_000, b'x');
    let output = ask(&answer, &["--yes"]);
    assert_eq!(output.status.code(), Some(69));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("length limit exceeded"), "{told}");
}
