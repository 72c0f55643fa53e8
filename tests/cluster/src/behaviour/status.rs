//! The templates out of which kwok makes the status of a pod.

const ADDRESS: &str = "
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid \"\" ) ( or .metadata.name \"\" ) ( or .metadata.namespace \"\" ) }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
";

pub(super) const RUNNING_CONTAINERS: &str = "
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
";

pub(super) const UNREADY_CONTAINERS: &str = "
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
";

pub(super) const CRASHING_CONTAINERS: &str = "
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  started: false
  restartCount: 3
  lastState:
    terminated:
      exitCode: 1
      reason: Error
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
  state:
    waiting:
      reason: CrashLoopBackOff
      message: back-off 40s restarting failed container
";

const PULLING_CONTAINERS: &str = "
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    waiting:
      reason: ErrImagePull
      message: image not found
";

pub(super) const FAILED: &str = "
{{ $now := Now }}
startTime: {{ $now | Quote }}
phase: Failed
reason: Evicted
message: the node was low on resource memory
";

fn conditions(ready: bool) -> String {
    let status = if ready { "True" } else { "False" };
    let reason = if ready {
        ""
    } else {
        "  reason: ContainersNotReady\n"
    };
    [("Initialized", "True", ""), ("ContainersReady", status, reason), ("Ready", status, reason)]
        .map(|(kind, status, reason)| {
            format!(
                "- lastTransitionTime: {{{{ $now | Quote }}}}\n  status: \"{status}\"\n  type: {kind}\n{reason}"
            )
        })
        .concat()
}

fn status(phase: &str, ready: bool, containers: &str) -> String {
    format!(
        "{{{{ $now := Now }}}}\nphase: {phase}\nstartTime: {{{{ $now | Quote }}}}\nconditions:\n{}\
         containerStatuses:\n{{{{ range .spec.containers }}}}{containers}{{{{ end }}}}\n{ADDRESS}",
        conditions(ready),
    )
}

pub(super) fn running(ready: bool, containers: &str) -> String {
    status("Running", ready, containers)
}

pub(super) fn image_pull() -> String {
    status("Pending", false, PULLING_CONTAINERS)
}
