{{- /* What the Deployment's pod and the pod of `helm test` have in common. */ -}}

{{- define "krane.arguments" -}}
{{- if .Values.existingConfigMap }}
- --config=/etc/krane/own/krane.toml
{{- end }}
- --config=/etc/krane/chart/krane.toml
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "krane.environment" -}}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "krane.volumeMounts" -}}
- name: config
  mountPath: /etc/krane/chart
  readOnly: true
{{- if .Values.existingConfigMap }}
- name: own-config
  mountPath: /etc/krane/own
  readOnly: true
{{- end }}
{{- if include "krane.secretFiles" . | fromYamlArray }}
- name: secrets
  mountPath: /var/run/secrets/krane
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "krane.volumes" -}}
- name: config
  configMap:
    name: {{ include "krane.fullname" . }}
{{- with .Values.existingConfigMap }}
- name: own-config
  configMap:
    name: {{ . }}
{{- end }}
{{- with include "krane.secretFiles" . | fromYamlArray }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range . }}
      - secret:
          name: {{ .secret }}
          items:
            - key: {{ .key }}
              path: {{ .path }}
      {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Where the pod may run, and how it finds names there. */ -}}
{{- define "krane.placement" -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "hostAliases" "imagePullSecrets" }}
{{- with index $.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
