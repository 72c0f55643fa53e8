//! What an operator reads when the configuration is wrong.

use super::super::nearest::nearest;
use super::Given;

/// The fields an operator would fix, in the order they are reported.
#[track_caller]
fn wrong_keys(given: &Given) -> Vec<String> {
    given
        .problems()
        .into_iter()
        .map(|problem| problem.key)
        .collect()
}

/// unkeyed/unkey 8242e8c4f3, 75b537baa6, PR #5045 (A59): settings were accepted and failed later in odd ways.
#[test]
fn every_bad_field_is_named_at_once() {
    let given = Given::nothing()
        .env("UNKEY_REGION", "")
        .env("UNKEY_CONTROL_PLANE_URL", "ctrl:8080")
        .env("UNKEY_CONTROL_PLANE_BEARER", "")
        .env("UNKEY_RPC_PORT", "70000")
        .env("UNKEY_PROMETHEUS_PORT", "9091")
        .env("UNKEY_OTEL_ENABLED", "true")
        .env("UNKEY_OTEL_TRACE_SAMPLING_RATE", "1.5")
        .env("UNKEY_LOG_SAMPLE_RATE", "-1")
        .env("UNKEY_REGISTRY_USERNAME", "x-token")
        .env("UNKEY_VAULT_URL", "");
    assert_eq!(
        wrong_keys(&given),
        [
            "region",
            "rpc_port",
            "control.url",
            "control.token",
            "registry.url",
            "registry.password",
            "observability.logging.sample_rate",
            "observability.tracing.sample_rate",
            "admin.listen",
        ]
    );
}

/// unkeyed/unkey 8242e8c4f3, 75b537baa6, PR #5045 (A59): each single bad value of the case.
#[test]
fn each_bad_field_alone_is_refused() {
    for (name, value, key) in [
        ("UNKEY_CONTROL_PLANE_URL", "", "control.url"),
        ("UNKEY_CONTROL_PLANE_URL", "ctrl:8080", "control.url"),
        ("UNKEY_CONTROL_PLANE_URL", "ftp://x", "control.url"),
        ("UNKEY_RPC_PORT", "0", "rpc_port"),
        ("UNKEY_RPC_PORT", "70000", "rpc_port"),
        (
            "UNKEY_PROMETHEUS_PORT",
            "8070",
            "observability.metrics.prometheus_port",
        ),
        (
            "UNKEY_LOG_SAMPLE_RATE",
            "1.5",
            "observability.logging.sample_rate",
        ),
        ("UNKEY_REGION", "", "region"),
        ("UNKEY_CONTROL_PLANE_BEARER", "", "control.token"),
    ] {
        assert_eq!(
            wrong_keys(&Given::required().env(name, value)),
            [key],
            "{name}={value}"
        );
    }
    assert!(
        Given::required()
            .env("UNKEY_VAULT_URL", "")
            .settings()
            .vault
            .is_none()
    );
}

#[test]
fn a_problem_names_key_value_origin_and_fix() {
    Given::required().env("KRANE__RPC_PORT", "70000").refused(
        "rpc_port must be a whole number from 1 to 65535; value \"70000\"; \
         from environment variable KRANE__RPC_PORT; \
         set rpc_port to a whole number from 1 to 65535, such as 8070",
    );
    Given::required().file("resync.interval = 60").refused(
        "resync.interval needs a unit (ms, s, m, h); value 60; from file {dir}/1.toml; \
         set resync.interval to a duration from 1s to 24h, such as 60s",
    );
    Given::required().set("safety.writes", "never").refused(
        "safety.writes must be on or off; value \"never\"; from flag --set; \
         set safety.writes to on or off, such as on",
    );
    Given::nothing()
        .file("region = 'us-east-1.aws'\ncontrol.token = 't'")
        .refused(
            "control.url is required; set control.url, such as \"https://control.example.com\", \
         or KRANE__CONTROL__URL",
        );
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    Given::required()
        .file("[contrl]\nurl = 'x'")
        .refused("contrl is not a known key; from file {dir}/1.toml; did you mean control?");
    Given::required().file("control.urll = 'x'").refused(
        "control.urll is not a known key; from file {dir}/1.toml; did you mean control.url?",
    );
    Given::required().file("control.token_fil = 'x'").refused(
        "control.token_fil is not a known key; from file {dir}/1.toml; \
         did you mean control.token_file?",
    );
    Given::required()
        .file("RPC_PORT = 1")
        .refused("RPC_PORT is not a known key; from file {dir}/1.toml; did you mean rpc_port?");
    Given::required().file("'control.url' = 'x'").refused(
        "control.url is not a known key; from file {dir}/1.toml; did you mean control.url?",
    );
    Given::required()
        .set("rpc_prot", "1")
        .refused("rpc_prot is not a known key; from flag --set; did you mean rpc_port?");
    Given::required()
        .file("[cluster]\ncell_id = 'c'\nregion = 'r'\nplatform = 'p'")
        .refused(
            "cluster is not a known key; from file {dir}/1.toml; \
         move `region` and `platform` to the top of the file, remove the rest",
        );
    Given::required().file("completely_different = 1").refused(
        "completely_different is not a known key; from file {dir}/1.toml; \
         remove completely_different; `krane check-config --print` lists every key",
    );
}

#[test]
fn an_unknown_variable_is_named_with_the_nearest_known_one() {
    Given::required().env("KRANE__CONTRL__TOKEN", "x").refused(
        "KRANE__CONTRL__TOKEN is not a known key; from environment variable KRANE__CONTRL__TOKEN; \
         did you mean KRANE__CONTROL__TOKEN?",
    );
    Given::required().env("krane__rpc_port", "1").refused(
        "krane__rpc_port is not a known key; from environment variable krane__rpc_port; \
         did you mean KRANE__RPC_PORT?",
    );
    Given::required().env("KRANE__", "1").refused(
        "KRANE__ is not a known key; from environment variable KRANE__; \
         unset KRANE__; `krane check-config --print` lists every key",
    );
}

#[test]
fn a_value_in_the_place_of_a_section_is_refused() {
    Given::required().env("KRANE__K8S", "x").refused(
        "k8s is a section and cannot be a value; from environment variable KRANE__K8S; \
         set the keys inside k8s, or remove it",
    );
    Given::required().file("k8s = 7").refused(
        "k8s is a section and cannot be a value; from file {dir}/1.toml; \
         set the keys inside k8s, or remove it",
    );
    let given = Given::required().file("[rpc_port]\na = 1");
    assert_eq!(given.problems()[0].kind.code(), "krane::config::wrong_type");
}

#[test]
fn a_file_that_is_missing_or_not_toml_is_named() {
    let mut given = Given::required();
    given.input.files.push("/no/such/krane.toml".into());
    given.refused(
        "/no/such/krane.toml cannot be read: no such file; \
         check the path given with --config or UNKEY_CONFIG; \
         whether anything else is missing was not checked",
    );
    Given::required()
        .file("a = 1\nrpc_port = ${PORT}\n")
        .refused(
            "file {dir}/1.toml is not valid TOML at line 2, column 12: \
         string values must be quoted, expected literal string; \
         correct the line; text needs quotes, also around ${…}; \
         whether anything else is missing was not checked",
        );
    Given::required()
        .file("rpc_port = 99999999999999999999")
        .refused(
            "file {dir}/1.toml is not valid TOML: a number is too large; \
         correct the line; text needs quotes, also around ${…}; \
         whether anything else is missing was not checked",
        );
}

#[test]
fn a_file_that_cannot_be_read_makes_nothing_else_a_problem() {
    for text in [None, Some("region = 'us-east-1'\n[control]\nurl = ")] {
        let mut given = Given::nothing().env("KRANE__REGISTRY__URL", "r");
        given = given.env("KRANE__ADMIN__LISTEN", "0.0.0.0:9091");
        match text {
            Some(text) => given = given.file(text),
            None => given.input.files.push("/no/such/krane.toml".into()),
        }
        assert_eq!(given.problems().len(), 1, "{:?}", given.problems());
        // What is wrong in itself is still said.
        assert_eq!(given.env("KRANE__RPC_PORT", "x").problems().len(), 2);
    }
}

#[test]
fn the_first_error_of_a_file_is_told_and_its_help_fits() {
    let place = |text: &str| {
        let problem = Given::required().file(text).problems().remove(0);
        let found = problem.kind.to_string();
        (found, problem.help)
    };
    let (found, _) = place("region = \"x\n\n[control]\nurl = 'http://h'\n");
    assert!(found.contains("at line 1, column "), "{found}");
    let (found, help) = place("rpc_port = 1\nrpc_port = 2\n");
    assert!(
        found.contains("at line 2, column 1: duplicate key"),
        "{found}"
    );
    assert!(help.starts_with("keep one of the lines"), "{help}");
}

#[test]
fn a_misspelt_flat_variable_is_told_and_other_peoples_are_not() {
    let misspelt = |given: &Given| match given.load() {
        Ok(loaded) => loaded.misspelt,
        Err(invalid) => invalid.misspelt,
    };
    for (name, meant) in [
        ("UNKEY_REGON", "UNKEY_REGION"),
        ("UNKEY_CONTROL_PLANE_BEARRER", "UNKEY_CONTROL_PLANE_BEARER"),
        ("UNKEY_PROMETEUS_PORT", "UNKEY_PROMETHEUS_PORT"),
        ("UNKEY_CONFG", "UNKEY_CONFIG"),
    ] {
        for given in [Given::required(), Given::nothing()] {
            let found = misspelt(&given.env(name, "x"));
            assert_eq!((found.len(), &*found[0].meant), (1, meant), "{name}");
        }
    }
    for (name, value) in [
        ("UNKEY_REGION", "us-east-1"),
        ("UNKEY_OTEL_ENABLED", "false"),
        ("UNKEY_API_PORT", "tcp://10.0.0.1:80"),
        ("UNKEY_API_SERVICE_HOST", "10.0.0.1"),
        ("UNKEY_RPC_SERVICE_PORT", "80"),
        ("UNKEY_RPC_PORT_80_TCP_PORT", "80"),
        ("UNKEY_ROOT_KEY", "x"),
        ("UNKEY_DATABASE_PRIMARY", "x"),
    ] {
        let found = misspelt(&Given::required().env(name, value));
        assert_eq!(found, [], "{name}");
    }
}

#[test]
fn groups_are_set_as_a_whole() {
    Given::required()
        .file("[registry]\nurl = 'r'\nusername = 'u'")
        .refused(
            "registry.password is needed together with registry.url, registry.username; \
         set registry.password too, or remove registry.url, registry.username",
        );
    Given::required().file("[registry]").refused(
        "registry is needed together with its keys; \
         set registry.url, registry.username, registry.password, or remove the section",
    );
    assert!(
        Given::required()
            .env("UNKEY_REGISTRY_URL", "")
            .settings()
            .registry
            .is_none()
    );
    assert_eq!(
        wrong_keys(&Given::required().file("vault.s3.bucket = 'b'")),
        [
            "vault.master_keys",
            "vault.s3.url",
            "vault.s3.access_key_id",
            "vault.s3.access_key_secret"
        ]
    );
    let given = Given::required();
    let pem = given.write("tls.crt", "x").display().to_string();
    assert_eq!(
        wrong_keys(&given.file(&format!("rpc.tls.cert = '{pem}'"))),
        ["rpc.tls.key"]
    );
    // A token without an address is no vault, and no error.
    assert!(
        Given::required()
            .file("vault.token = 't'")
            .settings()
            .vault
            .is_none()
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    Given::required()
        .file("[lease]\nduration = '5s'\nrenew = '10s'")
        .refused(
            "lease.renew must be less than lease.duration (5s); value \"10s\"; \
         from file {dir}/1.toml; lower lease.renew or raise lease.duration",
        );
    Given::required()
        .file("lease.duration = '15500ms'")
        .refused(
            "lease.duration must be whole seconds; value \"15500ms\"; from file {dir}/1.toml; \
         round it, such as \"15s\"",
        );
    Given::required()
        .set("admin.listen", "0.0.0.0:9091")
        .refused(
            "admin.listen needs admin.token, it is reachable from outside; value \"0.0.0.0:9091\"; \
         from flag --set; set admin.token_file, or listen on 127.0.0.1 and use \
         kubectl port-forward",
        );
    Given::required()
        .file("health.listen = '[::]:8070'")
        .refused(
            "health.listen is the same port as rpc_port; value \"[::]:8070\"; \
         from file {dir}/1.toml; give health.listen or rpc_port another port",
        );
    Given::required().file("rpc_port = 9091").refused(
        "admin.listen is the same port as rpc_port; value \"127.0.0.1:9091\"; \
         from built-in default; give admin.listen or rpc_port another port",
    );
}

#[test]
fn the_nearest_name_is_close_or_none() {
    let known = ["control.url", "control.token", "rpc_port"];
    let nearest = |name: &str| nearest(name, known.into_iter());
    assert_eq!(nearest("contro.url"), Some("control.url"));
    assert_eq!(nearest("Control.Tokne"), Some("control.token"));
    assert_eq!(nearest("port"), None);
    assert_eq!(nearest(""), None);
    assert_eq!(nearest("ünïcode"), None);
}

#[test]
fn directives_that_cannot_be_read_are_a_problem() {
    let given = Given::required().env("RUST_LOG", "krane=loud");
    let [problem] = &given.problems()[..] else {
        panic!("must be one problem");
    };
    assert_eq!(problem.key, "RUST_LOG");
    assert_eq!(problem.kind.code(), "krane::config::malformed");
    let given = Given::required().env("RUST_LOG", "warn,krane=debug");
    let directives = given.settings().observability.logging.directives;
    assert_eq!(directives.as_deref(), Some("warn,krane=debug"));
}
