//! Building, with a `go` that only pretends: no Go, no network, no cluster.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

/// Notes each call in `$CALLS`, and makes what it is asked for.
const GO: &str = r#"#!/bin/sh
case "$1" in
env) echo "$VERSION" ;;
mod)
    mkdir -p "$CALLS.d/pkg/k8s/apis/cilium.io/client/crds/v2"
    echo crd >"$CALLS.d/pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml"
    sum=$(sed -n 's/^github.com\/cilium\/cilium v[0-9.]* //p' go.sum)
    echo "{\"Dir\": \"$CALLS.d\", \"Sum\": \"${SUM-$sum}\"}"
    ;;
build)
    echo "$*" >>"$CALLS"
    [ -z "$FAIL" ] || { echo "pkg: no such thing" >&2; exit 1; }
    sleep 0.5
    while [ "$1" != -o ]; do shift; done
    case "$2" in
    */) OUT=$2; shift 2; for package in "$@"; do echo x >"$OUT$(basename "$package")"; done ;;
    *) echo x >"$2" ;;
    esac
    ;;
esac
"#;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let go = folder.path().join("bin/go");
        fs::write(&go, GO).unwrap();
        fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_krane-testcluster"));
        let path = format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display());
        command
            .arg("build")
            .env("PATH", path)
            .env("KRANE_TESTCLUSTER_CACHE", self.cache())
            .env("CALLS", self.folder.path().join("calls"))
            .env("VERSION", "go1.26.1")
            .env_remove("KUBEBUILDER_ASSETS")
            .env_remove("KRANE_TESTCLUSTER_BIN")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("cache")
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.folder.path().join("calls"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// The folders in the cache; unfinished ones would be among them.
    fn folders(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.cache())
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn finish(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn builds_once_and_finds_it_again() {
    let bench = Bench::new();
    let output = finish(bench.command().spawn().unwrap());
    assert!(output.status.success(), "{}", errors(&output));
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(printed.lines().count(), 7, "{printed}");
    for file in printed.lines() {
        assert!(Path::new(file).is_file(), "{file}");
    }
    assert!(
        errors(&output).contains("kubernetes: done in"),
        "{}",
        errors(&output)
    );
    assert_eq!(bench.calls(), 4);
    assert_eq!(bench.folders().len(), 5, "{:?}", bench.folders());

    let again = finish(bench.command().spawn().unwrap());
    assert_eq!(again.stdout, output.stdout);
    assert_eq!(errors(&again), "");
    assert_eq!(bench.calls(), 4);
}

#[test]
fn another_go_builds_again() {
    let bench = Bench::new();
    assert!(finish(bench.command().spawn().unwrap()).status.success());
    assert!(
        finish(bench.command().env("VERSION", "go1.27.0").spawn().unwrap())
            .status
            .success()
    );
    assert_eq!(bench.calls(), 8);
}

#[test]
fn a_second_process_waits_for_the_first() {
    let bench = Bench::new();
    let first = bench.command().spawn().unwrap();
    while bench.calls() == 0 {
        thread::sleep(Duration::from_millis(10));
    }
    let second = finish(bench.command().spawn().unwrap());
    assert!(finish(first).status.success());
    assert!(second.status.success(), "{}", errors(&second));
    assert!(
        errors(&second).contains("another process is building"),
        "{}",
        errors(&second)
    );
    assert_eq!(bench.calls(), 4);
}

#[test]
fn a_failed_build_leaves_nothing_and_shows_why() {
    let bench = Bench::new();
    let output = finish(bench.command().env("FAIL", "1").spawn().unwrap());
    assert!(!output.status.success());
    assert!(
        errors(&output).contains("pkg: no such thing"),
        "{}",
        errors(&output)
    );
    assert_eq!(bench.folders(), Vec::<String>::new());
}

#[test]
fn another_module_than_the_pinned_one_is_refused() {
    let bench = Bench::new();
    let output = finish(bench.command().env("SUM", "h1:other").spawn().unwrap());
    assert!(!output.status.success());
    assert!(errors(&output).contains("h1:other"), "{}", errors(&output));
}

#[test]
fn a_killed_build_stops_its_compiler() {
    let bench = Bench::new();
    let mut child = bench.command().spawn().unwrap();
    while bench.calls() == 0 {
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for _ in 0..100 {
        if bench.folders().is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("left behind: {:?}", bench.folders());
}

#[test]
fn without_go_the_message_helps() {
    let bench = Bench::new();
    fs::remove_file(bench.folder.path().join("bin/go")).unwrap();
    let output = finish(
        bench
            .command()
            .env("PATH", bench.folder.path())
            .spawn()
            .unwrap(),
    );
    assert!(!output.status.success());
    let text = errors(&output);
    for part in ["install Go 1.26", "KRANE_TESTCLUSTER_BIN", "kube-apiserver"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn an_old_go_is_refused() {
    let bench = Bench::new();
    let output = finish(bench.command().env("VERSION", "go1.24.3").spawn().unwrap());
    assert!(!output.status.success());
    let text = errors(&output);
    assert!(
        text.contains("go1.24.3") && text.contains("Go 1.26"),
        "{text}"
    );
}

#[test]
fn prebuilt_programs_are_taken() {
    let bench = Bench::new();
    let bin = bench.folder.path().join("prebuilt");
    fs::create_dir(&bin).unwrap();
    let names = [
        "etcd",
        "etcdutl",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "ciliumnetworkpolicies.yaml",
    ];
    for name in names {
        fs::write(bin.join(name), "x").unwrap();
    }
    let output = finish(
        bench
            .command()
            .env("KRANE_TESTCLUSTER_BIN", &bin)
            .spawn()
            .unwrap(),
    );
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(bench.calls(), 0);
}

#[test]
fn envtest_programs_of_the_pinned_minor_are_taken() {
    for (version, calls_with_api_server) in [("v1.36.9", false), ("v1.35.0", true)] {
        let bench = Bench::new();
        let assets = bench.folder.path().join("assets");
        fs::create_dir(&assets).unwrap();
        fs::write(assets.join("etcd"), "x").unwrap();
        let api_server = assets.join("kube-apiserver");
        fs::write(
            &api_server,
            format!("#!/bin/sh\necho Kubernetes {version}\n"),
        )
        .unwrap();
        fs::set_permissions(&api_server, fs::Permissions::from_mode(0o755)).unwrap();
        let output = finish(
            bench
                .command()
                .env("KUBEBUILDER_ASSETS", &assets)
                .spawn()
                .unwrap(),
        );
        assert!(output.status.success(), "{}", errors(&output));
        let calls = fs::read_to_string(bench.folder.path().join("calls")).unwrap();
        assert_eq!(
            calls.contains("cmd/kube-apiserver"),
            calls_with_api_server,
            "{calls}"
        );
        assert!(calls.contains("cmd/kube-scheduler"));
    }
}
