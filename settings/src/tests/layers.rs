//! Which layer wins, and the typed result.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::super::{RateLimit, Region, SecretSource, Settings, Vault, WritesMode};
use super::Given;

fn secret(source: &SecretSource) -> String {
    source.current().expose_secret().to_owned()
}

#[test]
fn each_layer_wins_over_the_ones_below() {
    let mut given = Given::required();
    assert_eq!(given.settings().rpc_port, 8070);
    given = given.file("rpc_port = 1001");
    assert_eq!(given.settings().rpc_port, 1001);
    given = given.file("rpc_port = 1002");
    assert_eq!(given.settings().rpc_port, 1002);
    given = given.env("UNKEY_RPC_PORT", "1003");
    assert_eq!(given.settings().rpc_port, 1003);
    given = given.env("KRANE__RPC_PORT", "1004");
    assert_eq!(given.settings().rpc_port, 1004);
    given = given.set("rpc_port", "1005").set("rpc_port", "1006");
    assert_eq!(given.settings().rpc_port, 1006);
}

#[test]
fn the_toml_form_of_the_original_agent_works_unchanged() {
    let given = Given::nothing()
        .env("UNKEY_REGISTRY_PASSWORD_SOURCE", "depot")
        .env("CONTROL_TOKEN", "bearer")
        .file(
            r#"
            instance_id = "krane-7"
            region = "us-east-1"
            platform = "aws"
            rpc_port = 8071
            storage_class_name = "gp3"

            [registry]
            url = "registry.depot.dev"
            username = "x-token"
            password = "${UNKEY_REGISTRY_PASSWORD_SOURCE}"

            [vault]
            url = "http://vault:8060"
            token = "vault-token"

            [control]
            url = "https://control.unkey.cloud"
            token = "$CONTROL_TOKEN"

            [observability.tracing]
            sample_rate = 0.5

            [observability.logging]
            sample_rate = 0.25
            slow_threshold = "1m30s"

            [observability.metrics]
            prometheus_port = 9090

            [k8s]
            qps = 100
            burst = 200
            "#,
        );
    let settings = given.settings();
    assert_eq!(settings.instance_id, "krane-7");
    assert_eq!(
        settings.region,
        Region {
            platform: "aws".into(),
            name: "us-east-1".into()
        }
    );
    assert_eq!(settings.rpc_port, 8071);
    assert_eq!(secret(&settings.registry.unwrap().password), "depot");
    assert!(matches!(
        settings.vault,
        Some(Vault::Remote { token: Some(_), .. })
    ));
    assert_eq!(secret(&settings.control.token), "bearer");
    let tracing = settings.observability.tracing.unwrap();
    assert_eq!(
        (tracing.endpoint.as_str(), tracing.sample_rate),
        ("http://localhost:4317", 0.5)
    );
    assert_eq!(
        settings.observability.logging.slow_threshold,
        Duration::from_secs(90)
    );
    assert_eq!(
        settings
            .observability
            .metrics
            .prometheus_port
            .map(u16::from),
        Some(9090)
    );
    let RateLimit { per_second, burst } = settings.k8s.rate_limit.unwrap();
    assert_eq!((per_second.get(), burst.get()), (100, 200));
}

#[test]
fn the_flat_variables_of_the_original_agent_are_enough() {
    let settings = Given::nothing()
        .env("UNKEY_REGION", "us-east-1.aws")
        .env("UNKEY_CONTROL_PLANE_URL", "https://control.unkey.cloud/")
        .env("UNKEY_CONTROL_PLANE_BEARER", "00123")
        .env("UNKEY_VAULT_URL", "")
        .env("UNKEY_CLUSTER_ID", "local")
        .settings();
    assert_eq!(
        settings.region,
        Region {
            platform: "aws".into(),
            name: "us-east-1".into()
        }
    );
    assert_eq!(settings.control.url.as_str(), "https://control.unkey.cloud");
    assert_eq!(secret(&settings.control.token), "00123");
    assert!(settings.vault.is_none());
}

#[test]
fn a_region_may_carry_its_platform() {
    let region = |platform: &str, region: &str| {
        let given = Given::required()
            .env("KRANE__PLATFORM", platform)
            .env("KRANE__REGION", region);
        given
            .load()
            .map(|loaded| loaded.settings.region.to_string())
            .ok()
    };
    assert_eq!(region("aws", "us-east-1").as_deref(), Some("aws:us-east-1"));
    assert_eq!(
        region("", "us-east-1.aws").as_deref(),
        Some("aws:us-east-1")
    );
    assert_eq!(
        region("", "aws:us-east-1").as_deref(),
        Some("aws:us-east-1")
    );
    assert_eq!(
        region("", "eu.west.1.gcp").as_deref(),
        Some("gcp:eu.west.1")
    );
    for unusable in ["us-east-1", ".aws", "us-east-1.", ":us-east-1", "aws:"] {
        assert_eq!(region("", unusable), None, "{unusable}");
    }
    // With a platform of its own, the region is taken as it is.
    assert_eq!(region("aws", "us.east").as_deref(), Some("aws:us.east"));
}

/// Kubernetes injects `KRANE_PORT=tcp://…` for a Service named `krane`.
#[test]
fn variables_that_kubernetes_injects_are_ignored() {
    let settings = Given::required()
        .env("KRANE_PORT", "tcp://10.0.0.1:8070")
        .env("KRANE_SERVICE_HOST", "10.0.0.1")
        .env("KRANE_PORT_8070_TCP", "tcp://10.0.0.1:8070")
        .env("UNKEY_PORT", "tcp://10.0.0.2:7070")
        .env("UNKEY_RPC_PORT", "tcp://10.0.0.3:8070")
        .env("UNKEY_ANYTHING_ELSE", "x")
        .settings();
    assert_eq!(settings.rpc_port, 8070);
}

#[test]
fn a_variable_names_the_file_when_no_flag_does() {
    let given = Given::required();
    let path = given
        .write("named.toml", "rpc_port = 1234")
        .display()
        .to_string();
    let mut named = given.env("UNKEY_CONFIG", &path);
    assert_eq!(
        named.settings().rpc_port,
        8070,
        "a flag replaces the variable"
    );
    let files = std::mem::take(&mut named.input.files);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    std::fs::write(&path, format!("rpc_port = 1234\n{text}")).unwrap();
    assert_eq!(named.settings().rpc_port, 1234);
}

fn is(rate: f64, expected: f64) -> bool {
    (rate - expected).abs() < f64::EPSILON
}

#[test]
fn the_tracing_section_switches_tracing_on_and_the_flat_switch_overrides_it() {
    let tracing = |given: &Given| given.settings().observability.tracing;
    let given = Given::required().env("UNKEY_OTEL_TRACE_SAMPLING_RATE", "0.5");
    assert!(
        tracing(&given).is_none(),
        "a rate alone switches nothing on"
    );
    let given = given.env("UNKEY_OTEL_ENABLED", "true");
    assert!(is(tracing(&given).unwrap().sample_rate, 0.5));
    let given = given.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
    assert_eq!(
        tracing(&given).unwrap().endpoint.as_str(),
        "http://collector:4317"
    );
    let section = Given::required().file("[observability.tracing]");
    assert!(is(tracing(&section).unwrap().sample_rate, 0.25));
    assert!(tracing(&section.env("UNKEY_OTEL_ENABLED", "false")).is_none());
    let variable = Given::required().env("KRANE__OBSERVABILITY__TRACING__SAMPLE_RATE", "0.1");
    assert!(is(tracing(&variable).unwrap().sample_rate, 0.1));
}

#[test]
fn a_remote_vault_wins_over_an_embedded_one() {
    let embedded = Given::required().file(
        "[vault]\nmaster_keys = ['one', 'two']\n[vault.s3]\nurl = 'http://s3'\nbucket = 'b'\n\
         access_key_id = 'i'\naccess_key_secret = 's'\n",
    );
    let Some(Vault::Embedded { master_keys, s3 }) = embedded.settings().vault else {
        panic!("must be embedded");
    };
    let keys: Vec<_> = master_keys.current_list();
    assert_eq!(
        keys.iter()
            .map(ExposeSecret::expose_secret)
            .collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(s3.bucket, "b");
    let remote = embedded.env("UNKEY_VAULT_URL", "http://vault");
    assert!(matches!(
        remote.settings().vault,
        Some(Vault::Remote { token: None, .. })
    ));
}

#[test]
fn master_keys_in_a_variable_are_separated_by_commas() {
    let given = Given::required()
        .env("UNKEY_VAULT_MASTER_KEYS", "one, two")
        .env("UNKEY_VAULT_S3_URL", "http://s3")
        .env("UNKEY_VAULT_S3_BUCKET", "b")
        .env("UNKEY_VAULT_S3_ACCESS_KEY_ID", "i")
        .env("UNKEY_VAULT_S3_ACCESS_KEY_SECRET", "s");
    let Some(Vault::Embedded { master_keys, .. }) = given.settings().vault else {
        panic!("must be embedded");
    };
    assert_eq!(master_keys.current_list().len(), 2);
}

#[test]
fn the_shipped_files_load() {
    let shipped = |name: &str| {
        let mut given = Given::nothing();
        let token = given.write("token", "bearer").display().to_string();
        given
            .input
            .files
            .push(format!("{}/../config/{name}", env!("CARGO_MANIFEST_DIR")).into());
        given
            .env("KRANE_REGION", "us-east-1")
            .env("KRANE_PLATFORM", "aws")
            .env("KRANE_CONTROL_URL", "https://control")
            .env("KRANE__CONTROL__TOKEN_FILE", &token)
            .settings()
    };
    let Settings { cilium, .. } = shipped("dev.toml");
    assert!(!cilium.required);
    let Settings {
        observability,
        safety,
        ..
    } = shipped("production.toml");
    assert_eq!(
        observability.metrics.prometheus_port.map(u16::from),
        Some(9090)
    );
    assert_eq!(safety.writes, WritesMode::On);
}
