//! Everything that krane shows or leaves behind, searched for what it must never show.

use kube::Client;

use crate::http_get::get;
use crate::{Agent, Failure, Outcome};

/// Of the page's port. The stream has what the others have.
const PAGES: [&str; 7] = [
    "/",
    "/api/v1/health",
    "/api/v1/tree",
    "/api/v1/controllers",
    "/api/v1/log",
    "/api/v1/workloads",
    "/api/v1/events",
];

/// Of the API server: all kinds that krane writes, and Events about them.
const KINDS: [&str; 11] = [
    "/api/v1/events",
    "/apis/events.k8s.io/v1/events",
    "/api/v1/namespaces",
    "/api/v1/pods",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    "/apis/cilium.io/v2/ciliumnetworkpolicies",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/policy/v1/poddisruptionbudgets",
];

impl Agent {
    /// Fails if metrics, page or cluster show a secret that the agent was given. What nobody serves
    /// just now shows nothing; its log is searched when it ends.
    pub(crate) async fn outputs_show_no_secret(&self) -> Outcome {
        let mut outputs = Vec::new();
        if let Ok((_, text)) = get(self.metrics_port, "/metrics").await {
            outputs.push(("/metrics", text));
        }
        for page in PAGES {
            if let Ok((_, text)) = get(self.admin_port, page).await {
                outputs.push((page, text));
            }
        }
        for kind in KINDS {
            if let Some(text) = objects(&self.api.client(), kind).await? {
                outputs.push((kind, text));
            }
        }
        let shows = |text: &str| self.secrets.iter().find(|secret| text.contains(*secret));
        match outputs
            .iter()
            .find_map(|(what, text)| Some((what, shows(text)?)))
        {
            None => Ok(()),
            Some((what, secret)) => {
                let start: String = secret.chars().take(16).collect();
                Err(Failure::new(format!("{what} shows a secret: {start}…")))
            }
        }
    }
}

/// Nothing of an API server that is not there, or does not know the kind.
async fn objects(api: &Client, kind: &str) -> Outcome<Option<String>> {
    let request = http::Request::get(kind).body(Vec::new())?;
    Ok(api.request_text(request).await.ok())
}
