//! `krane check` against a scripted control plane and a scripted API server.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests may fail them, and clocks are real here"
)]

use krane_testharness::free_ports::free_ports;
use std::path::Path;
use std::process::Output;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::cluster_edge::server::{Answer, Seen, Server as Api};
use crate::control_plane::server::{Call, Server as Control};
use crate::control_plane::tls::authority;

const CANARY: &str = "canary-3f1e6c2ab0";
const KUBE_CANARY: &str = "canary-77c1d0ef42";

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    #[track_caller]
    fn with(&self, code: i32) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
    }

    #[track_caller]
    fn has(&self, words: &str) {
        assert!(
            self.stdout.contains(words),
            "{words:?} is not in\n{}{}",
            self.stdout,
            self.stderr
        );
    }

    #[track_caller]
    fn lacks(&self, words: &str) {
        assert!(!self.stdout.contains(words), "{}", self.stdout);
    }
}

pub(crate) fn date(offset: i64) -> String {
    let then = Timestamp::from_second(Timestamp::now().as_second() + offset).unwrap();
    rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&then)
        .unwrap()
}

fn status(code: u16, reason: &str, message: &str) -> Answer {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "message": message, "code": code,
    });
    Answer::json(code, &body)
}

/// What is asked for in a review of rights: verb, resource, name.
fn asked(seen: &Seen) -> (String, String, String) {
    let body = seen.json();
    let attributes = &body["spec"]["resourceAttributes"];
    let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
    (text("verb"), text("resource"), text("name"))
}

/// A cluster that has everything and grants what krane needs.
fn well(seen: &Seen) -> Answer {
    if seen.path == "/version" {
        let version = json!({"major": "1", "minor": "36+", "gitVersion": "v1.36.3"});
        return Answer::json(200, &version).with_header("date", &date(0));
    }
    if seen.path.ends_with("/selfsubjectaccessreviews") {
        let (verb, resource, name) = asked(seen);
        let is_wide = verb == "*"
            || resource == "clusterrolebindings"
            || (resource == "secrets" && name.is_empty())
            || (resource == "pods" && verb == "create");
        return Answer::json(201, &json!({"status": {"allowed": !is_wide}}));
    }
    if seen.path.ends_with("/selfsubjectreviews") {
        let user = json!({"username": "system:serviceaccount:krane:krane"});
        return Answer::json(201, &json!({"status": {"userInfo": user}}));
    }
    if seen.path == "/apis/cilium.io/v2" {
        return Answer::json(
            200,
            &json!({"resources": [{"name": "ciliumnetworkpolicies"}]}),
        );
    }
    if seen.method == "GET" {
        return Answer::json(200, &json!({"metadata": {}, "items": []}));
    }
    status(405, "MethodNotAllowed", "only reviews are posted")
}

pub(crate) fn free_port() -> u16 {
    let [port] = free_ports().unwrap();
    port
}

/// How a run is different from one in which all is well.
struct Case<'a> {
    control_url: &'a str,
    settings: &'a str,
    arguments: &'a [&'a str],
    port: u16,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            control_url: "",
            settings: "",
            arguments: &[],
            port: free_port(),
        }
    }
}

fn unknown(call: Call) {
    call.refuse(5, "no such deployment");
}

/// Runs it between such an API server and such a control plane. No secret may appear.
async fn check(
    case: Case<'_>,
    api: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    answer: impl Fn(Call),
) -> Ended {
    let api = Api::start(api).await;
    let mut control = Control::start().await;
    let url = match case.control_url {
        "" => control.url(),
        url => url.to_owned(),
    };
    let folder = TempDir::new().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    write(
        &kubeconfig,
        &format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n\
             users: [{{name: c, user: {{token: {KUBE_CANARY}}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\n",
            api.address
        ),
    );
    let config = folder.path().join("krane.toml");
    write(
        &config,
        &format!(
            "region = 'us-east-1.aws'\nrpc_port = {}\ncontrol.url = '{url}'\n\
             control.token = '{CANARY}'\nadmin.listen = ''\n{}\n",
            case.port, case.settings
        ),
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_krane"));
    command
        .arg("check")
        .arg("--config")
        .arg(&config)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args(case.arguments)
        .env_clear()
        .kill_on_drop(true);
    let serve = async {
        loop {
            answer(control.call().await);
        }
    };
    let Output {
        status,
        stdout,
        stderr,
    } = tokio::select! {
        output = command.output() => output.unwrap(),
        () = serve => panic!("the control plane ended"),
    };
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ended = Ended {
        code: status.code().unwrap(),
        stdout: text(stdout),
        stderr: text(stderr),
    };
    for canary in [CANARY, KUBE_CANARY] {
        assert!(!ended.stdout.contains(canary), "{}", ended.stdout);
        assert!(!ended.stderr.contains(canary), "{}", ended.stderr);
    }
    for written in api.requests() {
        let is_review = written.path.ends_with("reviews");
        assert!(written.method == "GET" || is_review, "{written:?}");
    }
    ended
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
}

#[tokio::test]
async fn a_place_where_krane_would_run_is_told_so() {
    let ended = check(Case::default(), well, |call| {
        assert_eq!(
            call.path,
            "/ctrl.v1.ClusterService/GetDesiredDeploymentState"
        );
        unknown(call);
    })
    .await;
    ended.with(0);
    for line in [
        "✔ the configuration is valid",
        "✔ control.url takes connections",
        "✔ the control plane answers and takes the token",
        "is Kubernetes v1.36.3",
        "rights that krane needs, as system:serviceaccount:krane:krane",
        "✔ the RuntimeClass gvisor is there",
        "✔ CiliumNetworkPolicy is known",
        "✔ the clock agrees with that of the API server",
        "✔ every port of krane is free here",
        // The way to this control plane is not encrypted.
        "krane::check::plaintext",
    ] {
        ended.has(line);
    }
    ended.lacks("✗");

    let strict = Case {
        arguments: &["--strict"],
        ..Case::default()
    };
    assert_eq!(check(strict, well, unknown).await.code, 1);
}

#[tokio::test]
async fn a_refused_token_is_told_from_a_control_plane_that_is_away() {
    let ended = check(Case::default(), well, |call| {
        call.refuse(16, &format!("Bearer {CANARY} is unknown"));
    })
    .await;
    ended.with(1);
    ended.has("✗ the control plane refuses the token (unauthenticated)");
    ended.has("control.token_file");
    ended.has("more  krane::check::token, docs/errors.md#check-token");

    let away = format!("http://127.0.0.1:{}", free_port());
    let case = Case {
        control_url: &away,
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.with(1);
    ended.has("✗ nobody can be reached at control.url");
    ended.has("control_plane.handshake not looked at: the control plane was not reached");
    ended.has("✔ the RuntimeClass gvisor is there");

    let case = Case {
        control_url: "http://no-such-host.invalid",
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.has("✗ the host of control.url http://no-such-host.invalid has no address");
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_told_from_one_for_another_name() {
    let (_, config) = authority(&[b"h2"]);
    let secure = Control::start_tls(config).await;
    let (other, _) = authority(&[b"h2"]);
    let url = format!("https://localhost:{}", secure.address.port());
    let settings = format!("control.ca_file = '{}'", other.path().display());
    let case = Case {
        control_url: &url,
        settings: &settings,
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.with(1);
    ended.has("signed by an authority that is not trusted");
    ended.has("set control.ca_file");

    let (ca, config) = authority(&[b"h2"]);
    let named = Control::start_tls(config).await;
    let url = format!("https://{}", named.address);
    let settings = format!("control.ca_file = '{}'", ca.path().display());
    let case = Case {
        control_url: &url,
        settings: &settings,
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.has("its certificate is for another name");
}

#[tokio::test]
async fn a_missing_right_alone_has_an_exit_code_of_its_own() {
    let script = |seen: &Seen| {
        let is_about_rights = seen.path.ends_with("/selfsubjectaccessreviews");
        if is_about_rights && asked(seen).1 == "replicasets" && asked(seen).0 == "patch" {
            return Answer::json(201, &json!({"status": {"allowed": false}}));
        }
        well(seen)
    };
    let ended = check(Case::default(), script, unknown).await;
    ended.with(77);
    ended.has("✗ replicasets.apps: patch is not allowed");
    ended.has("rbac.create=true");
}

#[tokio::test]
async fn what_the_cluster_lacks_is_named() {
    let script = |seen: &Seen| match seen.path.as_str() {
        "/apis/node.k8s.io/v1/runtimeclasses/gvisor" => status(404, "NotFound", "not found"),
        "/apis/cilium.io/v2" => Answer::text(404, "text/plain", "404 page not found\n"),
        "/apis/storage.k8s.io/v1/storageclasses/ebs-csi-gp3" => {
            status(403, "Forbidden", "storageclasses is forbidden")
        }
        "/apis/apps/v1/namespaces/sentinel/deployments" => Answer::json(
            200,
            &json!({"items": [
                {"metadata": {"name": "s-1"}, "spec": {"replicas": 1}},
                {"metadata": {"name": "s-2"}, "spec": {"replicas": 2}},
            ]}),
        ),
        _ => well(seen),
    };
    let ended = check(Case::default(), script, unknown).await;
    ended.with(1);
    ended.has("✗ there is no RuntimeClass gvisor");
    ended.has("✗ the cluster does not know CiliumNetworkPolicy");
    ended.has("cluster.storage_class not looked at: this account may not read it");
    ended.has("‼ 1 sentinel has one replica: s-1");
}

#[tokio::test]
async fn what_krane_needs_and_nobody_knows_of_is_not_well() {
    let silent = |path: &'static str| {
        move |seen: &Seen| {
            if seen.path == path {
                return status(503, "ServiceUnavailable", "no leader");
            }
            well(seen)
        }
    };
    let gvisor = "/apis/node.k8s.io/v1/runtimeclasses/gvisor";
    let ended = check(Case::default(), silent(gvisor), unknown).await;
    ended.with(69);
    ended.has("✗ whether the RuntimeClass gvisor is there is not known");
    ended.has("more  krane::check::unknown, docs/errors.md#check-unknown");

    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let ended = check(Case::default(), silent(reviews), unknown).await;
    ended.with(69);
    ended.has("rights that krane needs is not known");

    let some = move |seen: &Seen| {
        if seen.path == reviews && asked(seen).1 == "replicasets" {
            return match asked(seen).0.as_str() {
                "patch" => Answer::json(201, &json!({"status": {"allowed": false}})),
                _ => status(503, "ServiceUnavailable", "no leader"),
            };
        }
        well(seen)
    };
    let ended = check(Case::default(), some, unknown).await;
    ended.with(1);
    ended.has("✗ replicasets.apps: patch is not allowed");
}

#[tokio::test]
async fn a_vault_whose_certificate_or_lack_of_one_is_a_warning_is_asked_all_the_same() {
    let vault = Api::start(|_| Answer::text(503, "text/plain", "sealed")).await;
    let settings = format!(
        "vault.url = 'http://{}'\nvault.token = '{CANARY}'",
        vault.address
    );
    let case = Case {
        settings: &settings,
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.with(1);
    ended.has("‼ vault.url http://");
    ended.has("‼ not every pod that asks for secrets can be compared");
    ended.has("krane_secrets_unproved_total");
    ended.has("is not encrypted");
    ended.has("is not well");
    assert!(!vault.requests().is_empty());
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_named() {
    let skewed = |offset: i64| {
        move |seen: &Seen| {
            if seen.path == "/version" {
                let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"});
                return Answer::json(200, &version).with_header("date", &date(offset));
            }
            well(seen)
        }
    };
    let ended = check(Case::default(), skewed(3600), unknown).await;
    ended.with(1);
    ended.has("s behind that of the API server");
    let ended = check(Case::default(), skewed(-30), unknown).await;
    ended.with(0);
    ended.has("s ahead of that of the API server");
}

#[tokio::test]
async fn an_api_server_that_refuses_or_is_away_is_told_apart() {
    let refusing = |_: &Seen| status(401, "Unauthorized", "Unauthorized");
    let ended = check(Case::default(), refusing, unknown).await;
    ended.with(1);
    ended.has("refuses the credentials");
    ended.has("rights not looked at: the API server gave no usable answer");
    let ended = check(Case::default(), |_| Answer::Close, unknown).await;
    ended.has("krane::check::api_server");
    ended.has("✔ the control plane answers and takes the token");
}

/// As in krane's own pod, where `kubectl exec` starts it beside the agent.
#[tokio::test]
async fn a_port_that_a_krane_has_is_no_problem_and_any_other_is() {
    let krane = Api::start(|_| Answer::json(200, &json!({"status": "ok"}))).await;
    let port = |api: &Api| api.address.rsplit_once(':').unwrap().1.parse().unwrap();
    // Taken on one address is taken for a listener on all.
    let case = Case {
        port: port(&krane),
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.with(0);
    ended.has("✔ the ports are in use by a krane that runs here");

    let stranger = Api::start(|_| Answer::text(200, "text/html", "<html>")).await;
    // The krane next to it excuses nobody else.
    let settings = format!(
        "observability.metrics.prometheus_port = {}",
        port(&stranger)
    );
    let case = Case {
        settings: &settings,
        port: port(&krane),
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.with(1);
    ended.has("✗ observability.metrics.prometheus_port: cannot listen on port");
    ended.lacks("✗ rpc_port");

    let case = Case {
        port: port(&stranger),
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.with(1);
    ended.has("✗ rpc_port: cannot listen on port");
}

#[tokio::test]
async fn a_program_reads_the_same() {
    let case = Case {
        arguments: &["-o", "json"],
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["apiVersion"], "krane/v1");
    assert_eq!(report["kind"], "CheckReport");
    assert_eq!(report["summary"]["failed"], 0);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["state"].is_string()));

    let case = Case {
        settings: "report.address = 'carrier pigeon'",
        arguments: &["-o", "json"],
        ..Case::default()
    };
    let ended = check(case, well, unknown).await;
    ended.with(78);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["findings"][0]["code"], "krane::config::out_of_range");
}
