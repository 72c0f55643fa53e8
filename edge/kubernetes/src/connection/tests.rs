//! A credential plugin that does not end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use http::HeaderValue;

use super::{Building, KubeAccess};
use crate::AccessError;

/// A plugin that notes each start and gives its token when the file `answer` is there; it ends
/// with its folder.
fn access(folder: &Path) -> KubeAccess {
    let (plugin, file) = (folder.join("plugin"), folder.join("config"));
    let script = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo >> starts
until [ -e answer ]; do [ -e starts ] || exit 1; sleep 0.02; done
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
"status":{"token":"t"}}'
"#;
    fs::write(&plugin, script).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:1'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, \
         command: '{}', interactiveMode: Never}}}}}}]\n",
        plugin.display()
    );
    fs::write(&file, config).unwrap();
    KubeAccess::Kubeconfig {
        files: vec![file],
        context: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_hangs_is_given_up_and_never_started_twice() {
    let folder = tempfile::tempdir().unwrap();
    let access = access(folder.path());
    let agent = HeaderValue::from_static("krane-test");
    let mut building = Building::new(Duration::from_millis(100));
    for _ in 0..3 {
        let built = building.build(&access, &agent).await;
        assert!(matches!(built, Err(AccessError::TimedOut(_))));
    }
    let starts = fs::read_to_string(folder.path().join("starts")).unwrap();
    assert_eq!(starts, "\n", "one start");
    fs::write(folder.path().join("answer"), "").unwrap();
    building.limit = Duration::from_mins(1);
    let built = building.build(&access, &agent).await;
    assert_eq!(built.map(|built| built.host).unwrap(), "127.0.0.1:1");
}
