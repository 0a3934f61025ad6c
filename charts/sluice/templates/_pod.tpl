{{- /*
SPDX-License-Identifier: Apache-2.0
SPDX-FileCopyrightText: The Sluice authors
*/ -}}
{{- /* What the pods of both DaemonSets have in common: (dict "context" C "component" NAME). */ -}}

{{- define "sluice.podMetadata" -}}
{{- $values := .context.Values -}}
{{- with $values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
labels:
  {{- $own := include "sluice.selectorLabels" . | fromYaml }}
  {{- merge $own $values.podLabels | toYaml | nindent 2 }}
{{- end }}

{{- define "sluice.podSpec" -}}
{{- $context := .context -}}
{{- $values := $context.Values -}}
serviceAccountName: {{ include "sluice.serviceAccount" $context }}
enableServiceLinks: false
{{- with concat $values.global.imagePullSecrets $values.imagePullSecrets | uniq }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $selector := deepCopy $values.nodeSelector -}}
{{- if ne $context.pair "default" }}{{ $_ := set $selector "sluice.dev/config" $context.pair }}{{ end -}}
{{- with $selector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "sluice.affinity" $context | fromYaml }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The default pair keeps away from nodes that have a pair of their own. Terms are alternatives, so each says so. */ -}}
{{- define "sluice.affinity" -}}
{{- $affinity := deepCopy (.Values.affinity | default dict) -}}
{{- if and (eq .pair "default") .Values.nodeConfigs -}}
{{- $names := list -}}
{{- range .Values.nodeConfigs }}{{ $names = append $names .name }}{{ end -}}
{{- $other := dict "key" "sluice.dev/config" "operator" "NotIn" "values" $names -}}
{{- $key := "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $terms := list -}}
{{- range (index ($node | default dict) $key | default dict).nodeSelectorTerms | default (list dict) -}}
{{- $terms = append $terms (set . "matchExpressions" (append (.matchExpressions | default list) $other)) -}}
{{- end -}}
{{- $_ := set $node $key (dict "nodeSelectorTerms" $terms) -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end }}

{{- /* Environment variables: (dict "own" LIST "extra" LIST). A name in extra goes before ours. */ -}}
{{- define "sluice.env" -}}
{{- $given := dict -}}
{{- range .extra }}{{ $_ := set $given .name true }}{{ end -}}
{{- $all := list -}}
{{- range .own }}{{ if not (hasKey $given .name) }}{{ $all = append $all . }}{{ end }}{{ end -}}
{{- toYaml (concat $all .extra) -}}
{{- end }}

{{- /* Of every container. Root without a capability: what it owns is root's on the node. */ -}}
{{- define "sluice.securityContext" -}}
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
seccompProfile:
  type: RuntimeDefault
capabilities:
  drop: [ALL]
  {{- with . }}
  add: {{ toJson . }}
  {{- end }}
{{- end }}

{{- /* An option with its value, where it has one: (list NAME VALUE). Numbers come as floating point. */ -}}
{{- define "sluice.option" -}}
{{- $value := index . 1 -}}
{{- if kindIs "float64" $value }}{{ $value = int64 $value }}{{ end -}}
{{- if ne (toString $value) "" }}
- {{ printf "--%s=%v" (index . 0) $value | quote }}
{{- end -}}
{{- end }}
