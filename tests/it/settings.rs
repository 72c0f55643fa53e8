//! The binary against configurations: exit codes, what goes where, and what never appears.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests may fail them, and time is real here"
)]

use krane_testharness::free_ports::free_ports;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const CANARY: &str = "canary-2c26b46b68ffc68f";

struct Krane {
    command: Command,
    dir: TempDir,
}

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Krane {
    /// The binary with an empty environment.
    fn new(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_krane"));
        command.args(arguments).env_clear();
        Self {
            command,
            dir: TempDir::new().unwrap(),
        }
    }

    fn configured(arguments: &[&str]) -> Self {
        Self::new(arguments)
            .env("UNKEY_REGION", "us-east-1.aws")
            .env("UNKEY_CONTROL_PLANE_URL", "http://127.0.0.1:1")
            .env("UNKEY_CONTROL_PLANE_BEARER", CANARY)
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    fn file(mut self, text: &str) -> Self {
        let path: PathBuf = self.dir.path().join("krane.toml");
        std::fs::write(&path, text).unwrap();
        self.command.arg("--config").arg(path);
        self
    }

    /// Runs it to its end; no output may hold a canary.
    fn end(mut self) -> Ended {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command.output().unwrap();
        let ended = Ended {
            code: status.code().unwrap(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        };
        for output in [&ended.stdout, &ended.stderr] {
            assert!(!output.contains(CANARY), "{output}");
            assert!(
                !output.contains('\x1b'),
                "coloured without a terminal: {output}"
            );
        }
        ended
    }
}

/// unkeyed/unkey 8242e8c4f3, 75b537baa6, PR #5045 (A59): exit within a second, every bad field named, no secret printed.
#[test]
fn a_wrong_configuration_ends_both_verbs_with_78_and_every_problem() {
    for verb in ["run", "check-config"] {
        let started = Instant::now();
        let ended = Krane::new(&[verb])
            .env("UNKEY_CONTROL_PLANE_URL", "ftp://x")
            .env("UNKEY_RPC_PORT", "70000")
            .env("UNKEY_LOG_SAMPLE_RATE", "1.5")
            .env("UNKEY_REGISTRY_USERNAME", "x-token")
            .env("UNKEY_VAULT_TOKEN", CANARY)
            .env("KRANE__CONTROL__TOKN", CANARY)
            .end();
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "{:?}",
            started.elapsed()
        );
        assert_eq!((ended.code, ended.stdout.as_str()), (78, ""));
        for wrong in [
            "✗ KRANE__CONTROL__TOKN is not a known key",
            "did you mean KRANE__CONTROL__TOKEN?",
            "✗ region is required",
            "✗ rpc_port must be a whole number from 1 to 65535",
            "value  \"70000\"",
            "from   environment variable UNKEY_RPC_PORT",
            "✗ control.url must start with http:// or https://",
            "✗ control.token is required",
            "✗ registry.url is needed together with registry.username",
            "✗ registry.password is needed together with registry.username",
            "✗ observability.logging.sample_rate must be a number from 0 to 1",
            "✗ 8 problems in the configuration, nothing was started",
        ] {
            assert!(
                ended.stderr.contains(wrong),
                "{wrong} is not in\n{}",
                ended.stderr
            );
        }
    }
}

#[test]
fn a_valid_configuration_is_told_so_on_stderr() {
    let ended = Krane::configured(&["check-config"]).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("", "✔ the configuration is valid\n")
    );
}

#[test]
fn the_effective_configuration_is_toml_with_origins_and_masked_secrets() {
    let ended = Krane::configured(&["check-config", "--print", "--set", "k8s.qps=5"])
        .env("KRANE__ADMIN__TOKEN", CANARY)
        .env("MORE", CANARY)
        .file("rpc_port = 8071\n[scheduler]\ntoken = '${MORE}'\n")
        .end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    let origin_of = |key: &str| {
        let line = ended
            .stdout
            .lines()
            .find(|line| line.starts_with(&format!("{key} = ")));
        line.unwrap_or_else(|| panic!("{key} is not in\n{}", ended.stdout))
    };
    for (key, value, origin) in [
        ("rpc_port", "8071", "krane.toml"),
        (
            "region",
            "\"us-east-1.aws\"",
            "# environment variable UNKEY_REGION",
        ),
        (
            "control.token",
            "\"********\"",
            "# environment variable UNKEY_CONTROL_PLANE_BEARER",
        ),
        (
            "admin.token",
            "\"********\"",
            "# environment variable KRANE__ADMIN__TOKEN",
        ),
        ("scheduler.token", "\"********\"", "krane.toml"),
        ("k8s.qps", "\"5\"", "# flag --set"),
        ("resync.interval", "\"60s\"", "# built-in default"),
        ("instance_id", "\"ins_", "# generated at start"),
    ] {
        let line = origin_of(key);
        assert!(line.contains(value) && line.ends_with(origin), "{line}");
    }
    assert!(ended.stdout.contains("# vault.url"), "{}", ended.stdout);
    let parsed: toml::Table = ended.stdout.parse().unwrap();
    assert_eq!(parsed["control"]["max_backlog"].as_str(), Some("256MiB"));
}

#[test]
fn a_lease_is_taken_as_it_is_set_and_its_timings_have_to_fit() {
    let check = |retry| {
        Krane::configured(&["check-config"])
            .env("KRANE__LEASE__ENABLED", "true")
            .env("KRANE__LEASE__RETRY", retry)
            .end()
    };
    let ended = check("300ms");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        !ended.stderr.contains("lease"),
        "nothing is in vain: {}",
        ended.stderr
    );
    for (retry, words) in [("11s", "must be less than lease.renew"), ("50ms", "100ms")] {
        let ended = check(retry);
        assert_eq!(ended.code, 78, "{retry}");
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// What a start would refuse, a check before it has to find.
#[test]
fn files_that_cannot_be_used_are_found_by_the_check() {
    let krane = Krane::configured(&["check-config"]);
    let path = krane.dir.path().join("nonsense.pem");
    std::fs::write(&path, "nonsense").unwrap();
    let path = path.to_str().unwrap().to_owned();
    let ended = krane
        .env("KRANE__RPC__TLS__CERT", &path)
        .env("KRANE__RPC__TLS__KEY", &path)
        .end();
    assert_eq!(ended.code, 78, "{}", ended.stderr);
    assert!(ended.stderr.contains("✗ the TLS files"), "{}", ended.stderr);
    assert!(!ended.stderr.contains('✔'), "{}", ended.stderr);
}

#[test]
fn what_takes_effect_is_printed_also_when_something_is_wrong() {
    let ended = Krane::configured(&["check-config", "--print"])
        .env("KRANE__RPC_PORT", "70000")
        .env("UNKEY_REGON", "eu")
        .end();
    assert_eq!(ended.code, 78, "{}", ended.stderr);
    let parsed: toml::Table = ended.stdout.parse().unwrap();
    assert_eq!(parsed["region"].as_str(), Some("us-east-1.aws"));
    for words in [
        "✗ rpc_port must be",
        "✗ 1 problem in the configuration",
        "! UNKEY_REGON has no effect: did you mean UNKEY_REGION?",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// D41: a signal ends the process within ten seconds, whatever it waits for.
#[test]
fn a_signal_while_a_credential_plugin_hangs_ends_the_start() {
    let krane = Krane::configured(&["run", "--rpc-port", &free_port()])
        .env("KRANE__ADMIN__LISTEN", "")
        .env("KRANE__OBSERVABILITY__LOGGING__FORMAT", "json");
    let folder = krane.dir.path().to_owned();
    let (plugin, started) = (folder.join("plugin"), folder.join("started"));
    let waits = format!(
        "#!/bin/sh\n: > '{0}'\nwhile [ -e '{0}' ]; do sleep 0.05; done\n",
        started.display()
    );
    std::fs::write(&plugin, waits).unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "current-context: c\nclusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:1'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, \
         command: '{}', interactiveMode: Never}}}}}}]\n",
        plugin.display()
    );
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, config).unwrap();
    let mut krane = krane.env("KUBECONFIG", &kubeconfig.display().to_string());
    krane.command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = krane.command.spawn().unwrap();
    let began = Instant::now();
    let within = |limit: u64| began.elapsed() < Duration::from_secs(limit);
    while !started.exists() && within(30) {
        assert_eq!(process.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
    let kill = format!("kill -TERM {}", process.id());
    assert!(
        Command::new("/bin/sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    let signalled = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break status;
        }
        if signalled.elapsed() > Duration::from_secs(10) {
            process.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0), "{status}");
}

fn free_port() -> String {
    let [port] = free_ports().unwrap();
    port.to_string()
}

#[test]
fn a_taken_port_ends_with_69_and_names_port_and_key() {
    let taken = TcpListener::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let free = free_port();
    let at_port = format!("[::]:{port}");
    for (key, rpc, metrics, health) in [
        ("rpc_port", &port, "0", ""),
        (
            "observability.metrics.prometheus_port",
            &free,
            port.as_str(),
            "",
        ),
        ("health.listen", &free, "0", &at_port),
    ] {
        let ended = Krane::configured(&["run", "--rpc-port", rpc, "--prometheus-port", metrics])
            .env("KRANE__ADMIN__LISTEN", "127.0.0.1:0")
            .env("KRANE__HEALTH__LISTEN", health)
            .end();
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (69, ""),
            "{}",
            ended.stderr
        );
        let sentence = format!("✗ {key}: cannot listen on port {port}");
        assert!(ended.stderr.contains(&sentence), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(&format!("set {key} to another port")),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn the_version_names_commit_and_compiler() {
    let version = Krane::new(&["version"]).end();
    assert_eq!((version.code, version.stderr.as_str()), (0, ""));
    let expected = format!("krane {} (", env!("CARGO_PKG_VERSION"));
    assert!(version.stdout.starts_with(&expected), "{}", version.stdout);
    assert!(version.stdout.contains(", rustc 1."), "{}", version.stdout);
    assert_eq!(Krane::new(&["--version"]).end().stdout, version.stdout);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for arguments in [
        &[][..],
        &["rum"],
        &["run", "--no-such-flag"],
        &["run", "--set", "nonsense"],
    ] {
        let ended = Krane::new(arguments).end();
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (2, ""),
            "{arguments:?}"
        );
    }
    assert_eq!(Krane::new(&["run", "--help"]).end().code, 0);
}

/// No flag may carry a secret: argv is public.
#[test]
fn no_flag_takes_a_secret() {
    let help = Krane::new(&["run", "--help"]).end().stdout;
    for word in ["token", "password", "bearer", "master-key", "key-secret"] {
        assert!(
            !help.contains(&format!("{word} <VALUE>")),
            "{word} in\n{help}"
        );
    }
    let ended =
        Krane::configured(&["check-config", "--set", &format!("vault.token={CANARY}")]).end();
    assert_eq!(ended.code, 78);
    assert!(
        ended.stderr.contains("cannot be given by a flag"),
        "{}",
        ended.stderr
    );
}

/// A secret whose `=` was forgotten.
#[test]
fn a_flag_that_is_no_assignment_is_not_repeated() {
    let output = Command::new(env!("CARGO_BIN_EXE_krane"))
        .args(["check-config", "--set", "vault.token S3CR3T"])
        .env_clear()
        .output()
        .expect("krane runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("KEY=VALUE") && !told.contains("S3CR3T"),
        "{told}"
    );
}

#[test]
fn one_bad_master_key_is_one_problem_for_every_verb() {
    for verb in ["run", "check-config"] {
        let ended = Krane::configured(&[verb])
            .env("UNKEY_VAULT_MASTER_KEYS", CANARY)
            .env("UNKEY_VAULT_S3_URL", "http://127.0.0.1:1")
            .env("UNKEY_VAULT_S3_BUCKET", "b")
            .env("UNKEY_VAULT_S3_ACCESS_KEY_ID", "i")
            .env("UNKEY_VAULT_S3_ACCESS_KEY_SECRET", "s")
            .env("UNKEY_RPC_PORT", &free_port())
            .env("KRANE__ADMIN__LISTEN", "")
            .env("KUBECONFIG", "/no/such/file")
            .end();
        assert_eq!(ended.code, 78, "{verb}: {}", ended.stderr);
        let line = "✗ 1 problem in the configuration, nothing was started";
        assert!(ended.stderr.contains(line), "{verb}: {}", ended.stderr);
        let code = "krane::run::vault";
        assert!(ended.stderr.contains(code), "{verb}: {}", ended.stderr);
    }
}

#[test]
fn an_empty_value_is_printed_as_one() {
    let ended = Krane::configured(&["check-config", "--print"])
        .env("KRANE__ADMIN__LISTEN", "")
        .end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.contains("admin.listen = \"\" "),
        "{}",
        ended.stdout
    );
    let parsed: toml::Table = ended.stdout.parse().unwrap();
    assert_eq!(parsed["admin"]["listen"].as_str(), Some(""));
}

#[test]
fn what_a_configuration_may_hold_is_printed() {
    let printed = |arguments: &[&str]| {
        let ended = Krane::new(arguments).end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    let schema: serde_json::Value = serde_json::from_str(&printed(&["config", "schema"])).unwrap();
    assert_eq!(schema["properties"]["rpc_port"]["default"], 8070);
    assert!(
        printed(&["config", "default"])
            .parse::<toml::Table>()
            .is_ok()
    );
    assert!(printed(&["config", "docs"]).contains("| `control.url` |"));
    let version: serde_json::Value =
        serde_json::from_str(&printed(&["version", "-o", "json"])).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(printed(&["completion", "fish"]).contains("check-config"));
}
