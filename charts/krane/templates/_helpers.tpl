{{- define "krane.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "krane.fullname" -}}
{{- $name := include "krane.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "krane.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "krane.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "krane.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "krane.image" -}}
{{- $image := .Values.image }}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* These never change: a Deployment's selector is immutable. */ -}}
{{- define "krane.selectorLabels" -}}
app.kubernetes.io/name: {{ include "krane.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "krane.labels" -}}
{{- $labels := include "krane.selectorLabels" . | fromYaml }}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion }}
{{- $_ := set $labels "app.kubernetes.io/component" "agent" }}
{{- $_ := set $labels "app.kubernetes.io/part-of" "krane" }}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service }}
{{- merge $labels .Values.commonLabels | toYaml }}
{{- end }}

{{- /* metadata of an object: (dict "root" $ "name" … "labels" … "annotations" … "cluster" true) */ -}}
{{- define "krane.metadata" -}}
name: {{ .name | default (include "krane.fullname" .root) }}
{{- if not .cluster }}
namespace: {{ .namespace | default (include "krane.namespace" .root) }}
{{- end }}
labels:
  {{- merge (dict) (.labels | default dict) (include "krane.labels" .root | fromYaml) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "krane.vaultConfigured" -}}
{{- if or .Values.vault.url .Values.vault.embedded.existingSecret }}true{{ end }}
{{- end }}

{{- define "krane.registryConfigured" -}}
{{- if .Values.registry.url }}true{{ end }}
{{- end }}

{{- define "krane.replacesOutdatedPods" -}}
{{- if eq (dig "deployments" "replace_outdated_pods" "never" .Values.config) "unready" }}true{{ end }}
{{- end }}

{{- define "krane.leaseEnabled" -}}
{{- if .Values.leaderElection.enabled }}true{{ end }}
{{- end }}

{{- /* A duration such as 1h30m in seconds. */ -}}
{{- define "krane.seconds" -}}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 }}
{{- $seconds := 0.0 }}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" . -1 }}
{{- $unit := regexFind "[a-z]+" . }}
{{- $seconds = addf $seconds (mulf (trimSuffix $unit . | float64) (get $units $unit)) }}
{{- end }}
{{- $seconds }}
{{- end }}

{{- /* The switches of files/rbac.yaml that are on, as a YAML list. */ -}}
{{- define "krane.rbacSwitches" -}}
{{- $switches := list "core" }}
{{- $settings := list
    (list "vault" .Values.rbac.vault (include "krane.vaultConfigured" .))
    (list "registry" .Values.rbac.registry (include "krane.registryConfigured" .))
    (list "replace-outdated-pods" .Values.rbac.replaceOutdatedPods (include "krane.replacesOutdatedPods" .))
    (list "lease" .Values.rbac.lease (include "krane.leaseEnabled" .)) }}
{{- range $settings }}
{{- if ternary (index . 2) (index . 1) (eq (toString (index . 1)) "auto") }}
{{- $switches = append $switches (index . 0) }}
{{- end }}
{{- end }}
{{- toYaml $switches }}
{{- end }}

{{- /* Secrets mounted as files: path below /var/run/secrets/krane, Secret, key. */ -}}
{{- define "krane.secretFiles" -}}
{{- $files := list }}
{{- with .Values.controlPlane }}
{{- if .existingSecret }}{{ $files = append $files (dict "path" "control-token" "secret" .existingSecret "key" .existingSecretKey) }}{{ end }}
{{- if .caExistingSecret }}{{ $files = append $files (dict "path" "control-ca.pem" "secret" .caExistingSecret "key" .caExistingSecretKey) }}{{ end }}
{{- end }}
{{- with .Values.vault }}
{{- if .url }}
{{- if .existingSecret }}{{ $files = append $files (dict "path" "vault-token" "secret" .existingSecret "key" .existingSecretKey) }}{{ end }}
{{- else if .embedded.existingSecret }}
{{- $files = append $files (dict "path" "vault-master-keys" "secret" .embedded.existingSecret "key" .embedded.masterKeysKey) }}
{{- $files = append $files (dict "path" "vault-s3-secret" "secret" .embedded.existingSecret "key" .embedded.accessKeySecretKey) }}
{{- end }}
{{- end }}
{{- with .Values.registry }}
{{- if .url }}{{ $files = append $files (dict "path" "registry-password" "secret" .existingSecret "key" .existingSecretKey) }}{{ end }}
{{- end }}
{{- with .Values.scheduler }}
{{- if .existingSecret }}{{ $files = append $files (dict "path" "scheduler-token" "secret" .existingSecret "key" .existingSecretKey) }}{{ end }}
{{- end }}
{{- with .Values.admin }}
{{- if .existingSecret }}{{ $files = append $files (dict "path" "admin-token" "secret" .existingSecret "key" .existingSecretKey) }}{{ end }}
{{- end }}
{{- with .Values.tls }}
{{- if .existingSecret }}
{{- $files = append $files (dict "path" "tls.crt" "secret" .existingSecret "key" "tls.crt") }}
{{- $files = append $files (dict "path" "tls.key" "secret" .existingSecret "key" "tls.key") }}
{{- end }}
{{- end }}
{{- toYaml $files }}
{{- end }}

{{- /* The whole configuration as a map: the user's keys, and above them what other values of the chart decide. */ -}}
{{- define "krane.config" -}}
{{- $values := .Values }}
{{- $secrets := "/var/run/secrets/krane" }}
{{- $own := dict "rpc_port" $values.ports.rpc
    "health" (dict "listen" (printf "[::]:%d" (int $values.ports.health)))
    "observability" (dict "metrics" (dict "prometheus_port" $values.ports.metrics)) }}

{{- $control := dict }}
{{- with $values.controlPlane.url }}{{ $_ := set $control "url" . }}{{ end }}
{{- if $values.controlPlane.existingSecret }}{{ $_ := set $control "token_file" (printf "%s/control-token" $secrets) }}{{ end }}
{{- if $values.controlPlane.caExistingSecret }}{{ $_ := set $control "ca_file" (printf "%s/control-ca.pem" $secrets) }}{{ end }}
{{- $_ := set $own "control" $control }}

{{- with $values.vault }}
{{- if .url }}
{{- $vault := dict "url" .url }}
{{- if .existingSecret }}{{ $_ := set $vault "token_file" (printf "%s/vault-token" $secrets) }}{{ end }}
{{- $_ := set $own "vault" $vault }}
{{- else if .embedded.existingSecret }}
{{- $_ := set $own "vault" (dict
    "master_keys_file" (printf "%s/vault-master-keys" $secrets)
    "s3" (dict
      "url" .embedded.s3.url
      "bucket" .embedded.s3.bucket
      "access_key_id" .embedded.s3.accessKeyId
      "access_key_secret_file" (printf "%s/vault-s3-secret" $secrets))) }}
{{- end }}
{{- end }}

{{- with $values.registry }}
{{- if .url }}
{{- $_ := set $own "registry" (dict "url" .url "username" .username "password_file" (printf "%s/registry-password" $secrets)) }}
{{- end }}
{{- end }}

{{- if $values.scheduler.existingSecret }}
{{- $_ := set $own "scheduler" (dict "token_file" (printf "%s/scheduler-token" $secrets)) }}
{{- end }}

{{- $admin := dict "listen" $values.admin.listen "actions" $values.admin.actions }}
{{- if $values.admin.existingSecret }}{{ $_ := set $admin "token_file" (printf "%s/admin-token" $secrets) }}{{ end }}
{{- $_ := set $own "admin" $admin }}

{{- if $values.tls.existingSecret }}
{{- $_ := set $own "rpc" (dict "tls" (dict "cert" (printf "%s/tls.crt" $secrets) "key" (printf "%s/tls.key" $secrets))) }}
{{- end }}

{{- with $values.leaderElection }}
{{- if .enabled }}
{{- $_ := set $own "lease" (dict "enabled" true "duration" .leaseDuration "renew" .renewDeadline "retry" .retryPeriod) }}
{{- end }}
{{- end }}
{{- mergeOverwrite (deepCopy $values.config) $own | toYaml }}
{{- end }}

{{- /* One TOML value. A JSON string is a TOML basic string; whole numbers arrive here as floats. */ -}}
{{- define "krane.tomlValue" -}}
{{- if kindIs "float64" . }}
{{- if eq (float64 (int64 .)) . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- else if kindIs "slice" . }}
{{- $items := list }}
{{- range . }}{{ $items = append $items (include "krane.tomlValue" .) }}{{ end }}
{{- printf "[%s]" (join ", " $items) }}
{{- else }}
{{- toRawJson . }}
{{- end }}
{{- end }}

{{- /* A TOML table: (dict "path" "" "table" map). Scalars first, then the tables below it. */ -}}
{{- define "krane.toml" -}}
{{- $path := .path }}
{{- $table := .table }}
{{- range $key := keys $table | sortAlpha }}
{{- $value := index $table $key }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ $key }} = {{ include "krane.tomlValue" $value }}
{{- end }}
{{- end }}
{{- range $key := keys $table | sortAlpha }}
{{- $value := index $table $key }}
{{- if kindIs "map" $value }}
{{- $below := ternary (printf "%s.%s" $path $key) $key (ne $path "") }}
{{- $text := include "krane.toml" (dict "path" $below "table" $value) }}
{{- if hasPrefix "\n\n[" $text }}{{ $text }}
{{- else if $text }}

[{{ $below }}]{{ $text }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The ports krane calls, as a YAML list: the API server's unless Cilium knows it by name, and those of the configured addresses. */ -}}
{{- define "krane.egressPorts" -}}
{{- $ports := list }}
{{- if eq .Values.networkPolicy.flavor "kubernetes" }}
{{- range .Values.networkPolicy.egress.apiServerPorts }}{{ $ports = append $ports (int .) }}{{ end }}
{{- end }}
{{- range list .Values.controlPlane.url .Values.vault.url .Values.vault.embedded.s3.url (dig "observability" "tracing" "endpoint" "" .Values.config) }}
{{- with . }}
{{- $host := (urlParse .).host }}
{{- $port := regexFind ":[0-9]+$" $host | trimPrefix ":" }}
{{- $ports = append $ports ($port | default (ternary "443" "80" (hasPrefix "https://" .)) | int) }}
{{- end }}
{{- end }}
{{- $ports | uniq | toYaml }}
{{- end }}

{{- /* Whether a monitor is made: (dict "root" $ "name" "serviceMonitor"). */ -}}
{{- define "krane.monitorRendered" -}}
{{- $monitor := index .root.Values .name }}
{{- if $monitor.enabled }}
{{- if or (eq $monitor.renderMode "alwaysRender") (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
true
{{- else if eq $monitor.renderMode "failIfMissing" }}
{{- fail (printf "%s.enabled needs the kinds of the Prometheus operator (monitoring.coreos.com/v1), which this cluster does not have" .name) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What no schema can say. */ -}}
{{- define "krane.validate" -}}
{{- $values := .Values }}
{{- if not $values.existingConfigMap }}
{{- if not $values.config.region }}{{ fail "config.region is required, for example --set config.region=us-east-1" }}{{ end }}
{{- if not (or $values.config.platform (regexMatch "[.:]" (toString $values.config.region))) }}{{ fail "config.platform is required, for example --set config.platform=aws" }}{{ end }}
{{- if not $values.controlPlane.url }}{{ fail "controlPlane.url is required, for example --set controlPlane.url=https://control.example.com" }}{{ end }}
{{- if not $values.controlPlane.existingSecret }}{{ fail "controlPlane.existingSecret is required: the name of a Secret with the control plane's token under the key controlPlane.existingSecretKey" }}{{ end }}
{{- end }}
{{- if and (gt (int $values.replicaCount) 1) (not $values.leaderElection.enabled) (ne (toString $values.rbac.lease) "true") }}{{ fail "several replicas need leaderElection.enabled=true, or all of them write (values-ha.yaml); rbac.lease=true says that existingConfigMap or extraEnv sets lease.enabled" }}{{ end }}
{{- if and $values.registry.url (not (and $values.registry.username $values.registry.existingSecret)) }}{{ fail "registry.url needs registry.username and registry.existingSecret" }}{{ end }}
{{- with $values.vault }}
{{- if and .url .embedded.existingSecret }}{{ fail "set vault.url or vault.embedded.existingSecret, not both" }}{{ end }}
{{- if and .url (not .existingSecret) }}{{ fail "vault.url needs vault.existingSecret" }}{{ end }}
{{- if and .embedded.existingSecret (not (and .embedded.s3.url .embedded.s3.bucket .embedded.s3.accessKeyId)) }}{{ fail "vault.embedded.existingSecret needs vault.embedded.s3.url, bucket and accessKeyId" }}{{ end }}
{{- end }}
{{- if and (not (regexMatch "^(127\\.|\\[::1\\]:)|^$" $values.admin.listen)) (not $values.admin.existingSecret) }}{{ fail "admin.listen beyond loopback needs admin.existingSecret" }}{{ end }}
{{- if and $values.admin.actions (not $values.admin.existingSecret) }}{{ fail "admin.actions needs admin.existingSecret" }}{{ end }}
{{- with $values.ports }}
{{- if lt (len (uniq (list (int .rpc) (int .metrics) (int .health)))) 3 }}{{ fail "ports.rpc, ports.metrics and ports.health must differ" }}{{ end }}
{{- if has (int (regexFind "[0-9]+$" $values.admin.listen)) (list (int .rpc) (int .metrics) (int .health)) }}{{ fail "the port of admin.listen must differ from ports.rpc, ports.metrics and ports.health" }}{{ end }}
{{- end }}
{{- if and $values.serviceMonitor.enabled $values.podMonitor.enabled }}{{ fail "enable serviceMonitor or podMonitor, not both: every series would be scraped twice" }}{{ end }}
{{- end }}
